"""What ops are for sparse tensors, element by element: each is a computation of the values."""

from __future__ import annotations

from typing import Any

from corefw.dispatch.declare import ops
from corefw.dispatch.sparse.calls import refusal, rule
from corefw.dispatch.sparse.patterns import Pattern, coo, coordinates, flat
from corefw.dispatch.sparse.patterns import transposed as transposed_pattern
from corefw.dispatch.sparse.tensors import at_pattern, elements_of, is_sparse, sparse, values_of
from corefw.errors import ShapeError
from corefw.layouts import COMPRESSED
from corefw.shapes import canonical_dim
from corefw.sparse.forms import as_layout_of, coalesce, to_coo, to_dense
from corefw.tensor import Tensor

#: ops of one operand that are 0 where it is
_OF_ZERO_ZERO = [
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "deg2rad",
    "erf",
    "expm1",
    "floor",
    "log1p",
    "rad2deg",
    "relu",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor) or (not is_sparse(value) and value.ndim == 0)


def _of_each(name: str) -> None:
    @rule(name)
    def compute(input, *attributes):
        input = coalesce(input)
        return sparse(input.array.pattern, getattr(ops, name)(values_of(input), *attributes))


for _name in _OF_ZERO_ZERO:
    _of_each(_name)


@rule("neg")
def _negated(input):
    return sparse(input.array.pattern, -values_of(input))


@rule("clone")
def _cloned(input, *attributes):
    return sparse(input.array.pattern, values_of(input).clone())


@rule("pow")
def _powered(input, exponent):
    if not is_sparse(input) or not _is_number(exponent) or not exponent > 0:
        raise refusal("pow", (input, exponent), ", but powers by a positive number")
    input = coalesce(input)
    return sparse(input.array.pattern, values_of(input) ** exponent)


def _check_same_shape(name: str, input: Tensor, other: Tensor) -> None:
    if tuple(input.shape) != tuple(other.shape):
        raise ShapeError(f"{name}: sparse tensors of shapes {list(input.shape)} and {list(other.shape)} do not fit")


def _joined(input: Tensor, other: Tensor) -> Tensor:
    """The sum of two sparse tensors of one shape."""
    result: Tensor
    a, b = input.array.pattern, other.array.pattern
    if a is b:
        return sparse(a, values_of(input) + values_of(other))
    if len(a.shape) != len(b.shape):
        raise ShapeError(f"add: {len(a.shape)} and {len(b.shape)} sparse dimensions: convert one by .to_dense() first")
    values, others = elements_of(input), elements_of(other)
    common = ops.result_type(values, others) if values.dtype is not others.dtype else values.dtype
    pattern = coo(ops.cat([coordinates(a), coordinates(b)], 1), a.shape)
    result = sparse(pattern, ops.cat([values.to(common), others.to(common)]))
    if a.coalesced and b.coalesced:
        result = coalesce(result)
    return as_layout_of(result, input) if (a.layout, a.block) == (b.layout, b.block) else result


@rule("add", "add_scaled")
def _sum(input, other, alpha=1):
    if is_sparse(input) and is_sparse(other):
        _check_same_shape("add", input, other)
        return _joined(input, other if alpha == 1 else other * alpha)
    if is_sparse(input):
        raise refusal("add", (input, other), " before dense ones or numbers (add(dense, sparse) is)")
    if _is_number(input):
        raise refusal("add", (input, other), " and numbers")
    return ops.add(input, to_dense(other), alpha=alpha)


@rule("sub", "sub_scaled")
def _difference(input, other, alpha=1):
    if is_sparse(input) and is_sparse(other):
        _check_same_shape("sub", input, other)
        return _joined(input, other * -alpha)
    if is_sparse(input) or _is_number(input):
        raise refusal("sub", (input, other), " before dense ones or numbers")
    return ops.sub(input, to_dense(other), alpha=alpha)


def _common(input: Tensor, other: Tensor) -> Pattern:
    """The positions that both of two coalesced sparse tensors have."""
    a = input.array.pattern
    keep = ops.isin(flat(a), flat(other.array.pattern)).nonzero().flatten()
    return coo(coordinates(a).index_select(1, keep), a.shape, True)


@rule("mul")
def _product(input, other):
    if not is_sparse(input):
        input, other = other, input
    if _is_number(other):
        return sparse(input.array.pattern, values_of(input) * other)
    if not is_sparse(other):
        dense = ops.broadcast_to(other, tuple(input.shape))
        return sparse(input.array.pattern, values_of(input) * at_pattern(dense, input.array.pattern))
    _check_same_shape("mul", input, other)
    first = input
    input, other = coalesce(to_coo(input)), coalesce(to_coo(other))
    pattern = _common(input, other)
    return as_layout_of(sparse(pattern, at_pattern(input, pattern) * at_pattern(other, pattern)), first)


@rule("div")
def _quotient(input, other, rounding_mode=None):
    if not is_sparse(input) or not _is_number(other):
        raise refusal("div", (input, other), ", but of a sparse tensor by a number")
    if rounding_mode is not None:
        input = coalesce(input)
    return sparse(input.array.pattern, ops.div(values_of(input), other, rounding_mode=rounding_mode))


# -- transposition ----------------------------------------------------------------------------------------------------
@rule("t")
def _turned(input):
    if input.ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {input.ndim}D")
    return _transposed(input, 0, 1) if input.ndim == 2 else input


@rule("transpose", "swapaxes", "swapdims")
def _transposed(input, dim0, dim1):
    dims = list(range(input.ndim))
    dim0, dim1 = (canonical_dim(dim, input.ndim) for dim in (dim0, dim1))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return _permuted(input, dims)


@rule("permute")
def _permuted(input, dims):
    pattern = input.array.pattern
    count = len(pattern.shape)
    dims = [canonical_dim(dim, input.ndim) for dim in dims]
    if dims == list(range(input.ndim)):
        return input
    if sorted(dims) != list(range(input.ndim)) or dims[count:] != list(range(count, input.ndim)):
        raise refusal("permute", (input,), " but within their sparse dimensions")
    if pattern.layout in COMPRESSED:
        made = Pattern(COMPRESSED[pattern.layout], pattern.parts, pattern.shape[::-1], True, pattern.block[::-1])
        return sparse(made, values_of(input).transpose(1, 2).contiguous() if pattern.block else values_of(input))
    if count == 2:
        made = transposed_pattern(pattern)
    else:
        made = coo(coordinates(pattern)[dims[:count]], tuple(pattern.shape[dim] for dim in dims[:count]))
    return sparse(made, values_of(input))
