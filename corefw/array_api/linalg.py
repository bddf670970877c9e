"""The array API's linear algebra: the functions of the main namespace, and the extension."""

from __future__ import annotations

from typing import Any

import corefw
from corefw.array_api.data_types import promoted
from corefw.array_api.manipulation import matrix_transpose
from corefw.array_api.statistics import sum as _sum
from corefw.dtypes import dtype
from corefw.tensor import Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices or vectors."""
    return corefw.matmul(*promoted(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products along axes: the last of `x1` and the first of `x2`, or those given for each."""
    a, b = promoted(x1, x2)
    return corefw.tensordot(a, b, dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot product of vectors along an axis of both, the first conjugated; the other axes broadcast.

    Raises ValueError if the sizes along the axis differ.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().vecdot(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor(11)
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: sizes {x1.shape[axis]} and {x2.shape[axis]} along axis {axis} differ")
    a, b = promoted(x1, x2)
    return (a.conj() * b).sum(axis, dtype=a.dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis."""
    a, b = corefw.broadcast_tensors(*promoted(x1, x2))
    return corefw.linalg.cross(a, b, dim=axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of another."""
    return corefw.outer(*promoted(x1, x2))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices, `offset` places right of the main ones."""
    return corefw.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """The sums of the diagonals of matrices, `offset` places right of the main ones."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive definite matrices, the lower ones unless `upper`."""
    return corefw.linalg.cholesky(x, upper=upper)


def det(x: Tensor, /) -> Tensor:
    """The determinants of matrices."""
    return corefw.linalg.det(x)


def eigh(x: Tensor, /) -> Any:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices."""
    return corefw.linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues, ascending, of Hermitian matrices."""
    return corefw.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of matrices."""
    return corefw.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norms of matrices: 'fro', 'nuc', 1, 2, inf, or the negatives of these numbers."""
    return corefw.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of `n` times the same square matrix, inverted for negative `n`."""
    return corefw.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values of matrices that exceed `rtol` times the largest."""
    return corefw.linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudoinverses of matrices; singular values up to `rtol` times the largest are taken for zero."""
    return corefw.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The QR decompositions of matrices, with as many columns of Q as needed, or with `mode` "complete" all."""
    return corefw.linalg.qr(x, mode=mode)


def slogdet(x: Tensor, /) -> Any:
    """The signs of the determinants of matrices, and the logarithms of their magnitudes."""
    return corefw.linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of x1 @ X = x2; `x2` is a vector only if it has one dimension.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().linalg.solve(torch.eye(2) * 2, torch.tensor([2.0, 4.0]))
    tensor([1., 2.])
    """
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return corefw.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = corefw.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return corefw.linalg.solve(a, b.expand(*batch, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decompositions of matrices: U, S, Vh."""
    return corefw.linalg.svd(x, full_matrices=full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, descending."""
    return corefw.linalg.svdvals(x)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norms of vectors along axes, all axes together if `axis` is None."""
    if axis == ():
        return x.abs() if ord else (x != 0).to(x.abs().dtype)
    return corefw.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
