"""The base of distributions of the absolute value of a number that is distributed symmetrically around 0."""

from __future__ import annotations

import math

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import AbsTransform
from corefw.tensor import Tensor


class Half(TransformedDistribution):
    """Distributions of ``|x|`` for x of `_symmetric`, with the location 0 and the scale `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _symmetric: type

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(self._symmetric(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ops.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
