"""Products of Householder reflections ``H_i = I - tau_i * v_i @ v_i.mH``, by which QR decompositions are made.

The vector v_i is 0 above row i and 1 there; what follows stands below the diagonal of a matrix. `corefw.linalg` offers
them. Source: Golub and Van Loan, "Matrix Computations" (4th edition), sections 5.1 and 5.2.
"""

from __future__ import annotations

from corefw.declarations._shared.batching import from_the_end
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import floats, same
from corefw.errors import ShapeError
from corefw.shapes import check_matrices


def _geqrf_shape(input):
    check_matrices("geqrf", input)
    return input, (*input[:-2], min(input[-2:]))


@composite(dtype=floats.giving(same, same), shape=_geqrf_shape, outputs=("a", "tau"), out=True)
def geqrf(input):
    """The QR decomposition in the compact form that `linalg.householder_product` and `ormqr` take.

    Args:
        input: shape (..., m, n).

    Returns:
        a of that shape: R on and above the diagonal, the reflections' vectors below it; tau of shape (..., min(m, n)).

    >>> import corefw as torch
    >>> torch.geqrf(torch.tensor([[3.0], [4.0]])).tau
    tensor([1.6000])
    """
    m, n = input.shape[-2:]
    a, factors = input.detach().clone(), []
    for j in range(min(m, n)):
        column = a[..., j:, j].clone()
        first, rest = column[..., 0], column[..., 1:]
        part = first.real if column.is_complex() else first
        norm = ops.linalg_vector_norm(column, dim=-1)
        beta = ops.where(part < 0, norm, -norm).to(a.dtype)
        none = (rest == 0).all(-1)
        if column.is_complex():
            none = none.logical_and(first.imag == 0)
        tau = ((beta - first) / beta).masked_fill(none, 0)
        vector = column / (first - beta).masked_fill(none, 1).unsqueeze(-1)
        vector[..., 0] = 1
        a[..., j:, j:] = _reflected(vector, tau.conj(), a[..., j:, j:])
        a[..., j + 1 :, j] = vector[..., 1:].masked_fill(none.unsqueeze(-1), 0)
        factors.append(tau)
    tau = ops.stack(factors, -1) if factors else a.new_empty((*a.shape[:-2], 0))
    return geqrf.op.result_type(a, ops.resolve_conj(tau))


geqrf.batching(from_the_end)


@geqrf.gradient("input")
def geqrf_vjp(grad_a, grad_tau):
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


def _reflected(vector, tau, matrix):
    """``(I - tau * v @ v.mH) @ matrix``."""
    v = vector.unsqueeze(-1)
    return matrix - tau.unsqueeze(-1).unsqueeze(-1) * v.matmul(ops.adjoint_matmul(v, matrix))


def _vectors(input, count: int):
    """The vector of each reflection."""
    rows = input.shape[-2]
    below = input[..., :count].tril(-1) + ops.eye(rows, count, dtype=input.dtype, device=input.device)
    return [below[..., j] for j in range(count)]


@composite(out=True, public="linalg.householder_product corefw.orgqr Tensor.orgqr")
def linalg_householder_product(input, tau):
    """The first n columns of the product of reflections H_1 @ H_2 ..., the Q of a QR decomposition.

    Args:
        input: shape (..., m, n) with m >= n, the vectors below its diagonal.
        tau: shape (..., k) with k <= n, the factors.

    >>> import corefw as torch
    >>> a, tau = torch.geqrf(torch.tensor([[3.0], [4.0]]))
    >>> torch.linalg.householder_product(a, tau)
    tensor([[-0.6000],
            [-0.8000]])
    >>> torch.equal(a.orgqr(tau), torch.orgqr(a, tau))
    True
    """
    check_matrices("linalg.householder_product", input.shape)
    if tau.shape[:-1] != input.shape[:-2] or not tau.ndim:
        raise ShapeError(
            f"linalg.householder_product: expected tau to have the batch of input, got shape {list(tau.shape)} beside "
            f"{list(input.shape)}"
        )
    (m, n), count = input.shape[-2:], tau.shape[-1]
    if m < n:
        raise ShapeError("linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < count:
        raise ShapeError("linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    result = ops.eye(m, n, dtype=input.dtype, device=input.device).expand(input.shape)
    for j, vector in reversed(list(enumerate(_vectors(input, count)))):
        result = _reflected(vector, tau[..., j], result)
    return result.clone() if count == 0 else result


@composite(out=True)
def ormqr(input, tau, other, left: bool = True, transpose: bool = False):
    """A matrix times the whole product Q of reflections, which is not made.

    Args:
        input: shape (..., m, k), the vectors below its diagonal.
        tau: shape (..., min(m, k)), the factors.
        other: shape (..., m, n), with `left` False (..., n, m).
        left: whether Q stands to the left of `other`.
        transpose: whether ``Q.mH`` stands there instead.

    >>> import corefw as torch
    >>> a = torch.tensor([[3.0], [4.0]])
    >>> torch.ormqr(*torch.geqrf(a), a, transpose=True)
    tensor([[-5.],
            [ 0.]])
    """
    check_matrices("ormqr", input.shape)
    check_matrices("ormqr", other.shape)
    rows = other.shape[-2 if left else -1]
    if rows != input.shape[-2]:
        raise ShapeError(
            f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], got {rows} and "
            f"{input.shape[-2]}"
        )
    count = min(input.shape[-2:])
    if tau.ndim != input.ndim - 1 or tau.shape[-1] != count:
        raise ShapeError(
            f"torch.ormqr: expected tau to have one dimension less than input and {count} elements in its last one, "
            f"but got tau of shape {list(tau.shape)} and input of shape {list(input.shape)}"
        )
    if not left:  # other @ Q = (Q.mH @ other.mH).mH
        return ormqr(input, tau, other.mH, True, not transpose).mH
    reflections = list(enumerate(_vectors(input, tau.shape[-1])))
    for j, vector in reflections if transpose else reversed(reflections):
        factor = tau[..., j]
        other = _reflected(vector, factor.conj() if transpose else factor, other)
    return other
