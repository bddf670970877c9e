"""The base of symmetric distributions on the real line that are moved by a location and stretched by a scale."""

from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import broadcast_all


class LocationScale(Distribution):
    """Distributions of ``loc + scale * x``, where x is distributed symmetrically around its only peak at 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc
