"""The half-Cauchy distribution."""

from __future__ import annotations

import math

from corefw.dispatch.declare import ops
from corefw.distributions.cauchy import Cauchy
from corefw.distributions.half import Half
from corefw.tensor import Tensor


class HalfCauchy(Half):
    """Distributions of ``|x|`` for x of a Cauchy distribution around 0; their mean is infinite.

    Args:
        scale: the median, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.HalfCauchy(2.0).cdf(torch.tensor(2.0))
    tensor(0.5000)
    """

    _symmetric = Cauchy

    @property
    def mean(self) -> Tensor:
        return ops.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
