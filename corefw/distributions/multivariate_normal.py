"""The normal distribution of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.covariance import (
    CovarianceMatrix,
    factor_of_inverse,
    half_log_determinant,
    mahalanobis,
    normal_entropy,
)
from corefw.distributions.distribution import Distribution  # noqa: F401, libraries look for it here
from corefw.distributions.location_scale import Located
from corefw.tensor import Tensor

#: PyTorch's name of it, which libraries import
_precision_to_scale_tril = factor_of_inverse


class MultivariateNormal(CovarianceMatrix, Located):
    """Normal distributions of vectors of K numbers. One of the three matrices is given.

    Args:
        loc: the mean, shape (..., K).
        covariance_matrix: positive definite, shape (..., K, K), or
        precision_matrix: its inverse, or
        scale_tril: its lower triangular Cholesky factor, which is cheapest.

    >>> import corefw as torch
    >>> torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        batch = self._set_covariance(covariance_matrix, precision_matrix, scale_tril, loc.shape[:-1])
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = ops.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self.scale_tril, value - self.loc)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_determinant(self.scale_tril)

    def entropy(self) -> Tensor:
        return normal_entropy(self.event_shape[0], half_log_determinant(self.scale_tril))
