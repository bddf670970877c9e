"""The normal distribution of vectors whose covariance is of low rank but for its diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.covariance import half_log_determinant, mahalanobis, normal_entropy
from corefw.distributions.location_scale import Located
from corefw.distributions.utils import lazy_property
from corefw.shapes import broadcast
from corefw.tensor import Tensor


class LowRankMultivariateNormal(Located):
    """Normal distributions of vectors of K numbers with the covariance ``W @ W.mT + diag(D)``.

    Nothing of K by K elements is factored: Woodbury's identity and the lemma of determinants need the factor of the
    capacitance, ``I + W.mT @ diag(1 / D) @ W``, which is R by R.

    Args:
        loc: the mean, shape (..., K).
        cov_factor: W, shape (..., K, R).
        cov_diag: D, positive, shape (..., K).

    >>> import corefw as torch
    >>> d = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
    >>> d.variance
    tensor([2., 1.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {tuple(event)}")
        batch = broadcast(*(tuple(s) for s in (loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])))
        self.loc = loc.expand((*batch, -1))
        self.cov_factor = cov_factor.expand((*batch, -1, -1))
        self.cov_diag = cov_diag.expand((*batch, -1))
        super().__init__(batch, event, validate_args=validate_args)

    @lazy_property
    def _capacitance_tril(self):
        return capacitance_factor(self.cov_factor, self.cov_diag)

    @lazy_property
    def variance(self):
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self):
        """The lower triangular Cholesky factor of the covariance."""
        return ops.linalg_cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = ops.linalg_solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - solved.mT @ solved

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        low = ops.randn((*shape[:-1], self.cov_factor.shape[-1]), **options)
        noise = ops.randn(shape, **options)
        return self.loc + (self.cov_factor @ low.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * noise

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = low_rank_mahalanobis(self.cov_factor, self.cov_diag, value - self.loc, self._capacitance_tril)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_determinant

    @property
    def _half_log_determinant(self):
        return half_log_determinant(self._capacitance_tril) + 0.5 * self.cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        return normal_entropy(self.event_shape[0], self._half_log_determinant)


def capacitance_factor(factor, diagonal):
    """The Cholesky factor of ``I + factor.mT @ diag(1 / diagonal) @ factor``."""
    identity = ops.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return ops.linalg_cholesky(identity + (factor.mT / diagonal.unsqueeze(-2)) @ factor)


def low_rank_mahalanobis(factor, diagonal, x, capacitance_tril):
    """``x @ inverse(factor @ factor.mT + diag(diagonal)) @ x`` for vectors `x`."""
    projected = ((factor.mT / diagonal.unsqueeze(-2)) @ x.unsqueeze(-1)).squeeze(-1)
    return (x.square() / diagonal).sum(-1) - mahalanobis(capacitance_tril, projected)
