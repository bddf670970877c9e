"""Some of the eigenvalues of a Hermitian matrix, found by products with it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from corefw.autograd.function import Function
from corefw.dispatch.declare import ops
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import check_square
from corefw.tensor import Tensor


@dataclass
class Iteration:
    """What a tracker of `lobpcg` sees after each step.

    Attributes: ``A``, ``B`` and ``iK`` the matrices; ``X`` the vectors and ``E`` the values so far, ``R`` the residuals
    ``A @ X - B @ X * E``; ``ivars["istep"]`` the number of the step and ``ivars["converged_count"]`` how many pairs are
    near enough; ``tvars["rerr"]`` the relative size of each residual; ``iparams``, ``fparams`` and ``bparams`` the
    arguments.
    """

    A: Tensor
    B: Tensor | None
    iK: Tensor | None
    X: Tensor
    iparams: dict[str, int]
    fparams: dict[str, float]
    bparams: dict[str, bool]
    E: Tensor = field(init=False)
    R: Tensor = field(init=False)
    ivars: dict[str, int] = field(default_factory=lambda: {"istep": 0, "converged_count": 0})
    tvars: dict[str, Tensor] = field(default_factory=dict)


def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Callable[[Iteration], Any] | None = None,
    ortho_iparams: dict[str, int] | None = None, ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The k greatest or least eigenvalues of Hermitian matrices, and their vectors: ``A @ X = B @ X * E``.

    A is used in products alone. Each step takes the best vectors of the space that X, the residuals and the last
    changes of X span.

    Args:
        A: shape (..., m, m).
        k: how many; None for the columns of `X`, or one.
        B: positive-definite, A's shape; None for the identity.
        X: vectors to begin with, shape (..., m, n); None for random ones.
        n: how many vectors to work with where `X` is None; None for `k`.
        iK: what residuals are multiplied with, near to the inverse of A; None for nothing.
        niter: the number of steps, at most; None for 1000, -1 for as many as it takes.
        tol: the relative size of residuals that is small enough; None for the root of the dtype's eps.
        largest: whether the greatest are wanted, in descending order, as by default; else the least, ascending.
        method: "ortho" or "basic", which are one here: bases are always made orthonormal.
        tracker: a function that is given an `Iteration` after each step.
        ortho_iparams, ortho_fparams, ortho_bparams: None; there is nothing to set.

    Returns:
        (E, X) of shapes (..., k) and (..., m, k). Gradients are those of exact pairs.

    Raises:
        ValueError: A has fewer than 3 times as many rows as there are vectors, or a setting is unknown.

    Source: Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
    gradient method" (2001), with bases as in Stathopoulos and Wu, "A block orthogonalization procedure with constant
    synchronization requirements" (2002).

    >>> import corefw as torch
    >>> _ = torch.manual_seed(0)
    >>> E, X = torch.lobpcg(torch.diag(torch.arange(9.0)), k=2)
    >>> E
    tensor([8.0000, 7.0000])
    """
    check_square("lobpcg", A.shape)
    if not (A.is_floating_point() or A.is_complex()):
        raise DtypeError(f"lobpcg: expected A to be of a floating point or complex dtype, got {A.dtype}")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: method is 'ortho' or 'basic', got {method!r}")
    if any(given is not None for given in (ortho_iparams, ortho_fparams, ortho_bparams)):
        raise NotImplementedError(
            "lobpcg: ortho_iparams, ortho_fparams and ortho_bparams have no meaning here: leave them"
        )
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    width = (k if n is None else n) if X is None else X.shape[-1]
    if k < 1 or width < 1:
        raise ValueError(f"lobpcg: at least one eigenpair must be asked for, got k={k} and n={width}")
    if m < 3 * max(k, width):
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={max(k, width)})"
        )
    if X is not None and X.shape[-2] != m:
        raise ShapeError(f"lobpcg: X must have A's {m} rows, got {tuple(X.shape)}")
    given = {
        "width": width,
        "k": min(k, width),
        "niter": 1000 if niter is None else niter,
        "tol": _eps(A) ** 0.5 if tol is None else tol,
        "largest": largest is None or largest,
        "tracker": tracker,
    }
    return _Eigenpairs.apply(A, B, X, iK, given)


def _eps(A) -> float:
    return 2.0**-52 if A.dtype.to_real().itemsize == 8 else 2.0**-23


class _Eigenpairs(Function):
    """The pairs, with the gradients of exact ones."""

    @staticmethod
    def forward(ctx, A, B, X, iK, given):
        batch = A.shape[:-2]
        flat = [t if t is None else t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (A, B, X, iK)]
        pairs = [_pairs([t if t is None else t[i] for t in flat], given) for i in range(prod(batch))]
        E, V = (ops.stack(parts) for parts in zip(*pairs, strict=True))
        # clones, because the outputs are saved, and a view of something would be another tensor than what is returned
        E, V = E.reshape(*batch, *E.shape[1:]).clone(), V.reshape(*batch, *V.shape[1:]).clone()
        ctx.save_for_backward(A, B, E, V)
        ctx.set_materialize_grads(False)
        return E, V

    @staticmethod
    def backward(ctx, grad_E, grad_V):
        A, B, E, V = ctx.saved_tensors
        grad_A, grad_B = ops.zeros_like(A), ops.zeros_like(A)
        if grad_E is not None:
            scaled = V * grad_E.unsqueeze(-2).to(V.dtype)
            grad_A = ops.matmul_adjoint(scaled, V)
            grad_B = -ops.matmul_adjoint(scaled * E.unsqueeze(-2).to(V.dtype), V)
        if grad_V is not None:
            BV = V if B is None else B.matmul(V)
            along = ops.adjoint_matmul(V, grad_V)
            W = _outside(A, B, E, V, BV, grad_V - BV.matmul(along)) + V.matmul(_apart(E, along))
            grad_A = grad_A - ops.matmul_adjoint(W, V)
            lengths = along.diagonal(0, -2, -1).unsqueeze(-2) * 0.5
            grad_B = grad_B + ops.matmul_adjoint(W * E.unsqueeze(-2).to(V.dtype) - V * lengths, V)
        return (
            (grad_A + grad_A.mH) * 0.5 if ctx.needs_input_grad[0] else None,
            (grad_B + grad_B.mH) * 0.5 if ctx.needs_input_grad[1] else None,
            None,
            None,
            None,
        )


def _apart(E, along):
    """``along[j, i] / (E[j] - E[i])`` with zeros on the diagonal."""
    eye = ops.eye(E.shape[-1], dtype=E.dtype, device=E.device)
    return along * ((1 - eye) / (E.unsqueeze(-1) - E.unsqueeze(-2) + eye)).to(along.dtype)


def _outside(A, B, E, V, BV, grad):
    """For each i the solution w of ``(A - E[i] * B) @ w = grad[:, i]`` among the vectors that V has no part in."""
    eye = ops.eye(A.shape[-1], dtype=A.dtype, device=A.device) if B is None else B
    least, greatest = E.amin(-1, keepdim=True), E.amax(-1, keepdim=True)
    lifted = ((greatest - least) * 2 + E.abs().amax(-1, keepdim=True) + _eps(E)).unsqueeze(-1).to(A.dtype)
    lift = ops.matmul_adjoint(BV, BV) * lifted
    columns = []
    for i in range(E.shape[-1]):
        matrix = A + lift - eye * E[..., i : i + 1].unsqueeze(-1).to(A.dtype)
        columns.append(ops.linalg_solve(matrix, grad[..., i : i + 1]))
    found = ops.cat(columns, -1)
    return found - V.matmul(ops.adjoint_matmul(BV, found))


def _pairs(tensors, given):
    """The pairs of one matrix."""
    A, B, X, iK = tensors
    m, width, k = A.shape[-1], given["width"], given["k"]
    state = Iteration(
        A,
        B,
        iK,
        ops.randn((m, width), dtype=A.dtype, device=A.device) if X is None else X,
        {"m": m, "n": width, "k": k, "niter": given["niter"]},
        {"tol": given["tol"]},
        {"largest": given["largest"]},
    )
    state.X = _orthonormal(state.X, B)
    if state.X.shape[-1] < width:
        raise ShapeError("lobpcg: the columns of X must be linearly independent")
    _project(state, state.X)
    sizes = [_norm(A.matmul(state.X)), 1.0 if B is None else _norm(B.matmul(state.X)), _norm(state.X)]
    size_A, size_B = sizes[0] / sizes[2], sizes[1] / sizes[2]
    changes: list[Tensor] = []
    while True:
        BX = state.X if B is None else B.matmul(state.X)
        state.R = A.matmul(state.X) - BX * state.E.to(A.dtype)
        sizes_X = ops.linalg_vector_norm(state.X, dim=-2)
        state.tvars["rerr"] = ops.linalg_vector_norm(state.R, dim=-2) / (sizes_X * (size_A + state.E.abs() * size_B))
        state.ivars["converged_count"] = int((state.tvars["rerr"][:k] < given["tol"]).sum())
        if given["tracker"] is not None:
            given["tracker"](state)
        if state.ivars["converged_count"] == k or state.ivars["istep"] == given["niter"]:
            return state.E[:k].clone(), state.X[:, :k].clone()
        before = state.X
        residuals = state.R if iK is None else iK.matmul(state.R)
        others = ops.cat([residuals, *changes], -1)
        for _ in range(2):  # what is left of the vectors after the first time is small
            others = others - before.matmul(ops.adjoint_matmul(BX, others))
            others = _orthonormal(others, B)
        _project(state, ops.cat([before, others], -1))
        changes = [state.X - before.matmul(ops.adjoint_matmul(BX, state.X))]
        state.ivars["istep"] += 1


def _norm(vectors) -> float:
    return float(ops.linalg_vector_norm(vectors))


def _project(state, basis) -> None:
    """Take the best vectors of a space of which an orthonormal basis is given."""
    values, vectors = ops.linalg_eigh(ops.adjoint_matmul(basis, state.A.matmul(basis)))
    if state.bparams["largest"]:
        values, vectors = values.flip(-1), vectors.flip(-1)
    width = state.iparams["n"]
    state.E, state.X = values[:width], basis.matmul(vectors[:, :width])


def _orthonormal(vectors, B):
    """A basis of the space of some vectors, orthonormal with respect to B; directions lost in rounding are left out."""
    norms = ops.linalg_vector_norm(vectors, dim=-2)
    vectors = vectors[:, norms > 0] / norms[norms > 0].to(vectors.dtype)
    products = ops.adjoint_matmul(vectors, vectors if B is None else B.matmul(vectors))
    values, turned = ops.linalg_eigh(products)
    kept = values > values[-1:] * _eps(vectors) * vectors.shape[-1]
    return vectors.matmul(turned[:, kept] / values[kept].sqrt().to(turned.dtype))
