"""The half-normal distribution."""

from __future__ import annotations

import math

from corefw.distributions.half import Half
from corefw.distributions.normal import Normal
from corefw.tensor import Tensor


class HalfNormal(Half):
    """Distributions of ``|x|`` for normal x of mean 0 and standard deviation `scale`.

    Args:
        scale: the standard deviation of x, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _symmetric = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
