"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class GeneralizedPareto(Distribution):
    """Generalised Pareto distributions, of what exceeds a high threshold.

    The probability of a value above x is ``(1 + k * z) ** (-1 / k)`` for ``z = (x - loc) / scale >= 0``, where k is
    `concentration`, and ``exp(-z)`` for k = 0. For negative k the values end at ``loc - scale / k``.

    Args:
        loc: the smallest value, shape (...).
        scale: the scale, shape (...).
        concentration: k, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def _exponential(self):
        return self.concentration.abs() < 1e-12

    @property
    def _nonzero(self):
        """The concentration, or 1 where it is 0."""
        return ops.where(self._exponential, 1.0, self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        upper = ops.where(self.concentration < 0, self.loc - self.scale / self._nonzero, math.inf)
        return constraints.interval(self.loc, upper)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return ops.where(k < 1, self.loc + self.scale / (1 - k), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return ops.where(k < 0.5, self.scale.square() / ((1 - k).square() * (1 - 2 * k)), math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of values above `value`."""
        z, k = (value - self.loc) / self.scale, self._nonzero
        return ops.where(self._exponential, -z, -(k * z).log1p() / k)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # the density is the survival function to the power 1 + k, by the scale
        power = ops.where(self._exponential, 1.0, 1 + self.concentration)
        return power * self.log_survival_function(value) - self.scale.log()

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of values up to `value`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        logarithm, k = (-value).log1p(), self._nonzero
        return self.loc + self.scale * ops.where(self._exponential, -logarithm, (-k * logarithm).expm1() / k)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
