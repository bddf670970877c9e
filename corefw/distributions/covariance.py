"""What distributions with a covariance share: its factor, itself or its inverse, one of which is given."""

import math

from corefw.dispatch.declare import ops
from corefw.distributions.utils import lazy_property
from corefw.shapes import broadcast
from corefw.tensor import Tensor


class CovarianceMatrix:
    """The part of distributions with a covariance matrix, a precision matrix or a Cholesky factor of the covariance.

    The other two are computed when they are asked for.
    """

    def _set_covariance(self, covariance_matrix, precision_matrix, scale_tril, batch_shape=()) -> tuple[int, ...]:
        """Keep the one that is given, expanded to the batch, whose shape is returned."""
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified, "
                f"got {', '.join(name for name, _ in given) or 'none'}."
            )
        name, matrix = given[0]
        if matrix.ndim < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions, "
                f"got the shape {tuple(matrix.shape)}"
            )
        batch = broadcast(tuple(matrix.shape[:-2]), tuple(batch_shape))
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        return batch

    @lazy_property
    def scale_tril(self):
        """The lower triangular Cholesky factor of the covariance."""
        if "covariance_matrix" in self.__dict__:
            return ops.linalg_cholesky(self.covariance_matrix)
        return factor_of_inverse(self.precision_matrix)

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix."""
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix."""
        return ops.cholesky_inverse(self.scale_tril)


def factor_of_inverse(matrix: Tensor) -> Tensor:
    """The lower triangular Cholesky factor of the inverse of a positive definite matrix.

    The factor of the matrix with rows and columns in reverse gives ``matrix = U @ U.mT`` with an upper triangular U,
    and the inverse of ``U.mT`` is the factor.
    """
    lower = ops.linalg_cholesky(matrix.flip(-2, -1)).flip(-2, -1).mT
    identity = ops.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return ops.linalg_solve_triangular(lower, identity, upper=False)


def mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """``x @ inverse(factor @ factor.mT) @ x`` for vectors `x`, of shape (..., *batch, K) with `factor` (*batch, K, K).

    The samples before the batch are columns of one system, so that the factor is not repeated for them.
    """
    batch = factor.shape[:-2]
    x = x.expand((*broadcast(tuple(x.shape[:-1]), tuple(batch)), x.shape[-1]))
    first = x.ndim - 1 - len(batch)
    columns = x.reshape((-1, *x.shape[first:])).movedim(0, -1)
    solved = ops.linalg_solve_triangular(factor, columns, upper=False)
    return solved.square().sum(-2).movedim(-1, 0).reshape(x.shape[:-1])


def half_log_determinant(factor: Tensor) -> Tensor:
    """The sum of the logarithms of the diagonal, half the log-determinant of ``factor @ factor.mT``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def normal_entropy(size: int, half_log_det: Tensor) -> Tensor:
    """The entropy of normal vectors of `size` numbers with half the logarithm of their covariance's determinant."""
    return 0.5 * size * (1 + math.log(2 * math.pi)) + half_log_det
