"""Decompositions, inverses and solutions that tell which matrices have none, instead of raising.

Every op takes matrices in the last two dimensions; those before are a batch. `corefw.linalg` offers them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan, prod

from corefw.dispatch.declare import composite, ops
from corefw.dtypes import int32
from corefw.errors import LinAlgError
from corefw.shapes import check_square


def _tried(compute: Callable, refused: Callable, A, check_errors: bool) -> tuple:
    """(``compute(A)``, for each matrix what is wrong with it as a number, 0 for nothing); where something is wrong, the
    result is that of the identity, made NaN."""
    info = ops.zeros(A.shape[:-2], dtype=int32, device=A.device)
    try:
        return compute(A), info
    except LinAlgError:
        if check_errors:
            raise
    info = refused(A.detach())
    wrong = (info != 0).unsqueeze(-1).unsqueeze(-1)
    eye = ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    result = compute(ops.where(wrong, eye, A))
    vectors = result.ndim < wrong.ndim
    return result.masked_fill(wrong.squeeze(-1) if vectors else wrong, nan), info


def _first_minor(A):
    """For each matrix the order of the first leading minor that is not positive-definite."""
    matrices = A.reshape(prod(A.shape[:-2]), *A.shape[-2:])
    info = ops.zeros(len(matrices), dtype=int32, device=A.device)
    for number, matrix in enumerate(matrices):
        for order in range(1, A.shape[-1] + 1):
            try:
                ops.cholesky_factor(matrix[:order, :order])
            except LinAlgError:
                info[number] = order
                break
    return info.reshape(A.shape[:-2])


def _first_pivot(A):
    """For each matrix the first pivot that is 0."""
    return ops.linalg_lu_factor_ex(A)[2]


@composite(out=True, outputs=("L", "info"), result_name="linalg_cholesky_ex")
def linalg_cholesky_ex(A, *, upper: bool = False, check_errors: bool = False):
    """`linalg.cholesky`, which tells of matrices that are not positive-definite instead of raising.

    Args:
        A: shape (..., n, n).
        upper: whether the result is ``L.mH``.
        check_errors: whether such matrices are an error nevertheless.

    Returns:
        L, NaN where there is none; info of shape (...), int32: the order of the first leading minor that is not
        positive-definite, or 0.

    >>> import corefw as torch
    >>> torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=torch.int32)
    """
    check_square("linalg.cholesky_ex", A.shape)
    L, info = _tried(ops.linalg_cholesky, _first_minor, A.mH if upper else A, check_errors)
    return linalg_cholesky_ex.op.result_type(ops.resolve_conj(L.mH) if upper else L, info)


@composite(out=True, outputs=("inverse", "info"), result_name="linalg_inv_ex")
def linalg_inv_ex(A, *, check_errors: bool = False):
    """`linalg.inv`, which tells of singular matrices instead of raising.

    Args:
        A: shape (..., n, n).
        check_errors: whether singular matrices are an error nevertheless.

    Returns:
        The inverse, NaN where there is none; info of shape (...), int32: the first pivot that is 0,
            counted from 1, or 0.

    >>> import corefw as torch
    >>> torch.linalg.inv_ex(torch.ones(2, 2)).info
    tensor(2, dtype=torch.int32)
    """
    check_square("linalg.inv_ex", A.shape)
    return linalg_inv_ex.op.result_type(*_tried(ops.linalg_inv, _first_pivot, A, check_errors))


@composite(out=True, outputs=("result", "info"), result_name="linalg_solve_ex")
def linalg_solve_ex(A, B, *, left: bool = True, check_errors: bool = False):
    """`linalg.solve`, which tells of singular matrices instead of raising.

    Args:
        A, B, left: as for `linalg.solve`.
        check_errors: whether singular matrices are an error nevertheless.

    Returns:
        The solution, NaN where there is none; info of A's batch, int32: the first pivot that is 0,
            counted from 1, or 0.

    >>> import corefw as torch
    >>> torch.linalg.solve_ex(torch.ones(2, 2), torch.ones(2)).info
    tensor(2, dtype=torch.int32)
    """

    def compute(matrices):
        return ops.linalg_solve(matrices, B, left=left)

    return linalg_solve_ex.op.result_type(*_tried(compute, _first_pivot, A, check_errors))
