"""Inverses, solutions and determinants of matrices, and their rank.

Every op takes matrices in the last two dimensions; those before are a batch. `corefw.linalg` offers them.
"""

from __future__ import annotations

from math import prod

from corefw.declarations._shared.batching import from_the_end, from_the_end_together
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import floats, real, same
from corefw.dtypes import finfo, int64
from corefw.errors import LinAlgError, ShapeError
from corefw.shapes import broadcast, check_matrices, check_square


# -- inverse and solutions --------------------------------------------------------------------------------------------
@primitive(dtype=floats, shape=lambda A: check_square("linalg.inv", A), out=True, grad_name="LinalgInvEx")
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


linalg_inv.batching(from_the_end)
linalg_inv.gradients(A=lambda grad, out: -ops.matmul_adjoint(ops.adjoint_matmul(out, grad), out))


def _solve_shape(A, B):
    check_square("linalg.solve", A)
    if len(B) < 2 or A[-1] != B[-2]:
        raise ShapeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation AX = B ({A[-2]}x{A[-1]} and "
            f"{'x'.join(map(str, B[-2:]))})"
        )
    return (*broadcast(A[:-2], B[:-2]), *B[-2:])


@primitive(dtype=floats, shape=_solve_shape, public="", grad_name="LinalgSolveEx")
def solve_matrices(A, B):
    """The solution X of ``A @ X = B`` for square matrices A and matrices B."""


solve_matrices.batching(from_the_end_together)


@solve_matrices.gradient("A", "B")
def solve_matrices_vjp(grad, A, out, needs):
    grad_b = ops.solve_matrices(A.mH, grad)
    return -ops.matmul_adjoint(grad_b, out) if needs[0] else None, grad_b if needs[1] else None


@composite(out=True)
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
    check_square("linalg.solve", A.shape)
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if vectors:
        if not left:
            raise ShapeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
        return ops.solve_matrices(A, B.unsqueeze(-1)).squeeze(-1)
    if left:
        return ops.solve_matrices(A, B)
    return ops.solve_matrices(A.mT, B.mT).mT


@composite(out=True)
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
    check_square("linalg.solve_triangular", A.shape)
    check_matrices("linalg.solve_triangular", B.shape)
    if unitriangular:
        A = A.triu(1) if upper else A.tril(-1)
        A = A + ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    else:
        A = A.triu() if upper else A.tril()
    return _solve_triangle(A, B, upper) if left else _solve_triangle(A.mT, B.mT, not upper).mT


def _solve_triangle(A, B, upper: bool):
    """The solution X of ``A @ X = B``; zeros on the diagonal of the triangular A are divided by."""
    if not upper:  # from the last row to the first: the elimination of an upper triangle exchanges no rows
        return _solve_triangle(A.flip(-2, -1), B.flip(-2), True).flip(-2)
    try:
        return ops.solve_matrices(A, B)
    except LinAlgError:  # a pivot of the elimination is 0
        return _substituted(A, B)


def _substituted(A, B):
    """The solution of the lower half of the equations, with which the upper half is solved."""
    size = A.shape[-1]
    if size == 1:
        return B / A
    half = size // 2
    below = _substituted(A[..., half:, half:], B[..., half:, :])
    above = _substituted(A[..., :half, :half], B[..., :half, :] - A[..., :half, half:].matmul(below))
    return ops.cat([above, below], -2)


@composite(out=True)
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


# -- determinants -----------------------------------------------------------------------------------------------------
@primitive(dtype=floats, shape=lambda A: check_square("linalg.det", A)[:-2], out=True)
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


linalg_det.batching(from_the_end)


@linalg_det.gradient("A")
def linalg_det_vjp(grad, A, out):
    if _all_regular(out):
        factor = (grad * out.conj()).unsqueeze(-1).unsqueeze(-1)
        return factor * ops.linalg_inv(A).mH
    return grad.unsqueeze(-1).unsqueeze(-1) * _cofactors(A)


def _all_regular(det) -> bool:
    """Whether no determinant, or none of their signs, is 0."""
    return det.dispatch_key.device.type == "meta" or bool(all_examples(det != 0).all())


def _cofactors(A):
    """The conjugate cofactors, ``(det(A) * inv(A)).mH``, by the singular values: there may be no inverse."""
    U, S, Vh = ops.svd_factors(A, False)
    n = S.shape[-1]
    others = S.unsqueeze(-2).expand(*S.shape, n)
    mask = ops.eye(n, dtype=S.dtype, device=S.device)
    others = (others * (1 - mask) + mask).prod(-1)
    phase = (ops.linalg_det(U) * ops.linalg_det(Vh)).conj()
    return (U * others.unsqueeze(-2)).matmul(Vh) * phase.unsqueeze(-1).unsqueeze(-1)


def _slogdet_shape(A):
    batch = check_square("linalg.slogdet", A)[:-2]
    return batch, batch


@primitive(
    dtype=floats.giving(same, real),
    shape=_slogdet_shape,
    outputs=("sign", "logabsdet"),
    out=True,
    result_name="linalg_slogdet",
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


linalg_slogdet.batching(from_the_end)


@linalg_slogdet.gradient("A")
def linalg_slogdet_vjp(grad_sign, grad_logabsdet, A, sign):
    factor = 0 if grad_logabsdet is None else grad_logabsdet
    if grad_sign is not None and sign.is_complex():
        factor = factor - (grad_sign.conj() * sign).imag * 1j
    if isinstance(factor, int):
        return A.new_zeros(A.shape)
    if _all_regular(sign):
        slope = ops.linalg_inv(A).mH
    else:  # infinite for singular matrices, or NaN where a cofactor is 0 too
        singular = (sign == 0).unsqueeze(-1).unsqueeze(-1)
        regular = ops.where(singular, ops.eye(A.shape[-1], dtype=A.dtype, device=A.device), A)
        slope = ops.where(singular, _cofactors(A) / 0, ops.linalg_inv(regular).mH)
    return factor.unsqueeze(-1).unsqueeze(-1) * slope


# -- rank and pseudoinverse -------------------------------------------------------------------------------------------
def _cutoff(values, shape, atol, rtol):
    """The modulus from which singular values count, for each matrix."""
    if rtol is None:
        rtol = 0.0 if atol is not None and _is_positive(atol) else finfo(values.dtype).eps * max(shape[-2:])
    relative = values.amax(-1) * rtol
    return relative.maximum(ops.zeros_like(relative) + (0 if atol is None else atol))


def _is_positive(atol) -> bool:
    return bool(all_examples(atol > 0).any()) if hasattr(atol, "any") else atol > 0


def _moduli(A, hermitian: bool):
    return ops.linalg_eigvalsh(A).abs() if hermitian else ops.singular_values(A)


@composite(out=True)
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
    check_matrices("linalg.matrix_rank", A.shape)
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _moduli(A.detach(), hermitian)
    if 0 in values.shape:
        return ops.zeros(values.shape[:-1], dtype=int64, device=A.device)
    return (values > _cutoff(values, A.shape, atol, rtol).unsqueeze(-1)).sum(-1)


def _pinv_shape(A, *attributes):
    check_matrices("linalg.pinv", A)
    return (*A[:-2], A[-1], A[-2])


@composite(
    dtype=floats,
    shape=_pinv_shape,
    public="",
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
def pseudoinverse_vjp(grad, A, out):
    # Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)
    P, g = out, grad.mH
    if A.shape[-2] <= A.shape[-1]:
        K = g.matmul(P)
        KPh = ops.matmul_adjoint(K, P)
        return -P.matmul(K).mH + KPh - A.matmul(P).matmul(KPh) + ops.adjoint_matmul(P, P).matmul(g - K.matmul(A))
    K = P.matmul(g)
    PhK = ops.adjoint_matmul(P, K)
    return -K.matmul(P).mH + ops.matmul_adjoint((g - A.matmul(K)).matmul(P), P) + PhK - PhK.matmul(P).matmul(A)


@composite(out=True)
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


@composite(outputs=("solution", "residuals", "rank", "singular_values"), other_names=True)
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
        driver other than "gelsy" is asked for, m > n and every matrix has rank n; rank, empty if the driver is "gels";
        singular_values, empty unless it is "gelss" or "gelsd".

    >>> import corefw as torch
    >>> torch.linalg.lstsq(torch.tensor([[2.0], [0.0]]), torch.tensor([[4.0], [1.0]])).solution
    tensor([[2.]])
    """
    check_matrices("linalg.lstsq", A.shape)
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
    if driver in ("gels", "gelsd", "gelss") and m > n and bool(all_examples(rank == n).all()):
        difference = (A.matmul(solution) - B).abs()
        residuals = (difference * difference).sum(-2)
    if driver == "gels":
        rank = rank.new_zeros((0,))
    if driver in ("gelsd", "gelss"):
        values = ops.singular_values(A)
    return linalg_lstsq.op.result_type(solution.squeeze(-1) if vectors else solution, residuals, rank, values)


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
