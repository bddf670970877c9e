"""Norms of vectors and matrices, distances and condition numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from corefw.declarations._shared.batching import reduced
from corefw.dispatch.declare import Dims, composite, ops, primitive
from corefw.dispatch.numbers import Real
from corefw.dispatch.rules import moments
from corefw.dtypes import dtype
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import Shape, canonical_dim, check_matrices, check_square, count_reduced, reduced_shape


# -- norms of elements ------------------------------------------------------------------------------------------------
def _norm_shape(input: Shape, ord, dim, keepdim):
    if (ord < 0 or ord == inf) and not count_reduced(input, dim):
        where = "an empty tensor" if dim is None else f"the empty dimensions {list(dim)}"
        raise ShapeError(f"linalg.vector_norm cannot compute the {ord} norm on {where}; it has no identity")
    return reduced_shape(input, dim, keepdim)


@primitive(dtype=moments, shape=_norm_shape, public="", grad_name="LinalgVectorNorm")
def vector_norm(input, ord: Real, dim: Dims = None, keepdim: bool = False):
    """``sum(|x|^ord)^(1/ord)`` over `dim`; for the limits inf and -inf the largest and smallest modulus, for 0 the
    number of elements that are not zero."""


@vector_norm.batching
def vector_norm_batching(call, examples, input, ord, dim, keepdim):
    return reduced(lambda x, d, k: call(x, ord, d, k), examples, input, dim, keepdim)


@vector_norm.gradient("input")
def vector_norm_vjp(grad, input, out, ord, dim, keepdim, input_shape):
    if ord == 0:
        return None
    if ord == 1:
        return ops.expand_reduced(grad, dim, keepdim, input_shape) * input.sgn()
    if ord in (inf, -inf):
        chosen = input.abs() == ops.expand_reduced(out, dim, keepdim, input_shape)
        return ops.distribute(grad, chosen, dim, keepdim, input_shape) * input.sgn()
    if ord == 2:  # a quotient of at most 1, where `grad / out` may be beyond the range of a half type
        slope = input / ops.expand_reduced(out.masked_fill(out == 0, inf), dim, keepdim, input_shape)
        return ops.expand_reduced(grad, dim, keepdim, input_shape) * slope
    scale = (grad / out ** (ord - 1)).masked_fill(out == 0, 0)
    modulus = input.abs()
    if ord < 2:  # a negative power below, infinite at 0
        powers = input.sgn() * (modulus ** (ord - 1)).masked_fill(modulus == 0, 0)
    else:
        powers = input * modulus ** (ord - 2)
    return ops.expand_reduced(scale, dim, keepdim, input_shape) * powers


@composite(out=True, inplace=True)
def renorm(input, p: Real, dim: int, maxnorm: Real):
    """`input` with each slice along `dim` whose `p`-norm is larger than `maxnorm` scaled down to that norm.

    Args:
        input: at least two dimensions, floating or complex.
        p: the order of the norm, positive.
        dim: the dimension whose slices are meant.
        maxnorm: the largest norm, not negative.

    >>> import corefw as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), p=2, dim=0, maxnorm=1)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    if p <= 0:
        raise ShapeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise ShapeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    dim = canonical_dim(dim, input.ndim)
    norms = ops.linalg_vector_norm(input, p, [d for d in range(input.ndim) if d != dim], True)
    # A quotient a little below 1, so that the norm of what is rounded is not larger: PyTorch's.
    return input * ops.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


@composite(out=True)
def norm(input, p: Real | str | None = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The `p`-norm of the elements over the dimensions `dim`: ``sum(|x|^p)^(1/p)``.

    Args:
        input: any shape, floating or complex.
        p: the order; "fro" and None mean 2, inf and -inf the largest and smallest modulus, 0 the number of elements
            that are not zero; "nuc" the sum of the singular values of a matrix.
        dim: the dimensions to reduce, two for "nuc"; None or () for all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    if dtype is not None:
        input = input.to(dtype)
    if p == "nuc":
        return linalg_matrix_norm(input, p, tuple(range(input.ndim)) if dim is None else dim, keepdim)
    if isinstance(p, str) and p != "fro":
        raise ShapeError(f"norm: the order is a number, 'fro', 'nuc' or None, not {p!r}")
    return ops.vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim)


@composite()
def dist(input, other, p: Real = 2):
    """The `p`-norm of ``input - other``, which broadcast.

    >>> import corefw as torch
    >>> torch.dist(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    tensor(5.)
    """
    return (input - other).norm(p)


# -- norms of matrices ------------------------------------------------------------------------------------------------
def _check_fields(name: str, *tensors) -> None:
    """Refuse dtypes that bodies, which declare none, do not take."""
    for tensor in tensors:
        if tensor.dtype.category < 2:
            raise DtypeError(f"{name}: Expected a floating point or complex tensor as input. Got {tensor.dtype.title}")


@composite(out=True)
def linalg_cond(A, p: Real | str | None = None):
    """The condition number of matrices, ``norm(A) * norm(inv(A))`` in a norm of `linalg.matrix_norm`.

    Args:
        A: shape (..., m, n), square unless `p` is None, 2 or -2.
        p: the order of the norm; None for 2.

    Returns:
        shape (...), real; infinite for singular matrices, 0 for empty ones.

    >>> import corefw as torch
    >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 0.5]]))
    tensor(8.)
    """
    check_matrices("linalg.cond", A.shape)
    _check_fields("linalg.cond", A)
    if p not in (None, 2, -2):
        check_square("linalg.cond", A.shape)
    if 0 in A.shape[-2:]:
        return A.abs().sum((-2, -1))
    if p in (None, 2, -2):
        values = ops.singular_values(A)
        largest, least = values.select(-1, 0), values.select(-1, -1)
        return least / largest if p == -2 else largest / least
    singular = ops.linalg_slogdet(A.detach())[0] == 0
    identity = ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    A = ops.where(singular.unsqueeze(-1).unsqueeze(-1), identity, A)  # what has no inverse is not inverted
    return ops.where(singular, inf, linalg_matrix_norm(A, p) * linalg_matrix_norm(ops.linalg_inv(A), p))


@composite(out=True)
def linalg_vector_norm(x, ord: Real = 2, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
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
    _check_fields("linalg.vector_norm", x)
    if isinstance(ord, str):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {type(ord).__name__}")
    return ops.vector_norm(x if dtype is None else x.to(dtype), ord, dim, keepdim)


def _largest(moduli, dim: int):
    """The largest along a dimension; 0 where there is none."""
    return moduli.amax(dim) if moduli.shape[dim] else moduli.sum(dim)


@composite(out=True)
def linalg_matrix_norm(
    A,
    ord: Real | str = "fro",
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
    _check_fields("linalg.matrix_norm", A)
    check_matrices("linalg.matrix_norm", A.shape)
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
        result = values.sum(-1) if ord == "nuc" else _largest(values, -1) if ord == 2 else values.amin(-1)
    elif ord in (inf, -inf, 1, -1):
        summed, kept = (row, column) if ord in (1, -1) else (column, row)
        sums = A.abs().sum(summed, True)
        result = (_largest(sums, kept) if ord in (1, inf) else sums.amin(kept)).squeeze(summed - (kept < summed))
    else:
        raise ShapeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if keepdim:
        for d in sorted((row, column)):
            result = result.unsqueeze(d)
    return result


@composite(out=True)
def linalg_norm(
    A, ord: Real | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None
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
