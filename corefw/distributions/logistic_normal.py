"""The logistic-normal distribution."""

from __future__ import annotations

from corefw.distributions import constraints
from corefw.distributions.normal import Normal
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import StickBreakingTransform
from corefw.tensor import Tensor


class LogisticNormal(TransformedDistribution):
    """Distributions of vectors of K probabilities, made of K - 1 normal numbers by breaking a stick.

    Args:
        loc: the means of the normal numbers, shape (..., K - 1).
        scale: their standard deviations, shape (..., K - 1).

    >>> import corefw as torch
    >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).event_shape
    torch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=False)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale
