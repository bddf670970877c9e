"""Decompositions of symmetric and Hermitian matrices that may be indefinite, and what is solved by them.

Every op takes matrices in the last two dimensions; those before are a batch. `corefw.linalg` offers them. The compact
form is that of LAPACK's sytrf for lower triangles: exchanges of rows and columns alternate with steps of elimination,
each of which makes one row of D, or two that belong together. D stands on the diagonal, what was eliminated below it.
A step of one row tells in `pivots` the row, counted from 1, that its own was exchanged with; a step of two tells twice,
as a negative number, that of its second.

Source: Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems" (1977),
algorithm A.
"""

from __future__ import annotations

from itertools import product
from math import sqrt

from corefw.declarations._shared.batching import example_dims, from_the_end, full
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.rules import exponents, floats, same
from corefw.dtypes import INTEGER, int32
from corefw.errors import LinAlgError, ShapeError
from corefw.shapes import broadcast, check_square

#: the least part of its column's greatest element that a pivot may be: growth of elements is bounded best so
_LEAST = (1 + sqrt(17)) / 8


def _factors_shape(A, hermitian=False):
    check_square("linalg.ldl_factor_ex", A)
    return A, A[:-1], A[:-2]


@composite(
    dtype=floats.giving(same, exponents, exponents),
    shape=_factors_shape,
    outputs=("LD", "pivots", "info"),
    public="",
    grad_name="LinalgLdlFactorEx",
)
def ldl_factors(A, hermitian: bool):
    """What `linalg.ldl_factor_ex` gives. The host chooses the pivots, and waits for the elements that it compares."""
    check_square("linalg.ldl_factor_ex", A.shape)
    LD = ops.zeros_like(A)
    pivots = ops.zeros(A.shape[:-1], dtype=int32, device=A.device)
    info = ops.zeros(A.shape[:-2], dtype=int32, device=A.device)
    for at in _positions(A):
        order, zero = _eliminate(_whole(A.detach()[at], hermitian), LD[at])
        if order:
            pivots[at] = pivots.new_tensor(order)
        info[at] = zero
    return LD, pivots, info


ldl_factors.batching(from_the_end)


@ldl_factors.gradient("A")
def ldl_factors_vjp(grad_LD, grad_pivots, grad_info):
    raise NotImplementedError("the derivative for 'linalg_ldl_factor_ex' is not implemented.")


def _positions(matrices):
    """Where the matrices of a batch are; none if they hold no elements to read."""
    return () if matrices.is_meta else product(*map(range, matrices.shape[:-2]))


def _whole(A, hermitian: bool):
    """The symmetric or Hermitian matrix of a lower triangle."""
    below = A.tril(-1)
    if not (hermitian and A.is_complex()):
        return A.tril() + below.mT
    return below + ops.resolve_conj(below.mH) + A.diagonal().real.to(A.dtype).diag_embed()


def _eliminate(W, LD) -> tuple[list[int], int]:
    """Decompose W, of which nothing is left, into the zeros of LD; gives the pivots and the first row of D that is 0,
    counted from 1, or 0."""
    n, k, zero = len(W), 0, 0
    pivots: list[int] = []
    while k < n:
        at, rows = _pivot(W, k)
        last = k + rows - 1
        if at != last:
            order = [*range(n)]
            order[last], order[at] = at, last
            W[k:] = W[order[k:]]
            W[:, k:] = W[:, order[k:]]
        rest = k + rows
        D, beside = W[k:rest, k:rest], W[rest:, k:rest]
        LD[k:rest, k:rest] = D.tril()
        if rows == 2 or D.item() != 0:
            L = beside.matmul(_inverse(D))
            LD[rest:, k:rest] = L
            W[rest:, rest:] -= L.matmul(W[k:rest, rest:])
        else:
            zero = zero or k + 1
        pivots += [at + 1] if rows == 1 else [-at - 1] * 2
        k = rest
    return pivots, zero


def _pivot(W, k: int) -> tuple[int, int]:
    """The row to be exchanged in a step of elimination, and whether the step takes one row or two."""
    column = _sizes(W[k:, k])
    below = column[1:]
    greatest = max(below, default=0)
    if not greatest or column[0] >= _LEAST * greatest:
        return k, 1
    at = k + 1 + below.index(greatest) if greatest in below else k + 1  # NaN is not in
    row = _sizes(W[at, k:])
    size = row.pop(at - k)
    beside = max(row)
    if column[0] >= _LEAST * greatest * (greatest / beside):
        return k, 1
    return (at, 1) if size >= _LEAST * beside else (at, 2)


def _sizes(elements) -> list[float]:
    """The sum of the parts' moduli, as in LAPACK."""
    return (elements.real.abs() + elements.imag.abs() if elements.is_complex() else elements.abs()).tolist()


def _inverse(D):
    """The inverse of a block of one or two rows; of two, the greatest element is beside the diagonal."""
    if len(D) == 1:
        return 1 / D
    (a, b), (c, d) = D.unbind()[0].unbind(), D.unbind()[1].unbind()
    p, q = d / c, a / b
    inverse = ops.stack([p / b, -1 / c, -1 / b, q / c]).reshape(2, 2)
    return inverse / (p * q - 1)


@composite(out=True, outputs=("LD", "pivots", "info"), result_name="linalg_ldl_factor_ex")
def linalg_ldl_factor_ex(A, *, hermitian: bool = False, check_errors: bool = False):
    """`linalg.ldl_factor`, which tells of a D that cannot be divided by instead of raising.

    Args:
        A: shape (..., n, n), of which the lower triangle is read.
        hermitian: whether a complex A is Hermitian; else it is symmetric.
        check_errors: whether a row of D that is 0 is an error nevertheless.

    Returns:
        LD and pivots as `linalg.ldl_factor`; info of shape (...), int32: the first row of D that is 0, counted from 1,
        or 0.

    >>> import corefw as torch
    >>> torch.linalg.ldl_factor_ex(torch.ones(2, 2)).info
    tensor(2, dtype=torch.int32)
    """
    LD, pivots, info = ops.ldl_factors(A, hermitian)
    if check_errors:
        _refuse_zeros("linalg.ldl_factor_ex", info)
    return linalg_ldl_factor_ex.op.result_type(LD, pivots, info)


def _refuse_zeros(name: str, info) -> None:
    if info.dispatch_key.device.type != "meta" and (found := int(all_examples(info).max()) if info.numel() else 0):
        raise LinAlgError(
            f"{name}: D[{found},{found}] is zero, so linalg.ldl_solve would divide by zero. linalg.ldl_factor_ex gives "
            "the decomposition nevertheless."
        )


@composite(out=True, outputs=("LD", "pivots"), result_name="linalg_ldl_factor")
def linalg_ldl_factor(A, *, hermitian: bool = False):
    """The decomposition ``A = P @ L @ D @ L.mT @ P.mT`` of symmetric matrices, D of blocks of one or two rows, in the
    compact form that `linalg.ldl_solve` takes.

    Args:
        A: shape (..., n, n), of which the lower triangle is read.
        hermitian: whether a complex A is Hermitian, ``A = P @ L @ D @ L.mH @ P.mT``; else it is symmetric.

    Returns:
        LD of A's shape: D on the diagonal and between the two rows of a block, L below, zeros above; pivots of shape
        (..., n), int32, as LAPACK's sytrf gives them. They have no gradient.

    Raises:
        LinAlgError: a row of D is 0.

    >>> import corefw as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> LD
    tensor([[0., 0.],
            [2., 0.]])
    >>> pivots
    tensor([-2, -2], dtype=torch.int32)
    """
    LD, pivots, info = ops.ldl_factors(A, hermitian)
    _refuse_zeros("linalg.ldl_factor", info)
    return linalg_ldl_factor.op.result_type(LD, pivots)


def _solution_shape(LD, pivots, B, hermitian=False):
    check_square("linalg.ldl_solve", LD)
    if len(B) < 2:
        raise ShapeError("linalg.ldl_solve: B must have at least 2 dimensions, the last for its columns")
    if pivots != LD[:-1]:
        raise ShapeError(
            "linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots)} instead"
        )
    if LD[-1] != B[-2]:
        raise ShapeError(
            f"linalg.ldl_solve: Incompatible matrix sizes: each A matrix is {LD[-1]} by {LD[-1]} but each b matrix is "
            f"{B[-2]} by {B[-1]}"
        )
    return (*broadcast(LD[:-2], B[:-2]), *B[-2:])


@composite(dtype=floats, shape=_solution_shape, public="", grad_name="LinalgLdlSolve")
def ldl_solution(LD, pivots: Index, B, hermitian: bool):
    """What `linalg.ldl_solve` gives. The host reads the pivots."""
    shape = _solution_shape(LD.shape, pivots.shape, B.shape)
    batch, n = shape[:-2], LD.shape[-1]
    X = B.detach().expand(shape).clone()
    LD, pivots = LD.detach().expand(*batch, n, n), pivots.expand(*batch, n)
    for at in _positions(X):
        _substitute(LD[at], pivots[at].tolist(), X[at], hermitian)
    return X


@ldl_solution.batching
def ldl_solution_batching(call, examples, LD, pivots, B, hermitian):
    n = max(example_dims(LD), example_dims(B)) - 2
    LD, pivots, B = (
        full(one, examples).reshape(examples, *(1,) * (n + own - example_dims(one)), *one.shape[1:])
        for one, own in ((LD, 2), (pivots, 1), (B, 2))
    )
    return call(LD, pivots, B, hermitian)


@ldl_solution.gradient("LD", "B")
def ldl_solution_vjp(grad, needs):
    raise NotImplementedError("the derivative for 'linalg_ldl_solve' is not implemented.")


def _substitute(LD, pivots: list[int], X, hermitian: bool) -> None:
    """Turn right-hand sides into solutions, in their place."""
    steps, k = [], 0
    while k < len(pivots):
        rows = 1 if pivots[k] > 0 else 2
        steps.append((k, k + rows, k + rows - 1, abs(pivots[k]) - 1))
        k += rows
    for k, rest, last, at in steps:
        _exchange(X, last, at)
        X[rest:] -= LD[rest:, k:rest].matmul(X[k:rest])
        X[k:rest] = _inverse(_whole(LD[k:rest, k:rest], hermitian)).matmul(X[k:rest])
    for k, rest, last, at in reversed(steps):
        L = LD[rest:, k:rest]
        X[k:rest] -= (L.mH if hermitian else L.mT).matmul(X[rest:])
        _exchange(X, last, at)


def _exchange(X, i: int, j: int) -> None:
    if i != j:
        row = X[i].clone()
        X[i] = X[j]
        X[j] = row


@composite(out=True)
def linalg_ldl_solve(LD, pivots: Index, B, *, hermitian: bool = False):
    """The solution X of ``A @ X = B`` from what `linalg.ldl_factor` gave of A.

    Args:
        LD, pivots: what `linalg.ldl_factor` gave, shapes (..., n, n) and (..., n).
        B: shape (..., n, k), its batch broadcast with LD's.
        hermitian: what `linalg.ldl_factor` was told.

    Returns:
        shape (..., n, k). It has no gradient.

    Raises:
        RuntimeError: shapes do not fit, or pivots are not what `linalg.ldl_factor` gives.

    >>> import corefw as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [1.]])
    """
    if pivots.dtype.category != INTEGER:
        raise ShapeError(f"linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype}")
    if LD.dtype is not B.dtype:
        raise ShapeError(
            f"linalg.ldl_solve: Expected B and LD to have the same dtype, but got {B.dtype} and {LD.dtype}"
        )
    _solution_shape(LD.shape, pivots.shape, B.shape)
    _check_pivots(pivots)
    return ops.ldl_solution(LD, pivots, B, hermitian)


def _check_pivots(pivots) -> None:
    """Refuse what would exchange rows that there are not, or leave half a block."""
    if pivots.dispatch_key.device.type == "meta" or not pivots.numel():
        return
    n = pivots.shape[-1]
    negative = pivots < 0
    first = negative.logical_and(negative.to(int32).cumsum(-1) % 2 == 1)
    partner = ops.cat([pivots[..., 1:], ops.zeros_like(pivots[..., :1])], -1)
    if all_examples((pivots == 0) | (pivots.abs() > n) | first.logical_and(pivots != partner)).any():
        raise ShapeError(
            "Pivots given to ldl_solve must all satisfy |pivot| >= 1, be at most the number of rows and, where they "
            "are negative, stand in equal pairs. Did you properly pass the result of ldl_factor?"
        )
