"""The Wishart distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.chi2 import Chi2
from corefw.distributions.covariance import CovarianceMatrix, half_log_determinant
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class Wishart(CovarianceMatrix, ExponentialFamily):
    """Wishart distributions of K by K matrices: of the sum of ``x @ x.mT`` over `df` normal vectors x.

    Args:
        df: the degrees of freedom, more than K - 1, a number or shape (...); it need not be whole.
        covariance_matrix: that of a vector, shape (..., K, K), or
        precision_matrix: its inverse, or
        scale_tril: its lower triangular Cholesky factor, which is cheapest.

    >>> import corefw as torch
    >>> torch.distributions.Wishart(3.0, torch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {
        "df": constraints.greater_than(0),
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        batch = self._set_covariance(
            covariance_matrix, precision_matrix, scale_tril, df.shape if isinstance(df, Tensor) else ()
        )
        matrix = next(m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None)
        self.df = broadcast_all(df, matrix[..., 0, 0])[0].expand(batch)
        size = matrix.shape[-1]
        if bool((self.df <= size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        super().__init__(batch, (size, size), validate_args=validate_args)

    @property
    def _size(self):
        return self.event_shape[0]

    def _df(self):
        """The degrees of freedom with the dimensions of a matrix."""
        return self.df.reshape((*self.df.shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df() - self._size - 1
        return ops.where(factor > 0, factor * self.covariance_matrix, math.nan)

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df() * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Random matrices, by Bartlett's decomposition: chi numbers on the diagonal of a factor, normal ones below."""
        shape = self._extended_shape(sample_shape)
        rows = ops.arange(self._size, dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df.unsqueeze(-1) - rows, validate_args=False).rsample(sample_shape)
        noise = ops.randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1)
        factor = self.scale_tril @ (noise + squares.sqrt().diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor = ops.linalg_cholesky(value)
        trace = ops.linalg_solve_triangular(self.scale_tril, factor, upper=False).square().sum((-2, -1))
        power = (self.df - self._size - 1) * half_log_determinant(factor)
        return power - 0.5 * trace - self._log_constant

    @property
    def _log_constant(self):
        """The logarithm of the integral of ``det(x) ** ((df - K - 1) / 2) * exp(-trace(inverse(V) @ x) / 2)``."""
        half = 0.5 * self.df
        scale = half * self._size * math.log(2) + self.df * half_log_determinant(self.scale_tril)
        return scale + half.mvlgamma(self._size)

    def entropy(self) -> Tensor:
        half, size = 0.5 * self.df, self._size
        numbers = ops.arange(size, dtype=self.df.dtype, device=self.df.device)
        digammas = (half.unsqueeze(-1) - 0.5 * numbers).digamma().sum(-1)
        log_det = 2 * half_log_determinant(self.scale_tril) + size * math.log(2) + digammas
        return self._log_constant - 0.5 * (self.df - size - 1) * log_det + half * size

    @property
    def _natural_params(self):
        return 0.5 * (self.df - self._size - 1), -0.5 * self.precision_matrix

    def _log_normalizer(self, x, y):
        half = x + 0.5 * (self._size + 1)
        return half.mvlgamma(self._size) - half * ops.linalg_slogdet(-y)[1]
