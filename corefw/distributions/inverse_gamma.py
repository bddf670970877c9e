"""The inverse gamma distribution."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.gamma import Gamma
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import PowerTransform
from corefw.tensor import Tensor


class InverseGamma(TransformedDistribution):
    """Distributions of ``1 / x`` for x of a gamma distribution.

    Args:
        concentration: the shape parameter of x, shape (...).
        rate: the rate of x, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.InverseGamma(3.0, 2.0).mean
    tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=False)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1.0)), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape parameter of the inverse."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the inverse."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return ops.where(a > 1, self.rate / (a - 1), float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return ops.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), float("inf"))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
