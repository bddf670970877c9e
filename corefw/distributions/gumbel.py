"""The Gumbel distribution."""

from __future__ import annotations

import math

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.exponential import Exponential
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import AffineTransform, ExpTransform
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor

EULER = 0.57721566490153286061


class Gumbel(TransformedDistribution):
    """Gumbel distributions of the cumulative probability ``exp(-exp(-(x - loc) / scale))``.

    They are those of ``loc - scale * log(e)`` for e of the exponential distribution.

    Args:
        loc: the most probable value, shape (...).
        scale: the scale, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        base = Exponential(ops.ones_like(self.loc), validate_args=False)
        transforms = [ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
