"""Reductions: sums, products, means and logical summaries over some or all dimensions."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf

from corefw import dtypes
from corefw.declarations._shared.batching import reduced, reduced_along_one
from corefw.dispatch.declare import Dim, Dims, GivenDims, Sizes, composite, ops, primitive, view
from corefw.dispatch.rules import accumulate, boolean, floating, floats, index, same
from corefw.dtypes import dtype
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import as_shape, count_reduced, reduced_shape


# -- gradients --------------------------------------------------------------------------------------------------------
@view(dtype=same, public="")
def expand_reduced(input, dim: tuple | None, keepdim: bool, shape: tuple):
    """Repeat the result of reducing `shape` over `dim` along these dimensions, without a copy: the adjoint of `sum`."""
    _, strides, offset = input
    if dim is None:
        return shape, (0,) * len(shape), offset
    kept = iter(strides)
    along = [next(kept) if keepdim or i not in dim else 0 for i in range(len(shape))]
    return shape, tuple(0 if i in dim else stride for i, stride in enumerate(along)), offset


expand_reduced.gradients(input=lambda grad, dim, keepdim: grad.sum(dim, keepdim))


@composite(public="")
def select_backward(grad, dim: int, indices, keepdim: bool, shape: tuple):
    """Put gradients of elements picked along `dim` back to where they came from, zero elsewhere."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter(dim, indices, grad)


@composite(public="")
def distribute(grad, chosen, dim: tuple | None, keepdim: bool, shape: tuple):
    """Divide a gradient evenly among the elements that were `chosen`; NaN where none was, beside NaN."""
    count = chosen.sum(dim, keepdim)
    each = grad / count
    others = (each.detach() * 0).masked_fill(count > 0, 0)
    return ops.where(
        chosen, ops.expand_reduced(each, dim, keepdim, shape), ops.expand_reduced(others, dim, keepdim, shape)
    )


# -- sums and products ------------------------------------------------------------------------------------------------
@primitive(
    name="sum",
    dtype=accumulate,
    shape=reduced_shape,
    rewrites=("dtype",),
    out=True,
    grad_name=lambda dim: "Sum" if dim is None else "Sum1",
)
def sum_(input, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The sum of the elements over the dimensions `dim`; integers and bool are summed in int64.

    Args:
        input: any shape.
        dim: the dimensions to sum over; None or () for all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(0)
    tensor([4., 6.])
    """
    return input.to(dtype).sum(dim, keepdim).to(dtype)


sum_.batching(reduced)
sum_.gradients(input=lambda grad, dim, keepdim, input_shape: ops.expand_reduced(grad, dim, keepdim, input_shape))


@composite(public="Tensor")
def sum_to_size(input, size: Sizes):
    """Sum over dimensions so that the result has shape `size`, from which the input's shape could have been broadcast.

    >>> import corefw as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    size, shape = as_shape(size), input.array.shape
    dims, keepdim, longer = _broadcast_dims(size, shape)
    if dims == () and size:
        return input
    result = _sum(input, dims, keepdim)
    return result.reshape(size) if keepdim and longer else result


_sum = sum_.op.function


@lru_cache(maxsize=4096)
def _broadcast_dims(size: tuple, shape: tuple) -> tuple[int | tuple, bool, bool]:
    """The dimensions in which `size` was broadcast to `shape`, whether one was there and of size 1, and whether one
    was not."""
    leading = len(shape) - len(size)
    if leading < 0 or [n for n, m in zip(size, shape[leading:]) if n not in (1, m)]:
        raise ShapeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    inner = [i for i, n in enumerate(size, leading) if n == 1 != shape[i]]
    dims = (*range(leading), *inner)
    return dims[0] if len(dims) == 1 else dims, bool(inner), leading > 0


@primitive(
    dtype=floats,
    shape=reduced_shape,
    rewrites=("dtype",),
    out=True,
    grad_name=lambda dim: "Mean" if dim is None else "Mean1",
)
def mean(input, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The arithmetic mean of the elements over the dimensions `dim`; NaN where there are none.

    Args:
        input: any shape, floating or complex.
        dim: the dimensions to average over; None or () for all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: convert the elements to this dtype first, for instance integers.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).mean(1)
    tensor([1.5000, 3.5000])
    """
    return input.to(dtype).mean(dim, keepdim)


mean.batching(reduced)


@mean.gradient("input")
def mean_vjp(grad, dim, keepdim, input_shape):
    return ops.expand_reduced(grad / (count_reduced(input_shape, dim) or 1), dim, keepdim, input_shape)


@primitive(dtype=accumulate.without("complex"), shape=reduced_shape, rewrites=("dtype",), out=True)
def nansum(input, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The sum of the elements over the dimensions `dim`, NaN counted as zero. Arguments as for `sum`.

    >>> import corefw as torch
    >>> torch.tensor([1.0, torch.nan, 2.0]).nansum()
    tensor(3.)
    """
    if dtype is not None and dtype.category < dtypes.FLOATING:
        input = input.nan_to_num(0.0, inf, -inf)  # NaN has no integer
    return input.to(dtype).nansum(dim, keepdim).to(dtype)


nansum.batching(reduced)


@nansum.gradient("input")
def nansum_vjp(grad, input, dim, keepdim, input_shape):
    return ops.expand_reduced(grad, dim, keepdim, input_shape) * input.isnan().logical_not()


@composite(out=True)
def nanmean(input, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The mean of the elements that are not NaN, over the dimensions `dim`. Arguments as for `mean`.

    >>> import corefw as torch
    >>> torch.tensor([1.0, torch.nan, 2.0]).nanmean()
    tensor(1.5000)
    """
    summed = dtype or input.dispatch_key.dtype
    if summed.category < dtypes.FLOATING:
        raise DtypeError(f"nanmean(): expected a floating point or complex dtype but got {summed.title}")
    return input.nansum(dim, keepdim, dtype=dtype) / input.isnan().logical_not().sum(dim, keepdim)


@primitive(
    name="prod",
    dtype=accumulate,
    shape=reduced_shape,
    rewrites=("dtype",),
    out=True,
    grad_name=lambda dim: "Prod" if dim is None else "Prod1",
)
def product(input, dim: Dim | None = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The product of all elements, or of those along `dim`; integers and bool are multiplied in int64.

    Args:
        dim: the dimension to reduce; None for all.
        input, keepdim, dtype: as for `sum`.

    >>> import corefw as torch
    >>> torch.tensor([[1, 2], [3, 4]]).prod(1)
    tensor([ 2, 12])
    """
    return input.to(dtype).prod(dim, keepdim).to(dtype)


product.batching(reduced_along_one)


def product_of_others(input, dim: int):
    """For each element the product of all others along `dim`, without division, so that zeros do no harm.

    The elements are multiplied in pairs, pairs of pairs and so on; each element's others are its partner and the others
    of its pair.
    """
    size = input.shape[dim]
    if size < 2:
        return ops.ones_like(input)
    half = size // 2
    first, second = input.narrow(dim, 0, half), input.narrow(dim, half, half)
    pairs = first * second
    if size % 2 == 0:
        others = product_of_others(pairs, dim)
        return ops.cat([others * second, others * first], dim)
    last = input.narrow(dim, size - 1, 1)
    others = product_of_others(ops.cat([pairs, last], dim), dim)
    of_pairs = others.narrow(dim, 0, half)
    return ops.cat([of_pairs * second, of_pairs * first, others.narrow(dim, half, 1)], dim)


@product.gradient("input")
def product_vjp(grad, input, dim, keepdim, input_shape):
    if not input_shape:
        return grad
    half = input.dtype in (dtypes.float16, dtypes.bfloat16)
    wide = input.float() if half else input  # a product of some of the elements may be beyond the type
    if dim is None:
        others = product_of_others(wide.reshape(-1), 0).reshape(input_shape)
    else:
        others = product_of_others(wide, dim)
    return ops.expand_reduced(grad, None if dim is None else (dim,), keepdim, input_shape) * others.conj()


@primitive(dtype=floating, shape=reduced_shape, out=True, public="corefw Tensor special")
def logsumexp(input, dim: Dims, keepdim: bool = False):
    """``log(sum(exp(input)))`` over the dimensions `dim`, without overflow; -inf where there is nothing to sum.

    >>> import corefw as torch
    >>> torch.tensor([1000.0, 1000.0]).logsumexp(0)
    tensor(1000.6932)
    """


logsumexp.batching(reduced)


@logsumexp.gradient("input")
def logsumexp_vjp(grad, input, out, dim, keepdim, input_shape):
    shares = (input - ops.expand_reduced(out, dim, keepdim, input_shape)).exp()
    return ops.expand_reduced(grad, dim, keepdim, input_shape) * shares.conj()


@composite()
def trace(input):
    """The sum of the diagonal of a matrix.

    >>> import corefw as torch
    >>> torch.tensor([[1, 2], [3, 4]]).trace()
    tensor(5)
    """
    if input.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return input.diagonal().sum()


# -- logic ------------------------------------------------------------------------------------------------------------
_truth = replace(boolean, results=(lambda d: d if d is dtypes.uint8 else dtypes.bool_,))


@primitive(name="all", dtype=_truth, shape=reduced_shape, out=True)
def all_(input, dim: GivenDims = None, keepdim: bool = False):
    """Whether all elements over the dimensions `dim` are true, that is not zero; NaN is true. uint8 gives uint8.

    >>> import corefw as torch
    >>> torch.tensor([[True, False], [True, True]]).all(1)
    tensor([False,  True])
    """


all_.batching(reduced)


@primitive(name="any", dtype=_truth, shape=reduced_shape, out=True)
def any_(input, dim: GivenDims = None, keepdim: bool = False):
    """Whether some element over the dimensions `dim` is true, that is not zero; NaN is true. uint8 gives uint8.

    >>> import corefw as torch
    >>> torch.tensor([[True, False], [False, False]]).any(1)
    tensor([ True, False])
    """


any_.batching(reduced)


@primitive(dtype=index, shape=reduced_shape)
def count_nonzero(input, dim: Dims = None):
    """How many elements over the dimensions `dim` are not zero.

    >>> import corefw as torch
    >>> torch.tensor([[0.0, 1.0], [2.0, 3.0]]).count_nonzero(0)
    tensor([1, 2])
    """


count_nonzero.batching(reduced)
