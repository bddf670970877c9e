"""The Laplace distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.distributions.location_scale import LocationScale
from corefw.dtypes import finfo
from corefw.tensor import Tensor


class Laplace(LocationScale):
    """Laplace distributions of the density ``exp(-|x - loc| / scale) / (2 * scale)``.

    >>> import corefw as torch
    >>> torch.distributions.Laplace(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.6931)
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # -1 is left out: its logarithm below would be infinite
        u = self.loc.detach().new_empty(shape).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
