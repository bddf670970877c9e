"""Bases of distributions around a location, and of those that are stretched by a scale as well."""

from __future__ import annotations

from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class Located(Distribution):
    """Distributions symmetric around their only peak, `loc`."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class LocationScale(Located):
    """Distributions of ``loc + scale * x``, where x is distributed symmetrically around its only peak at 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
