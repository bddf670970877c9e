"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.dispatch.random_generator import differing
from corefw.distributions import constraints
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.utils import broadcast_all
from corefw.dtypes import finfo
from corefw.tensor import Tensor


class Gamma(ExponentialFamily):
    """Gamma distributions of the density ``rate ** a * x ** (a - 1) * exp(-rate * x) / gamma(a)`` for x > 0.

    Args:
        concentration: a, the shape parameter, shape (...).
        rate: the inverse of the scale, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = ops.standard_gamma(differing(self.concentration.expand(shape))) / self.rate
        return value.clamp(min=finfo(value.dtype).tiny)  # 0 has no density

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return ops.xlogy(a, rate) + ops.xlogy(a - 1, value) - rate * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ops.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return (x + 1).lgamma() - (x + 1) * (-y).log()
