"""The Weibull distribution."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.exponential import Exponential
from corefw.distributions.gumbel import EULER
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import AffineTransform, PowerTransform
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class Weibull(TransformedDistribution):
    """Weibull distributions of the cumulative probability ``1 - exp(-(x / scale) ** concentration)``.

    Args:
        scale: the scale, shape (...).
        concentration: the shape parameter, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ops.ones_like(self.scale), validate_args=False)
        transforms = [PowerTransform(self.concentration.reciprocal()), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, order):
        """The expected value of ``(x / scale) ** order``."""
        return (1 + order / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        power = self.concentration.reciprocal()
        return self.scale * (1 - power).clamp(min=0) ** power

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        return EULER * (1 - self.concentration.reciprocal()) + (self.scale / self.concentration).log() + 1
