"""Decompositions of matrices, and what is computed from them: inverses, determinants, solutions and norms.

Every op takes matrices in the last two dimensions; those before are a batch. `corefw.linalg` offers them.
The gradients of the decompositions are those of Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), unless a formula names another source.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, prod

from corefw import return_types
from corefw.dispatch.declare import Dims, composite, ops, primitive
from corefw.dispatch.rules import real, same
from corefw.dtypes import dtype, finfo, int64
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import broadcast, canonical_dim

Number = bool | int | float | complex

_field = same.without("bool", "integer")
_modulus = real.without("bool", "integer")


def _matrices(name: str, shape) -> None:
    if len(shape) < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def _square(name: str, shape):
    _matrices(name, shape)
    if shape[-1] != shape[-2]:
        raise ShapeError(
            f"{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
    return shape


def _fields(name: str, *tensors) -> None:
    """Refuse dtypes that bodies, which declare none, do not take."""
    for tensor in tensors:
        if tensor.dtype.category < 2:
            raise DtypeError(f"{name}: Expected a floating point or complex tensor as input. Got {tensor.dtype.title}")


# -- inverse and solutions --------------------------------------------------------------------------------------------
@primitive(dtype=_field, shape=lambda A: _square("linalg.inv", A), method=False, out=True, grad_name="LinalgInvEx")
def linalg_inv(A):
    """The inverse of square matrices.

    Args:
        A: shape (..., n, n).

    Raises:
        LinAlgError: a matrix is singular.

    >>> import corefw as torch
    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """


@linalg_inv.gradient("A")
def _(grad, out):
    return -ops.matmul_adjoint(ops.adjoint_matmul(out, grad), out)


def _solve_shape(A, B):
    _square("linalg.solve", A)
    if len(B) < 2 or A[-1] != B[-2]:
        raise ShapeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation AX = B ({A[-2]}x{A[-1]} and "
            f"{'x'.join(map(str, B[-2:]))})"
        )
    return (*broadcast(A[:-2], B[:-2]), *B[-2:])


@primitive(dtype=_field, shape=_solve_shape, method=False, grad_name="LinalgSolveEx")
def solve_matrices(A, B):
    """The solution X of ``A @ X = B`` for square matrices A and matrices B."""


@solve_matrices.gradient("A", "B")
def _(grad, A, out, needs):
    grad_b = ops.solve_matrices(A.mH, grad)
    return -ops.matmul_adjoint(grad_b, out) if needs[0] else None, grad_b if needs[1] else None


@composite(method=False, out=True)
def linalg_solve(A, B, *, left: bool = True):
    """The solution X of ``A @ X = B``, or of ``X @ A = B``.

    Args:
        A: shape (..., n, n).
        B: shape (..., n, k), with `left` False (..., k, n); or a vector for each matrix: (n,), or `A`'s shape without
            its last dimension.
        left: on which side of X the matrix stands.

    Returns:
        X in the shape of `B`, its batch broadcast with that of `A`.

    Raises:
        LinAlgError: a matrix is singular.

    >>> import corefw as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([0.5000, 0.2500])
    """
    _square("linalg.solve", A.shape)
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if vectors:
        if not left:
            raise ShapeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
        return ops.solve_matrices(A, B.unsqueeze(-1)).squeeze(-1)
    if left:
        return ops.solve_matrices(A, B)
    return ops.solve_matrices(A.mT, B.mT).mT


@composite(method=False, out=True)
def linalg_solve_triangular(A, B, *, upper: bool, left: bool = True, unitriangular: bool = False):
    """The solution X of ``A @ X = B``, or of ``X @ A = B``, with a triangular matrix.

    Args:
        A: shape (..., n, n), of which the other triangle is not read.
        B: shape (..., n, k), with `left` False (..., k, n).
        upper: whether the upper triangle counts.
        left: on which side of X the matrix stands.
        unitriangular: whether the diagonal is taken to be 1.

    >>> import corefw as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.0, 9.0], [1.0, 1.0]]), torch.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    _square("linalg.solve_triangular", A.shape)
    _matrices("linalg.solve_triangular", B.shape)
    if unitriangular:
        A = A.triu(1) if upper else A.tril(-1)
        A = A + ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    else:
        A = A.triu() if upper else A.tril()
    return ops.solve_matrices(A, B) if left else ops.solve_matrices(A.mT, B.mT).mT


# -- decompositions ---------------------------------------------------------------------------------------------------
@primitive(dtype=_field, shape=lambda A: _square("linalg.cholesky", A), method=False, grad_name="LinalgCholeskyEx")
def cholesky_factor(A):
    """The lower triangular L of ``A = L @ L.mH``."""


def _half(matrix):
    """The lower triangle with half the diagonal: the inverse of ``L -> L + L.mH`` for triangular L."""
    return matrix.tril() - matrix.diagonal(0, -2, -1).diag_embed() * 0.5


@cholesky_factor.gradient("A")
def _(grad, out):
    # Murray, "Differentiation of the Cholesky decomposition" (2016)
    middle = _half(ops.adjoint_matmul(out, grad))
    middle = (middle + middle.mH) * 0.5
    inverse = ops.linalg_inv(out)
    return ops.adjoint_matmul(inverse, middle).matmul(inverse)


@composite(method=False, out=True)
def linalg_cholesky(A, *, upper: bool = False):
    """The Cholesky decomposition ``A = L @ L.mH`` of Hermitian positive-definite matrices, L lower triangular.

    Args:
        A: shape (..., n, n), of which the lower triangle is read.
        upper: whether the result is ``L.mH``.

    Raises:
        LinAlgError: a matrix is not positive-definite.

    >>> import corefw as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    if upper:
        _square("linalg.cholesky", A.shape)
        return ops.cholesky_factor(A.mH).mH
    return ops.cholesky_factor(A)


_QR_MODES = ("reduced", "complete", "r")


def _qr_shape(A, mode):
    _matrices("linalg.qr", A)
    if mode not in _QR_MODES:
        raise ShapeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    *batch, m, n = A
    k = min(m, n) if mode != "complete" else m
    return (*batch, m, k) if mode != "r" else (0,), (*batch, k, n)


@primitive(
    dtype=_field.giving(same, same),
    shape=_qr_shape,
    outputs=("Q", "R"),
    method=False,
    result_name="linalg_qr",
    grad_name="LinalgQr",
)
def qr_factors(A, kind: str):
    """The decomposition of `linalg.qr`, whose mode is the `kind`."""


@qr_factors.gradient("A")
def _(grad_Q, grad_R, Q, R, kind):
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2012); a wide matrix [X, Y] is
    # Q @ [U, V] with X = Q @ U and V = Q.mH @ Y
    if kind == "r":
        raise ShapeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'")
    m, n = Q.shape[-2], R.shape[-1]
    if kind == "complete" and m > n:
        raise ShapeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    grad_y, upper = None, R
    if n > m:
        upper = R.narrow(-1, 0, m)
        if grad_R is not None:
            grad_y = Q.matmul(grad_R.narrow(-1, m, n - m))
            from_y = ops.matmul_adjoint(Q.matmul(R.narrow(-1, m, n - m)), grad_R.narrow(-1, m, n - m))
            grad_Q = from_y if grad_Q is None else grad_Q + from_y
            grad_R = grad_R.narrow(-1, 0, m)
    middle = ops.zeros_like(upper) if grad_R is None else ops.matmul_adjoint(grad_R, upper)
    if grad_Q is not None:
        middle = middle - ops.adjoint_matmul(Q, grad_Q)
    middle = middle.triu()
    # middle + middle.mH, the diagonal's real part counted once
    diagonal = middle.diagonal(0, -2, -1)
    diagonal = diagonal.real if diagonal.is_complex() else diagonal
    change = Q.matmul(middle + middle.mH - diagonal.diag_embed())
    if grad_Q is not None:
        change = change + grad_Q
    grad_x = ops.solve_matrices(upper, change.mH).mH
    if n <= m:
        return grad_x
    return ops.cat([grad_x, Q.new_zeros((*Q.shape[:-1], n - m)) if grad_y is None else grad_y], -1)


@composite(method=False, out=True)
def linalg_qr(A, mode: str = "reduced") -> return_types.linalg_qr:
    """The decomposition ``A = Q @ R`` into a matrix with orthonormal columns and an upper triangular one.

    Args:
        A: shape (..., m, n).
        mode: "reduced" for Q of shape (..., m, k) and R of shape (..., k, n) with k = min(m, n); "complete" for k = m;
            "r" for R alone, with Q empty.

    >>> import corefw as torch
    >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> torch.allclose(Q @ R, torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    True
    """
    return ops.qr_factors(A, mode)


def _eigh_shape(A, UPLO="L"):
    _square("linalg.eigh", A)
    if UPLO not in ("L", "U", "l", "u"):
        raise ShapeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return A[:-1], A


@primitive(
    dtype=_field.giving(real, same),
    shape=_eigh_shape,
    outputs=("eigenvalues", "eigenvectors"),
    method=False,
    out=True,
    result_name="linalg_eigh",
    grad_name="LinalgEigh",
)
def linalg_eigh(A, UPLO: str = "L"):
    """The eigenvalues, in ascending order, and eigenvectors of Hermitian matrices: ``A = V @ diag(L) @ V.mH``.

    Vectors are determined up to a factor of modulus 1, so only what does not depend on it has a meaningful gradient.

    Args:
        A: shape (..., n, n).
        UPLO: which triangle is read, "L" or "U".

    Returns:
        eigenvalues of shape (..., n), real; eigenvectors of shape (..., n, n), the columns.

    >>> import corefw as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """


@linalg_eigh.gradient("A")
def _(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors):
    L, V = eigenvalues, eigenvectors
    if grad_eigenvectors is None:
        return ops.matmul_adjoint(V * grad_eigenvalues.unsqueeze(-2).to(V.dtype), V)
    skew = ops.adjoint_matmul(V, grad_eigenvectors)
    skew = (skew - skew.mH) * 0.5
    middle = skew / _differences(L)
    if grad_eigenvalues is not None:
        middle = middle + grad_eigenvalues.diag_embed()
    return ops.matmul_adjoint(V.matmul(middle), V)


def _differences(values):
    """The matrix of ``values[j] - values[i]``, with ones on the diagonal."""
    eye = ops.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    return values.unsqueeze(-2) - values.unsqueeze(-1) + eye


@composite(
    dtype=_modulus, shape=lambda A, UPLO="L": _eigh_shape(A, UPLO)[0], method=False, out=True, grad_name="LinalgEigh"
)
def linalg_eigvalsh(A, UPLO: str = "L"):
    """The eigenvalues of Hermitian matrices, in ascending order.

    Args:
        A: shape (..., n, n).
        UPLO: which triangle is read, "L" or "U".

    Returns:
        shape (..., n), real.

    >>> import corefw as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return ops.linalg_eigh(A, UPLO)[0]


def _svd_shape(A, full_matrices=True):
    _matrices("linalg.svd", A)
    *batch, m, n = A
    k = min(m, n)
    return (*batch, m, m if full_matrices else k), (*batch, k), (*batch, n if full_matrices else k, n)


@primitive(
    dtype=_field.giving(same, real, same),
    shape=_svd_shape,
    outputs=("U", "S", "Vh"),
    method=False,
    result_name="linalg_svd",
    grad_name="LinalgSvd",
)
def svd_factors(A, full_matrices: bool):
    """The singular value decomposition: what `linalg.svd` is without PyTorch's choice of a driver."""


@svd_factors.gradient("A")
def _(grad_U, grad_S, grad_Vh, U, S, Vh):
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    if grad_U is None and grad_Vh is None:
        return (U * grad_S.unsqueeze(-2).to(U.dtype)).matmul(Vh)
    squares = S * S
    E = _differences(squares)
    rows, columns = S.unsqueeze(-1), S.unsqueeze(-2)
    middle = 0 if grad_S is None else grad_S.diag_embed()
    outside_u = outside_v = None
    if grad_U is not None:
        grad_U = grad_U.narrow(-1, 0, k)
        skew = ops.adjoint_matmul(U, grad_U)
        skew = skew - skew.mH
        middle = skew / E * columns + middle
        if U.is_complex():  # the phase of a pair of singular vectors, of which only the product is determined
            middle = middle - (skew.diagonal(0, -2, -1) * (S - 0.5 / S)).diag_embed()
        if m > k:
            scaled = grad_U / columns
            outside_u = scaled - U.matmul(ops.adjoint_matmul(U, scaled))
    if grad_Vh is not None:
        grad_Vh = grad_Vh.narrow(-2, 0, k)
        skew = ops.matmul_adjoint(Vh, grad_Vh)
        skew = skew - skew.mH
        if U.is_complex():
            skew = skew - skew.diagonal(0, -2, -1).diag_embed()
        middle = rows * (skew / E) + middle
        if n > k:
            scaled = grad_Vh / rows
            outside_v = scaled - ops.matmul_adjoint(scaled, Vh).matmul(Vh)
    left = U.matmul(middle) if outside_u is None else U.matmul(middle) + outside_u
    result = left.matmul(Vh)
    return result if outside_v is None else result + U.matmul(outside_v)


@composite(method=False, out=True)
def linalg_svd(A, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """The singular value decomposition ``A = U @ diag(S) @ Vh``, with orthonormal columns of U and rows of Vh.

    Pairs of singular vectors are determined up to a common factor of modulus 1, so only what does not depend on it has
    a meaningful gradient.

    Args:
        A: shape (..., m, n).
        full_matrices: whether U and Vh are square; else they have k = min(m, n) columns and rows.
        driver: accepted for compatibility; it chooses among implementations on CUDA.

    Returns:
        U of shape (..., m, m) or (..., m, k); S of shape (..., k), real, in descending order; Vh of shape (..., n, n)
        or (..., k, n).

    >>> import corefw as torch
    >>> torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return ops.svd_factors(A, full_matrices)


@composite(
    dtype=_modulus,
    shape=lambda A: _svd_shape(A)[1],
    method=False,
)
def singular_values(A):
    """The singular values of matrices, in descending order."""
    return ops.svd_factors(A, False)[1]


@composite(method=False, out=True)
def linalg_svdvals(A, *, driver: str | None = None):
    """The singular values of matrices, in descending order.

    Args:
        A: shape (..., m, n).
        driver: accepted for compatibility.

    Returns:
        shape (..., min(m, n)), real.

    >>> import corefw as torch
    >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    return ops.singular_values(A)


# -- determinants -----------------------------------------------------------------------------------------------------
@primitive(dtype=_field, shape=lambda A: _square("linalg.det", A)[:-2], method=False, out=True, grad_name="LinalgDet")
def linalg_det(A):
    """The determinant of square matrices.

    Args:
        A: shape (..., n, n).

    Returns:
        shape (...).

    >>> import corefw as torch
    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.)
    """


@linalg_det.gradient("A")
def _(grad, A, out):
    # the matrix of cofactors: det * inv(A).mT, or by the singular values where there is no inverse
    if A.place.device.type == "meta" or bool((out != 0).all()):
        factor = (grad * out.conj()).unsqueeze(-1).unsqueeze(-1)
        return factor * ops.linalg_inv(A).mH
    U, S, Vh = ops.svd_factors(A, False)
    n = S.shape[-1]
    others = S.unsqueeze(-2).expand(*S.shape, n)
    mask = ops.eye(n, dtype=S.dtype, device=S.device)
    others = (others * (1 - mask) + mask).prod(-1)
    phase = (ops.linalg_det(U) * ops.linalg_det(Vh)).conj() * grad
    return (U * others.unsqueeze(-2)).matmul(Vh) * phase.unsqueeze(-1).unsqueeze(-1)


def _slogdet_shape(A):
    batch = _square("linalg.slogdet", A)[:-2]
    return batch, batch


@primitive(
    dtype=_field.giving(same, real),
    shape=_slogdet_shape,
    outputs=("sign", "logabsdet"),
    method=False,
    out=True,
    result_name="linalg_slogdet",
    grad_name="LinalgSlogdet",
)
def linalg_slogdet(A):
    """The sign and the logarithm of the modulus of the determinant: ``det(A) = sign * exp(logabsdet)``.

    Args:
        A: shape (..., n, n).

    Returns:
        sign of shape (...), 0 for a singular matrix and of modulus 1 else; logabsdet of shape (...), real.

    >>> import corefw as torch
    >>> torch.linalg.slogdet(torch.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
    tensor(-1.)
    """


@linalg_slogdet.gradient("A")
def _(grad_sign, grad_logabsdet, A, sign):
    factor = 0 if grad_logabsdet is None else grad_logabsdet
    if grad_sign is not None and sign.is_complex():
        factor = factor - (grad_sign.conj() * sign).imag * 1j
    if isinstance(factor, int):
        return A.new_zeros(A.shape)
    return factor.unsqueeze(-1).unsqueeze(-1) * ops.linalg_inv(A).mH


# -- rank and pseudoinverse -------------------------------------------------------------------------------------------
def _cutoff(values, shape, atol, rtol):
    """The modulus from which singular values count, for each matrix."""
    if rtol is None:
        rtol = 0.0 if atol is not None and _is_positive(atol) else finfo(values.dtype).eps * max(shape[-2:])
    relative = values.amax(-1) * rtol
    return relative if atol is None else relative.maximum(ops.zeros_like(relative) + atol)


def _is_positive(atol) -> bool:
    return bool((atol > 0).any()) if hasattr(atol, "any") else atol > 0


def _moduli(A, hermitian: bool):
    return ops.linalg_eigvalsh(A).abs() if hermitian else ops.singular_values(A)


@composite(method=False, out=True)
def linalg_matrix_rank(A, tol=None, *, atol=None, rtol=None, hermitian: bool = False):
    """The number of singular values above ``max(atol, rtol * the largest one)``.

    Args:
        A: shape (..., m, n).
        tol: another name of `atol`, with `rtol` 0.
        atol, rtol: numbers or tensors; `rtol` is by default ``max(m, n)`` times the dtype's precision, or 0 if `atol`
            is given.
        hermitian: whether eigenvalues may be taken in place of singular values.

    Returns:
        shape (...), int64.

    >>> import corefw as torch
    >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    _matrices("linalg.matrix_rank", A.shape)
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _moduli(A.detach(), hermitian)
    if 0 in values.shape:
        return ops.zeros(values.shape[:-1], dtype=int64, device=A.device)
    return (values > _cutoff(values, A.shape, atol, rtol).unsqueeze(-1)).sum(-1)


def _pinv_shape(A, *statics):
    _matrices("linalg.pinv", A)
    return (*A[:-2], A[-1], A[-2])


@composite(
    dtype=_field,
    shape=_pinv_shape,
    method=False,
    grad_name="LinalgPinv",
)
def pseudoinverse(A, atol: float | None, rtol: float | None, hermitian: bool):
    """The Moore-Penrose inverse, of the singular values above the cutoff."""
    if 0 in A.shape:
        return A.mH.clone()
    if hermitian:
        L, V = ops.linalg_eigh(A)
        counts = L.abs() > _cutoff(L.abs(), A.shape, atol, rtol).unsqueeze(-1)
        return ops.matmul_adjoint(V * ops.where(counts, 1 / L, 0).unsqueeze(-2), V)
    U, S, Vh = ops.svd_factors(A, False)
    counts = _cutoff(S, A.shape, atol, rtol).unsqueeze(-1) < S
    return ops.matmul_adjoint(Vh.mH * ops.where(counts, 1 / S, 0).unsqueeze(-2), U)


@pseudoinverse.gradient("A")
def _(grad, A, out):
    # Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)
    P, g = out, grad.mH
    if A.shape[-2] <= A.shape[-1]:
        K = g.matmul(P)
        KPh = ops.matmul_adjoint(K, P)
        return -P.matmul(K).mH + KPh - A.matmul(P).matmul(KPh) + ops.adjoint_matmul(P, P).matmul(g - K.matmul(A))
    K = P.matmul(g)
    PhK = ops.adjoint_matmul(P, K)
    return -K.matmul(P).mH + ops.matmul_adjoint((g - A.matmul(K)).matmul(P), P) + PhK - PhK.matmul(P).matmul(A)


@composite(method=False, out=True)
def linalg_pinv(A, rcond=None, *, atol=None, rtol=None, hermitian: bool = False):
    """The Moore-Penrose inverse of matrices, by their singular values above ``max(atol, rtol * the largest one)``.

    Args:
        A: shape (..., m, n).
        rcond: another name of `rtol`.
        atol, rtol: numbers or tensors; `rtol` is by default ``max(m, n)`` times the dtype's precision, or 0 if `atol`
            is given.
        hermitian: whether eigenvalues may be taken in place of singular values.

    Returns:
        shape (..., n, m).

    >>> import corefw as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return ops.pseudoinverse(A, atol, rtol if rcond is None else rcond, hermitian)


@composite(method=False, outputs=("solution", "residuals", "rank", "singular_values"))
def linalg_lstsq(A, B, rcond: float | None = None, *, driver: str | None = None):
    """The solution X of least squares, ``min |A @ X - B|``, and of least norm among several.

    Args:
        A: shape (..., m, n).
        B: shape (..., m, k), or a vector for each matrix: (m,), or `A`'s shape without its last dimension.
        rcond: singular values below `rcond` times the largest are taken to be 0; by default ``max(m, n)`` times the
            dtype's precision.
        driver: accepted for compatibility: the solution is always that by the pseudoinverse.

    Returns:
        solution of shape (..., n, k); residuals, the squared norms of ``A @ X - B``, of shape (..., k), empty unless a
        driver other than "gelsy" is asked for, m > n and every matrix has rank n; rank; singular_values, empty unless
        the driver is "gelss" or "gelsd".

    >>> import corefw as torch
    >>> torch.linalg.lstsq(torch.tensor([[2.0], [0.0]]), torch.tensor([[4.0], [1.0]])).solution
    tensor([[2.]])
    """
    _matrices("linalg.lstsq", A.shape)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ShapeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but it is " + driver
        )
    vectors = B.ndim == A.ndim - 1 and A.shape[:-1] == B.shape
    B = B.unsqueeze(-1) if vectors else B
    if B.ndim < 2 or A.shape[-2] != B.shape[-2]:
        raise ShapeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size(-2), but they are {A.shape[-2]} and "
            f"{B.shape[-2] if B.ndim > 1 else 1}"
        )
    solution = ops.pseudoinverse(A, None, rcond, False).matmul(B)
    rank = ops.linalg_matrix_rank(A, rtol=rcond)
    m, n = A.shape[-2:]
    residuals = values = solution.detach().new_zeros((0,)).abs()
    if driver in ("gels", "gelsd", "gelss") and m > n and bool((rank == n).all()):
        difference = (A.matmul(solution) - B).abs()
        residuals = (difference * difference).sum(-2)
    if driver in ("gelsd", "gelss"):
        values = ops.singular_values(A)
    return linalg_lstsq.op.result_type(solution.squeeze(-1) if vectors else solution, residuals, rank, values)


@composite(method=False, out=True)
def linalg_cond(A, p: Number | str | None = None):
    """The condition number of matrices, ``norm(A) * norm(inv(A))`` in a norm of `linalg.matrix_norm`.

    Args:
        A: shape (..., m, n), square unless `p` is None, 2 or -2.
        p: the order of the norm; None for 2.

    Returns:
        shape (...), real; infinite for singular matrices.

    >>> import corefw as torch
    >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 0.5]]))
    tensor(8.)
    """
    _matrices("linalg.cond", A.shape)
    _fields("linalg.cond", A)
    if p in (None, 2, -2):
        values = ops.singular_values(A)
        largest, least = values.select(-1, 0), values.select(-1, -1)
        return least / largest if p == -2 else largest / least
    _square("linalg.cond", A.shape)
    return linalg_matrix_norm(A, p) * linalg_matrix_norm(ops.linalg_inv(A), p)


# -- norms ------------------------------------------------------------------------------------------------------------
@composite(method=False, out=True)
def linalg_vector_norm(x, ord: Number = 2, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The norm of the elements seen as a vector, ``sum(|x|^ord)^(1/ord)``.

    Args:
        x: any shape, floating or complex.
        ord: the order; inf and -inf mean the largest and smallest modulus, 0 the number of elements that are not zero.
        dim: the dimensions to reduce; None for all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    _fields("linalg.vector_norm", x)
    if isinstance(ord, str):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {type(ord).__name__}")
    return ops.vector_norm(x if dtype is None else x.to(dtype), ord, dim, keepdim)


@composite(method=False, out=True)
def linalg_matrix_norm(
    A,
    ord: Number | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
):
    """The norm of matrices.

    Args:
        A: shape with matrices in the dimensions `dim`, floating or complex.
        ord: "fro" for the root of the sum of squares, "nuc" for the sum of the singular values, 2 and -2 for the
            largest and smallest of them, inf and -inf for the largest and smallest sum of moduli of a row, 1 and -1 of
            a column.
        dim: the matrices' two dimensions.
        keepdim: keep these dimensions with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.linalg.matrix_norm(torch.tensor([[1.0, -2.0], [3.0, 4.0]]), torch.inf)
    tensor(7.)
    """
    _fields("linalg.matrix_norm", A)
    _matrices("linalg.matrix_norm", A.shape)
    if isinstance(dim, int) or len(dim) != 2:
        raise ShapeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    A = A if dtype is None else A.to(dtype)
    row, column = (canonical_dim(d, A.ndim) for d in dim)
    if row == column:
        raise ShapeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return ops.vector_norm(A, 2, (row, column), keepdim)
    if ord in ("nuc", 2, -2):
        values = ops.singular_values(A.movedim((row, column), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (inf, -inf, 1, -1):
        summed, kept = (row, column) if ord in (1, -1) else (column, row)
        sums = A.abs().sum(summed, True)
        result = (sums.amax(kept, True) if ord in (1, inf) else sums.amin(kept, True)).squeeze((row, column))
    else:
        raise ShapeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if keepdim:
        for d in sorted((row, column)):
            result = result.unsqueeze(d)
    return result


@composite(method=False, out=True)
def linalg_norm(
    A, ord: Number | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None
):
    """The norm of vectors or of matrices: `linalg.vector_norm` or `linalg.matrix_norm`.

    Args:
        A: any shape, floating or complex.
        ord: the order; None for the root of the sum of squares.
        dim: one dimension for vectors, two for matrices; None for all elements if `ord` is None, else A is a vector
            or a matrix.
        keepdim: keep the reduced dimensions with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.linalg.norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
    tensor(4.)
    """
    if dim is not None:
        dim = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dim) not in (1, 2) and ord is not None:
            raise ShapeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif ord is not None and A.ndim not in (1, 2):
        raise ShapeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
    if ord is not None and (A.ndim if dim is None else len(dim)) == 2:
        return linalg_matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise ShapeError(f"linalg.norm: Order {ord} is not supported for vectors.")
    return linalg_vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


# -- products ---------------------------------------------------------------------------------------------------------
@composite(method=False, out=True)
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
    _square("linalg.matrix_power", A.shape)
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


@composite(method=False, out=True)
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


@composite(method=False, out=True)
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


@composite(method=False, out=True)
def linalg_vecdot(x, y, *, dim: int = -1):
    """The inner products of vectors, ``sum(conj(x) * y)`` along `dim`.

    >>> import corefw as torch
    >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    return (x.conj() * y).sum(dim)


@composite(method=False)
def linalg_diagonal(A, *, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """The diagonal of matrices, a view.

    >>> import corefw as torch
    >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


@composite(method=False, out=True)
def linalg_tensorinv(A, ind: int = 2):
    """The inverse of `A` as a map of tensors: ``tensordot(tensorinv(A, ind), A, ind)`` is the identity.

    Args:
        A: a shape whose first `ind` sizes have the same product as the others.
        ind: how many of the first dimensions belong to the map's result.

    >>> import corefw as torch
    >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
    torch.Size([6, 2, 3])
    """
    if ind <= 0:
        raise ShapeError("Expected a strictly positive integer for 'ind'")
    left, right = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(left) != prod(right):
        raise ShapeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(right)} != {prod(left)}"
        )
    return ops.linalg_inv(A.reshape(prod(left), prod(right))).reshape(right + left)


# -- functions and methods without a namespace ------------------------------------------------------------------------
@composite(out=True)
def det(input):
    """The determinant of square matrices; `linalg.det`.

    >>> import corefw as torch
    >>> torch.det(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.)
    """
    return ops.linalg_det(input)


@composite(out=True, outputs=("sign", "logabsdet"))
def slogdet(input):
    """The sign and the logarithm of the modulus of the determinant; `linalg.slogdet`.

    >>> import corefw as torch
    >>> torch.slogdet(torch.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
    tensor(-1.)
    """
    return slogdet.op.result_type(*ops.linalg_slogdet(input))


@composite()
def logdet(input):
    """The logarithm of the determinant of square matrices; -inf for 0, NaN for negative ones.

    >>> import corefw as torch
    >>> torch.logdet(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.)
    """
    sign, logabsdet = ops.linalg_slogdet(input)
    return sign.log() + logabsdet if sign.is_complex() else ops.where(sign < 0, float("nan"), logabsdet)


@composite(out=True)
def inverse(input):
    """The inverse of square matrices; `linalg.inv`.

    >>> import corefw as torch
    >>> torch.inverse(torch.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return ops.linalg_inv(input)


@composite()
def pinverse(input, rcond: float = 1e-15):
    """The Moore-Penrose inverse of matrices, by their singular values above `rcond` times the largest.

    >>> import corefw as torch
    >>> torch.pinverse(torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return ops.pseudoinverse(input, None, rcond, False)


@composite(out=True)
def matrix_power(input, n: int):
    """The power of square matrices; `linalg.matrix_power`.

    >>> import corefw as torch
    >>> torch.matrix_power(torch.tensor([[2.0]]), 3)
    tensor([[8.]])
    """
    return linalg_matrix_power(input, n)


@composite(out=True)
def cholesky(input, upper: bool = False):
    """The Cholesky decomposition of Hermitian positive-definite matrices; `linalg.cholesky`.

    >>> import corefw as torch
    >>> torch.cholesky(torch.tensor([[4.0]]))
    tensor([[2.]])
    """
    return linalg_cholesky(input, upper=upper)


@composite(out=True)
def cholesky_solve(input, input2, upper: bool = False):
    """The solution X of ``A @ X = B`` from the Cholesky decomposition of A.

    Args:
        input: B, of shape (..., n, k).
        input2: L with ``A = L @ L.mH``, of shape (..., n, n).
        upper: whether `input2` is the upper factor, ``A = L.mH @ L``.

    >>> import corefw as torch
    >>> torch.cholesky_solve(torch.tensor([[8.0]]), torch.tensor([[2.0]]))
    tensor([[2.]])
    """
    L = input2.mH if upper else input2
    half = linalg_solve_triangular(L, input, upper=False)
    return linalg_solve_triangular(L.mH, half, upper=True)


@composite(out=True, outputs=("Q", "R"), result_name="qr")
def qr(input, some: bool = True):
    """The decomposition into a matrix with orthonormal columns and an upper triangular one; `linalg.qr`.

    >>> import corefw as torch
    >>> torch.qr(torch.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    return qr.op.result_type(*ops.qr_factors(input, "reduced" if some else "complete"))


@composite(out=True, outputs=("U", "S", "V"), result_name="svd")
def svd(input, some: bool = True, compute_uv: bool = True):
    """The singular value decomposition ``input = U @ diag(S) @ V.mH``; `linalg.svd` gives ``V.mH``.

    >>> import corefw as torch
    >>> torch.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    if not compute_uv:
        m, n = input.shape[-2:]
        U, S, V = input.new_zeros((m, m)), ops.singular_values(input), input.new_zeros((n, n))
    else:
        U, S, Vh = ops.svd_factors(input, not some)
        V = Vh.mH
    return svd.op.result_type(U, S, V)
