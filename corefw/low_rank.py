"""Decompositions of low rank, of matrices in the last two dimensions."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.shapes import check_matrices
from corefw.tensor import Tensor


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """A singular value decomposition of rank `q`, near to the best one: ``A - M`` is about ``U @ diag(S) @ V.mH``.

    It is found in a random subspace of `q` dimensions, which each of `niter` iterations brings nearer to that of the
    greatest singular values.

    Args:
        A: shape (..., m, n).
        q: at most min(m, n); a little more than the rank that is wanted.
        niter: the number of iterations.
        M: what is subtracted from A, a shape that broadcasts with it; None for nothing.

    Returns:
        (U, S, V) of shapes (..., m, q), (..., q) and (..., n, q).

    Source: Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1.

    >>> import corefw as torch
    >>> U, S, V = torch.svd_lowrank(torch.ones(3, 2), q=1)
    >>> S
    tensor([2.4495])
    """
    check_matrices("svd_lowrank", A.shape)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    A = A if M is None else A - M
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(ops.resolve_conj(A.mH), q, niter)
        return U, S, V
    *batch, _, n = A.shape
    basis = ops.linalg_qr(A.matmul(ops.randn((*batch, n, q), dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        basis = ops.linalg_qr(ops.adjoint_matmul(A, basis))[0]
        basis = ops.linalg_qr(A.matmul(basis))[0]
    U, S, Vh = ops.svd_factors(ops.adjoint_matmul(basis, A), False)
    return basis.matmul(U), S, ops.resolve_conj(Vh.mH)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of the rows of `A`, by `svd_lowrank`.

    Args:
        A: shape (..., m, n): m samples of n features.
        q: how many components, at most min(m, n); None for 6, or fewer if there are not so many.
        center: whether the features' means are subtracted first.
        niter: the number of iterations.

    Returns:
        (U, S, V): V of shape (..., n, q) holds the directions, ``S**2 / (m - 1)`` are the variances along them.

    >>> import corefw as torch
    >>> U, S, V = torch.pca_lowrank(torch.tensor([[1.0, 2.0], [3.0, 2.0]]), q=1)
    >>> S
    tensor([1.4142])
    """
    check_matrices("pca_lowrank", A.shape)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)
