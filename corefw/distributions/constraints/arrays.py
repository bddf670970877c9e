"""Constraints of vectors and matrices."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.constraints.scalars import Boolean
from corefw.dtypes import finfo
from corefw.tensor import Tensor


class Simplex(Constraint):
    """Vectors of numbers that are not negative and sum to 1."""

    event_dim = 1

    def check(self, value):
        tolerance = max(1e-6, 4 * finfo(value.dtype).eps)
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < tolerance)


class OneHot(Constraint):
    """Vectors of zeros and a single one."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        return Boolean().check(value).all(-1) & (value.sum(-1) == 1)


class Multinomial(Constraint):
    """Vectors of counts that sum to at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Matrix(Constraint):
    """A set of matrices."""

    event_dim = 2


class LowerTriangular(_Matrix):
    """Matrices that are zero above the diagonal."""

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class LowerCholesky(LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """Lower triangular matrices with a positive diagonal, whose rows have the length 1: factors of correlations."""

    def check(self, value):
        tolerance = 10 * value.shape[-1] * finfo(value.dtype).eps
        length = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((length - 1).abs() <= tolerance).all(-1)


class Square(_Matrix):
    """Matrices with as many rows as columns."""

    def check(self, value):
        return ops.full(value.shape[:-2], value.shape[-2] == value.shape[-1], device=value.device)


class Symmetric(Square):
    """Matrices that are their own transpose, within 1e-6."""

    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return value.isclose(value.mT, atol=1e-6).all(-1).all(-1)


class PositiveSemidefinite(Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value):
        symmetric = super().check(value)
        return symmetric & (ops.linalg_eigvalsh(value) >= 0).all(-1) if bool(symmetric.all()) else symmetric


class PositiveDefinite(Symmetric):
    """Symmetric matrices with positive eigenvalues, that is, with a Cholesky factor."""

    def check(self, value):
        symmetric = super().check(value)
        return ops.linalg_cholesky_ex(value)[1] == 0 if bool(symmetric.all()) else symmetric
