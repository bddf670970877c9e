"""The Kumaraswamy distribution."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.gumbel import EULER
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import AffineTransform, PowerTransform
from corefw.distributions.uniform import Uniform
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class Kumaraswamy(TransformedDistribution):
    """Distributions on [0, 1] of the cumulative probability ``1 - (1 - x ** a) ** b``.

    Args:
        concentration1: a, shape (...).
        concentration0: b, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.Kumaraswamy(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = ops.zeros_like(self.concentration1)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(zeros, zeros + 1, validate_args=False), transforms, validate_args=validate_args)

    def _moment(self, order):
        """The expected value of ``x ** order``, ``b * B(1 + order / a, b)``."""
        a, b = 1 + order / self.concentration1, self.concentration0
        return (b.log() + a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return ops.where((a < 1) | (b < 1), float("nan"), mode)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
