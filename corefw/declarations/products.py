"""Products of matrices and vectors under the names of `corefw.linalg`."""

from __future__ import annotations

from itertools import pairwise

from corefw import dtypes
from corefw.dispatch.declare import composite, ops
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import check_square


@composite(out=True)
def linalg_matrix_power(A, n: int):
    """The power of square matrices, by repeated squaring; of the inverse for negative `n`.

    Args:
        A: shape (..., m, m).
        n: the exponent.

    >>> import corefw as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    check_square("linalg.matrix_power", A.shape)
    given = A
    if n == 0:
        return ops.zeros_like(A) + ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    if n < 0:
        A, n = ops.linalg_inv(A), -n
    result = A if n & 1 else None
    while n := n >> 1:
        A = A.matmul(A)
        if n & 1:
            result = A if result is None else result.matmul(A)
    return ops.clone(result) if result is given else result


@composite(out=True)
def linalg_multi_dot(tensors):
    """The product of two or more matrices, multiplied in the order that costs least.

    Args:
        tensors: matrices; the first and last may be vectors, taken as a row and a column.

    >>> import corefw as torch
    >>> torch.linalg.multi_dot([torch.ones(3), torch.ones(3, 2), torch.ones(2)])
    tensor(6.)
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise ShapeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    for i, tensor in enumerate(tensors):
        ends = i in (0, len(tensors) - 1)
        if tensor.ndim != 2 and not (ends and tensor.ndim == 1):
            raise ShapeError(f"multi_dot(): tensor {i} must be {'1D or 2D' if ends else '2D'} but got {tensor.ndim}D")
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if row:
        tensors[0] = tensors[0].unsqueeze(0)
    if column:
        tensors[-1] = tensors[-1].unsqueeze(-1)
    for i, (a, b) in enumerate(pairwise(tensors)):
        if a.shape[1] != b.shape[0]:
            raise ShapeError(
                f"multi_dot(): tensors {i} and {i + 1}, of shapes {list(a.shape)} and {list(b.shape)}, do not fit"
            )
    result = ops.chain_matmul(*tensors)
    if row:
        result = result.squeeze(0)
    return result.squeeze(-1) if column else result


@composite(out=True)
def linalg_cross(input, other, *, dim: int = -1):
    """The cross product of vectors of length 3.

    Args:
        input: shape with 3 elements along `dim`; broadcasts with `other`.
        other: likewise.
        dim: the vectors' dimension.

    >>> import corefw as torch
    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return ops.cross(input, other, dim)


@composite(out=True)
def linalg_vecdot(x, y, *, dim: int = -1):
    """The inner products of vectors, ``sum(conj(x) * y)`` along `dim`.

    >>> import corefw as torch
    >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    return (x.conj() * y).sum(dim)


@composite()
def linalg_diagonal(A, *, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """The diagonal of matrices, a view.

    >>> import corefw as torch
    >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


@composite(out=True)
def matrix_power(input, n: int):
    """The power of square matrices; `linalg.matrix_power`.

    >>> import corefw as torch
    >>> torch.matrix_power(torch.tensor([[2.0]]), 3)
    tensor([[8.]])
    """
    return linalg_matrix_power(input, n)


@composite()
def linalg_vander(x, *, N: int | None = None):
    """Vandermonde's matrices: the powers 0, 1, ... of the elements of `x` along a new last dimension.

    Args:
        x: shape (..., n), or () for n = 1; floating, complex or integers (int64 ones then).
        N: how many powers, at least 2; n unless given.

    Returns:
        Shape (..., n, N).

    >>> import corefw as torch
    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    if x.dtype.category == dtypes.BOOL:
        raise DtypeError("linalg.vander supports floating point, complex, and integer tensors, but got Bool")
    count = (x.shape[-1] if x.ndim else 0) if N is None else N
    if count < 2:
        raise ShapeError("N must be greater than 1.")
    x = x if x.ndim else x.unsqueeze(0)
    powers = x.unsqueeze(-1).expand((*x.shape, count - 1)).cumprod(-1)
    return ops.cat([ops.ones_like(powers[..., :1]), powers], -1)


@composite(public="corefw")
def vander(x, N: int | None = None, increasing: bool = False):
    """Vandermonde's matrix: the powers ``N - 1, ..., 1, 0`` of the elements of a vector, or ``0, 1, ..., N - 1``.

    Args:
        x: one dimension.
        N: how many powers; as many as elements unless given.
        increasing: whether the powers ascend.

    >>> import corefw as torch
    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.ndim != 1:
        raise ShapeError("x must be a one-dimensional tensor.")
    count = x.numel() if N is None else N
    if count < 0:
        raise ShapeError("N must be non-negative.")
    wide = dtypes.int64 if x.dtype.category < dtypes.FLOATING else x.dtype
    exponents = ops.arange(count, device=x.device)
    return x.to(wide).unsqueeze(1) ** (exponents if increasing else exponents.flip(0))
