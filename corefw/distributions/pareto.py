"""The Pareto distribution."""

from __future__ import annotations

from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.exponential import Exponential
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import AffineTransform, ExpTransform
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class Pareto(TransformedDistribution):
    """Pareto distributions of the density ``alpha * scale ** alpha / x ** (alpha + 1)`` for x >= scale.

    Args:
        scale: the smallest value, shape (...).
        alpha: the exponent of the tail, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)  # infinite from there on
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale.square() * alpha / ((alpha - 1).square() * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()
