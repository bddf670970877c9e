"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.location_scale import LocationScale
from corefw.tensor import Tensor


class Normal(LocationScale, ExponentialFamily):
    """Normal distributions of mean `loc` and standard deviation `scale`.

    >>> import corefw as torch
    >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = ops.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (
            -((value - self.loc).square()) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) / self.scale / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self):
        precision = self.scale.square().reciprocal()
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x, y):
        return -x.square() / (4 * y) + 0.5 * (-math.pi / y).log()
