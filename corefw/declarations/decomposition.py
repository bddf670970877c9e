"""Decompositions of matrices into factors, eigenvalues and singular values.

Every op takes matrices in the last two dimensions; those before are a batch. `corefw.linalg` offers them.
The gradients of the decompositions are those of Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), unless a formula names another source.
"""

from __future__ import annotations

from corefw import return_types
from corefw.declarations._shared.batching import from_the_end
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import DtypeRule, floats, real, same
from corefw.dtypes import COMPLEX, FLOATING, dtype
from corefw.errors import GradientError, ShapeError
from corefw.shapes import check_matrices, check_square

_modulus = real.without("bool", "integer")
_complex = DtypeRule("complex", results=(dtype.to_complex,), categories=frozenset({FLOATING, COMPLEX}))


# -- decompositions ---------------------------------------------------------------------------------------------------
@primitive(dtype=floats, shape=lambda A: check_square("linalg.cholesky", A), public="", grad_name="LinalgCholeskyEx")
def cholesky_factor(A):
    """The lower triangular L of ``A = L @ L.mH``."""


cholesky_factor.batching(from_the_end)


def _half(matrix):
    """The lower triangle with half the diagonal: the inverse of ``L -> L + L.mH`` for triangular L."""
    return matrix.tril() - matrix.diagonal(0, -2, -1).diag_embed() * 0.5


@cholesky_factor.gradient("A")
def cholesky_factor_vjp(grad, out):
    # Murray, "Differentiation of the Cholesky decomposition" (2016)
    middle = _half(ops.adjoint_matmul(out, grad))
    middle = (middle + middle.mH) * 0.5
    inverse = ops.linalg_inv(out)
    return ops.adjoint_matmul(inverse, middle).matmul(inverse)


@composite(out=True)
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
        check_square("linalg.cholesky", A.shape)
        return ops.resolve_conj(ops.cholesky_factor(A.mH).mH)
    return ops.cholesky_factor(A)


_QR_MODES = ("reduced", "complete", "r")


def _qr_shape(A, mode):
    check_matrices("linalg.qr", A)
    if mode not in _QR_MODES:
        raise ShapeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    *batch, m, n = A
    k = min(m, n) if mode != "complete" else m
    return (*batch, m, k) if mode != "r" else (0,), (*batch, k, n)


@primitive(
    dtype=floats.giving(same, same),
    shape=_qr_shape,
    outputs=("Q", "R"),
    public="",
    result_name="linalg_qr",
    grad_name="LinalgQr",
)
def qr_factors(A, kind: str):
    """The decomposition of `linalg.qr`, whose mode is the `kind`."""


qr_factors.batching(from_the_end)


@qr_factors.gradient("A")
def qr_factors_vjp(grad_Q, grad_R, Q, R, kind):
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
    grad_x = ops.resolve_conj(ops.linalg_solve_triangular(upper, change.mH, upper=True).mH)
    if n <= m:
        return grad_x
    return ops.cat([grad_x, Q.new_zeros((*Q.shape[:-1], n - m)) if grad_y is None else grad_y], -1)


@composite(out=True)
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
    check_square("linalg.eigh", A)
    if UPLO not in ("L", "U", "l", "u"):
        raise ShapeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return A[:-1], A


@primitive(
    dtype=floats.giving(real, same),
    shape=_eigh_shape,
    outputs=("eigenvalues", "eigenvectors"),
    out=True,
    result_name="linalg_eigh",
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


linalg_eigh.batching(from_the_end)


@linalg_eigh.gradient("A")
def linalg_eigh_vjp(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors):
    L, V = eigenvalues, eigenvectors
    if grad_eigenvectors is None:
        return ops.matmul_adjoint(V * grad_eigenvalues.unsqueeze(-2).to(V.dtype), V)
    skew = ops.adjoint_matmul(V, grad_eigenvectors)
    skew = (skew - skew.mH) * 0.5
    if V.is_complex():
        _check_phases("linalg.eigh", [skew])
    middle = skew / _differences(L)
    if grad_eigenvalues is not None:
        middle = middle + grad_eigenvalues.diag_embed()
    return ops.matmul_adjoint(V.matmul(middle), V)


def _check_phases(name: str, skews: list) -> None:
    """Refuse gradients with respect to vectors V of a loss that changes with their phases: the diagonals of the skew
    parts of ``V.mH @ grad_V`` add up to the change."""
    if not skews[0].numel():
        return
    change = sum(skew.diagonal(0, -2, -1) for skew in skews).abs()
    size = sum(skew.abs().amax((-2, -1)) for skew in skews)
    if not all_examples(change <= 0.01 * size.clamp_min(1).unsqueeze(-1)).all():
        raise GradientError(
            f"{name}: complex vectors are determined up to a factor e^(i phi), on which this loss depends, so its "
            "gradient is ill-defined. Use what does not depend on it, such as moduli or V @ diag(L) @ V.mH."
        )


def _differences(values):
    """The matrix of ``values[j] - values[i]``, with ones on the diagonal."""
    eye = ops.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    return values.unsqueeze(-2) - values.unsqueeze(-1) + eye


@composite(dtype=_modulus, shape=lambda A, UPLO="L": _eigh_shape(A, UPLO)[0], out=True, grad_name="LinalgEigh")
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


linalg_eigvalsh.batching(from_the_end)


def _eig_shape(A):
    check_square("linalg.eig", A)
    return A[:-1], A


@primitive(
    dtype=_complex.giving(_complex, _complex),
    shape=_eig_shape,
    outputs=("eigenvalues", "eigenvectors"),
    out=True,
    result_name="linalg_eig",
)
def linalg_eig(A):
    """The eigenvalues and eigenvectors of square matrices, ``A @ V = V @ diag(L)``, as complex numbers in no order.

    Vectors have norm 1 and are determined up to a factor of modulus 1, so only what does not depend on it has a
    meaningful gradient.

    Args:
        A: shape (..., n, n).

    Returns:
        eigenvalues of shape (..., n); eigenvectors of shape (..., n, n), the columns.

    >>> import corefw as torch
    >>> torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.sort().values
    tensor([-1.,  1.])
    """


linalg_eig.batching(from_the_end)


@linalg_eig.gradient("A")
def linalg_eig_vjp(grad_eigenvalues, grad_eigenvectors, A, eigenvalues, eigenvectors):
    L, V = eigenvalues, eigenvectors
    middle = None if grad_eigenvalues is None else grad_eigenvalues.diag_embed()
    if grad_eigenvectors is not None:
        along = ops.adjoint_matmul(V, grad_eigenvectors)
        _check_phases("linalg.eig", [along - along.mH])
        lengths = along.diagonal(0, -2, -1).real.unsqueeze(-2).to(V.dtype)  # the vectors' norms stay 1
        turned = (along - ops.adjoint_matmul(V, V * lengths)) / ops.resolve_conj(_differences(L).conj())
        turned = turned - turned.diagonal(0, -2, -1).diag_embed()
        middle = turned if middle is None else middle + turned
    result = ops.linalg_solve(V.mH, ops.matmul_adjoint(middle, V))
    return result if A.is_complex() else result.real


@composite(dtype=_complex, shape=lambda A: _eig_shape(A)[0], out=True, grad_name="LinalgEig")
def linalg_eigvals(A):
    """The eigenvalues of square matrices, as complex numbers in no order.

    Args:
        A: shape (..., n, n).

    Returns:
        shape (..., n).

    >>> import corefw as torch
    >>> torch.linalg.eigvals(torch.tensor([[2.0]]))
    tensor([2.+0.j])
    """
    return ops.linalg_eig(A)[0]


linalg_eigvals.batching(from_the_end)


def _svd_shape(A, full_matrices=True):
    check_matrices("linalg.svd", A)
    *batch, m, n = A
    k = min(m, n)
    return (*batch, m, m if full_matrices else k), (*batch, k), (*batch, n if full_matrices else k, n)


@primitive(
    dtype=floats.giving(same, real, same),
    shape=_svd_shape,
    outputs=("U", "S", "Vh"),
    public="",
    result_name="linalg_svd",
    grad_name="LinalgSvd",
)
def svd_factors(A, full_matrices: bool):
    """The singular value decomposition: what `linalg.svd` is without PyTorch's choice of a driver."""


svd_factors.batching(from_the_end)


@svd_factors.gradient("A")
def svd_factors_vjp(grad_U, grad_S, grad_Vh, U, S, Vh):
    m, n, k = U.shape[-2], Vh.shape[-1], S.shape[-1]
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    if grad_U is None and grad_Vh is None:
        return (U * grad_S.unsqueeze(-2).to(U.dtype)).matmul(Vh)
    squares = S * S
    E = _differences(squares)
    rows, columns = S.unsqueeze(-1), S.unsqueeze(-2)
    middle = 0 if grad_S is None else grad_S.diag_embed()
    outside_u = outside_v = None
    skews = []
    if grad_U is not None:
        grad_U = grad_U.narrow(-1, 0, k)
        skew = ops.adjoint_matmul(U, grad_U)
        skew = skew - skew.mH
        skews.append(skew)
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
        skews.append(skew)
        if U.is_complex():
            skew = skew - skew.diagonal(0, -2, -1).diag_embed()
        middle = rows * (skew / E) + middle
        if n > k:
            scaled = grad_Vh / rows
            outside_v = scaled - ops.matmul_adjoint(scaled, Vh).matmul(Vh)
    if U.is_complex():
        _check_phases("linalg.svd", skews)
    left = U.matmul(middle) if outside_u is None else U.matmul(middle) + outside_u
    result = left.matmul(Vh)
    return result if outside_v is None else result + U.matmul(outside_v)


@composite(out=True)
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
    public="",
)
def singular_values(A):
    """The singular values of matrices, in descending order."""
    return ops.svd_factors(A, False)[1]


singular_values.batching(from_the_end)


@composite(out=True)
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


# -- functions and methods without a namespace ------------------------------------------------------------------------
@composite(out=True)
def cholesky(input, upper: bool = False):
    """The Cholesky decomposition of Hermitian positive-definite matrices; `linalg.cholesky`.

    >>> import corefw as torch
    >>> torch.cholesky(torch.tensor([[4.0]]))
    tensor([[2.]])
    """
    return linalg_cholesky(input, upper=upper)


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
        S = ops.singular_values(input)
        *batch, m, n = input.shape
        U, V = input.new_zeros((*batch, m, m)), input.new_zeros((*batch, n, n))
    else:
        U, S, Vh = ops.svd_factors(input, not some)
        V = ops.resolve_conj(Vh.mH)
    return svd.op.result_type(U, S, V)
