"""Elimination with row exchanges: LU decompositions, and what is solved by them.

Every op takes matrices in the last two dimensions; those before are a batch. `corefw.linalg` offers them.
"""

from __future__ import annotations

from math import prod

from corefw.declarations._shared.batching import from_the_end
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.rules import exponents, floats, same
from corefw.dtypes import int32
from corefw.errors import LinAlgError, ShapeError
from corefw.shapes import check_matrices, check_square

#: how many columns are eliminated before the others follow by one product
_PANEL = 32


def _lu_shape(A, pivot=True):
    check_matrices("linalg.lu_factor", A)
    return A, (*A[:-2], min(A[-2:]))


@composite(
    dtype=floats.giving(same, exponents),
    shape=_lu_shape,
    outputs=("LU", "pivots"),
    public="",
    grad_name="LinalgLuFactorEx",
)
def lu_factors(A, pivot: bool):
    """L below the diagonal and U on and above it, and the rows, counted from 1, that rows were exchanged with.

    Source: Golub and Van Loan, "Matrix Computations" (4th edition), algorithms 3.4.1 and 3.4.2, by panels of columns.
    """
    *batch, m, n = A.shape
    count, steps = prod(batch), min(m, n)
    LU = A.detach().clone().reshape(count, m, n)
    pivots = ops.empty((count, steps), dtype=int32, device=A.device)
    each = ops.arange(count, device=A.device)
    for start in range(0, steps, _PANEL):
        stop = min(start + _PANEL, steps)
        for j in range(start, stop):
            at = _greatest(LU[:, j:, j]) + j if pivot else each * 0 + j
            pivots[:, j] = (at + 1).to(int32)
            row = LU[each, at].clone()
            LU[each, at] = LU[:, j].clone()
            LU[:, j] = row
            divisor = LU[:, j, j]
            LU[:, j + 1 :, j] /= divisor.masked_fill(divisor == 0, 1).unsqueeze(-1)
            LU[:, j + 1 :, j + 1 : stop] -= LU[:, j + 1 :, j : j + 1] * LU[:, j : j + 1, j + 1 : stop]
        if stop < n:
            right = LU[:, start:stop, stop:]
            right.copy_(
                ops.linalg_solve_triangular(LU[:, start:stop, start:stop], right, upper=False, unitriangular=True)
            )
            LU[:, stop:, stop:] -= LU[:, stop:, start:stop].matmul(right)
    return LU.reshape(A.shape), pivots.reshape(*batch, steps)


lu_factors.batching(from_the_end)


def _greatest(column):
    """The position of the greatest element of each column, by the sum of its parts' moduli, as in LAPACK."""
    return (column.real.abs() + column.imag.abs() if column.is_complex() else column.abs()).argmax(-1)


@lu_factors.gradient("A")
def lu_factors_vjp(grad_LU, grad_pivots, LU, pivots, pivot):
    # with A = P @ L @ U; of rectangular matrices [L1; L2] @ U or L @ [U1, U2] the second factor is solved for
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U = LU[..., :k].tril(-1), LU[..., :k, :].triu()
    square_L = L[..., :k, :] + ops.eye(k, dtype=LU.dtype, device=LU.device)
    square_U = U[..., :k]
    grad_L, grad_U = grad_LU[..., :k, :k].tril(-1), grad_LU[..., :k, :k].triu()
    below, right = ops.adjoint_matmul(square_L, grad_L), ops.matmul_adjoint(grad_U, square_U)
    beside = None
    if m > n:
        beside = grad_LU[..., k:, :]
        right = right - ops.adjoint_matmul(L[..., k:, :], beside)
    elif n > m:
        beside = grad_LU[..., k:]
        below = below - ops.matmul_adjoint(beside, U[..., k:])
    of_square = _right_solved(square_U, below.tril(-1) + right.triu())
    grad = _left_solved(square_L, of_square)
    if m > n:
        grad = ops.cat([grad, _right_solved(square_U, beside)], -2)
    elif n > m:
        grad = ops.cat([grad, _left_solved(square_L, beside)], -1)
    return _permuted(pivots, m, LU).matmul(grad)


def _right_solved(U, grad):
    """``grad @ inv(U).mH`` of an upper triangular matrix."""
    return ops.linalg_solve_triangular(U.mH, grad, upper=False, left=False)


def _left_solved(L, grad):
    """``inv(L).mH @ grad`` of a lower triangular matrix with ones on its diagonal."""
    return ops.linalg_solve_triangular(L.mH, grad, upper=True, unitriangular=True)


def _permuted(pivots, rows: int, like):
    """The permutation matrix P of ``A = P @ L @ U``."""
    *batch, steps = pivots.shape
    count = prod(batch)
    exchanged = pivots.to(ops.arange(0).dtype).reshape(count, steps) - 1
    order = ops.arange(rows, device=pivots.device).expand(count, rows).clone()
    each = ops.arange(count, device=pivots.device)
    for j in range(steps):
        at = exchanged[:, j]
        row = order[each, at].clone()
        order[each, at] = order[:, j].clone()
        order[:, j] = row
    return ops.eye(rows, dtype=like.dtype, device=like.device)[order.reshape(*batch, rows)].mT


_SINGULAR = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def _first_zero(LU):
    """For each matrix the first diagonal element of U that is 0, counted from 1; 0 if there is none."""
    zero = LU.detach().diagonal(0, -2, -1) == 0
    if not zero.shape[-1]:
        return zero.sum(-1).to(int32)
    return ops.where(zero.any(-1), zero.to(int32).argmax(-1) + 1, 0).to(int32)


@composite(out=True, outputs=("LU", "pivots"), result_name="linalg_lu_factor")
def linalg_lu_factor(A, *, pivot: bool = True):
    """The LU decomposition of matrices in the compact form that `linalg.lu_solve` takes.

    Args:
        A: shape (..., m, n).
        pivot: whether rows are exchanged, which is needed for accuracy.

    Returns:
        LU of A's shape: L below the diagonal, without its ones, U on and above it; pivots of shape (..., min(m, n)),
        int32: the row, counted from 1, that each row was exchanged with.

    Raises:
        LinAlgError: a diagonal element of U is 0.

    >>> import corefw as torch
    >>> torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 8.0]])).LU
    tensor([[ 2.0000,  8.0000],
            [ 0.5000, -2.0000]])
    """
    LU, pivots = ops.lu_factors(A, pivot)
    _refuse_zeros("linalg.lu_factor", _first_zero(LU))
    return linalg_lu_factor.op.result_type(LU, pivots)


def _refuse_zeros(name: str, info) -> None:
    if info.dispatch_key.device.type != "meta" and (found := int(all_examples(info).max()) if info.numel() else 0):
        raise LinAlgError(f"{name}: {_SINGULAR.format(found)}")


@composite(out=True, outputs=("LU", "pivots", "info"), result_name="linalg_lu_factor_ex")
def linalg_lu_factor_ex(A, *, pivot: bool = True, check_errors: bool = False):
    """`linalg.lu_factor`, which tells of zeros on the diagonal of U instead of raising.

    Args:
        A: shape (..., m, n).
        pivot: whether rows are exchanged.
        check_errors: whether zeros are an error nevertheless.

    Returns:
        LU and pivots as `linalg.lu_factor`; info of shape (...), int32: the first diagonal element that is 0, counted
        from 1, or 0.

    >>> import corefw as torch
    >>> torch.linalg.lu_factor_ex(torch.ones(2, 2)).info
    tensor(2, dtype=torch.int32)
    """
    LU, pivots = ops.lu_factors(A, pivot)
    info = _first_zero(LU)
    if check_errors:
        _refuse_zeros("linalg.lu_factor_ex", info)
    return linalg_lu_factor_ex.op.result_type(LU, pivots, info)


@composite(out=True, outputs=("P", "L", "U"), result_name="linalg_lu")
def linalg_lu(A, *, pivot: bool = True):
    """The decomposition ``A = P @ L @ U``: a permutation, a lower triangular matrix with ones on its diagonal, an upper
    triangular one.

    Args:
        A: shape (..., m, n).
        pivot: whether rows are exchanged; else P is empty.

    Returns:
        P of shape (..., m, m), L of shape (..., m, k), U of shape (..., k, n), with k = min(m, n).

    >>> import corefw as torch
    >>> P, L, U = torch.linalg.lu(torch.tensor([[1.0, 2.0], [2.0, 8.0]]))
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 8.]])
    """
    LU, pivots = ops.lu_factors(A, pivot)
    P = _permuted(pivots, A.shape[-2], LU) if pivot else LU.new_empty((0,))
    return linalg_lu.op.result_type(P, *_triangles(LU))


def _triangles(LU):
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = LU[..., :k].tril(-1) + ops.eye(m, k, dtype=LU.dtype, device=LU.device)
    return L, LU[..., :k, :].triu()


@composite(out=True, outputs=("P", "L", "U"), result_name="lu_unpack")
def lu_unpack(LU_data, LU_pivots: Index, unpack_data: bool = True, unpack_pivots: bool = True):
    """The matrices of a compact LU decomposition, ``P @ L @ U``.

    Args:
        LU_data, LU_pivots: what `linalg.lu_factor` gave.
        unpack_data: whether L and U are wanted; else they are empty.
        unpack_pivots: whether P is wanted; else it is empty.

    >>> import corefw as torch
    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 8.0]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    check_matrices("lu_unpack", LU_data.shape)
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise ShapeError(
            "lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, from linalg.lu_factor, "
            f"but got {LU_pivots.dtype}"
        )
    P = _permuted(LU_pivots, LU_data.shape[-2], LU_data) if unpack_pivots else LU_data.new_empty((0,))
    L, U = _triangles(LU_data) if unpack_data else (LU_data.new_empty((0,)), LU_data.new_empty((0,)))
    return lu_unpack.op.result_type(P, L, U)


@composite(out=True)
def linalg_lu_solve(LU, pivots: Index, B, *, left: bool = True, adjoint: bool = False):
    """The solution X of ``A @ X = B`` from the LU decomposition of A.

    Args:
        LU, pivots: what `linalg.lu_factor` gave of square matrices, shapes (..., n, n) and (..., n).
        B: shape (..., n, k), with `left` False (..., k, n).
        left: on which side of X the matrix stands.
        adjoint: whether ``A.mH`` stands there instead.

    >>> import corefw as torch
    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 8.0]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[3.0], [10.0]]))
    tensor([[1.],
            [1.]])
    """
    check_square("linalg.lu_solve", LU.shape)
    check_matrices("linalg.lu_solve", B.shape)
    if pivots.dtype is not int32:
        raise ShapeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if not left:  # X @ A = B: A.mH @ X.mH = B.mH
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    P, L, U = _permuted(pivots, LU.shape[-2], LU), LU, LU
    if not adjoint:
        Y = ops.linalg_solve_triangular(L, P.mT.matmul(B), upper=False, unitriangular=True)
        return ops.linalg_solve_triangular(U, Y, upper=True)
    Y = ops.linalg_solve_triangular(U.mH, B, upper=False)
    return P.matmul(ops.linalg_solve_triangular(L.mH, Y, upper=True, unitriangular=True))


@composite(out=True)
def lu_solve(b, LU_data, LU_pivots: Index):
    """`linalg.lu_solve` with the arguments in another order.

    >>> import corefw as torch
    >>> torch.lu_solve(torch.ones(1, 1), *torch.linalg.lu_factor(torch.tensor([[2.0]])))
    tensor([[0.5000]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, b)
