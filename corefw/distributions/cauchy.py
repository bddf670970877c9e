"""The Cauchy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions.location_scale import LocationScale
from corefw.tensor import Tensor


class Cauchy(LocationScale):
    """Cauchy distributions of the density ``1 / (pi * scale * (1 + ((x - loc) / scale)²))``; they have no mean.

    Args:
        loc: the median, shape (...).
        scale: half the width at half of the peak's height, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.Cauchy(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-1.1447)
    """

    @property
    def mean(self) -> Tensor:
        return ops.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return ops.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.loc.detach().new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
