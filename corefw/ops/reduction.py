"""Reductions: sums, extremes, moments, norms and logical summaries over some or all dimensions."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod
from typing import overload

from corefw import dtypes, return_types
from corefw.dispatch.declare import Dim, Dims, Sizes, composite, ops, primitive, view
from corefw.dispatch.rules import accumulate, boolean, floating, floating_real, index, same
from corefw.dtypes import dtype
from corefw.errors import DimensionError, DtypeError, ShapeError
from corefw.shapes import Shape, as_shape, canonical_dim, reduced
from corefw.tensor import Tensor

Number = int | float


# -- shapes -----------------------------------------------------------------------------------------------------------
def reduced_shape(input: Shape, dim=None, keepdim=False, *statics) -> Shape:
    """The input's shape without the dimensions reduced over."""
    return reduced(input, (dim,) if dim.__class__ is int else dim, keepdim)


def nonempty(name: str, error: type[Exception] = ShapeError):
    """The shape rule of a reduction that has no value for nothing, such as a maximum."""

    def shape(input: Shape, dim=None, keepdim=False, *statics) -> Shape:
        if dim is None and not prod(input):
            raise error(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        for d in (dim,) if dim.__class__ is int else dim or ():
            if input and not input[d]:
                raise DimensionError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return reduced_shape(input, dim, keepdim)

    return shape


def picked(name: str):
    """The shape rule of a reduction that picks an element: its value and its position."""
    rule = nonempty(name)

    def shape(input: Shape, dim, keepdim, *statics) -> tuple[Shape, Shape]:
        result = rule(input, dim, keepdim)
        return result, result

    return shape


def count(shape: Shape, dim) -> int:
    """How many elements are reduced to one."""
    return prod(shape) if dim is None else prod(shape[d] for d in dim)


# -- gradients --------------------------------------------------------------------------------------------------------
@view(dtype=same, method=False)
def spread(input, dim: tuple | None, keepdim: bool, shape: tuple):
    """Repeat the result of reducing `shape` over `dim` along these dimensions, without a copy: the adjoint of `sum`."""
    _, strides, offset = input
    if dim is None:
        return shape, (0,) * len(shape), offset
    kept = iter(strides)
    along = [next(kept) if keepdim or i not in dim else 0 for i in range(len(shape))]
    return shape, tuple(0 if i in dim else stride for i, stride in enumerate(along)), offset


@spread.gradient("input")
def _(grad, dim, keepdim):
    return grad.sum(dim, keepdim)


@composite(method=False)
def unpick(grad, dim: int, indices, keepdim: bool, shape: tuple):
    """Put gradients of elements picked along `dim` back to where they came from, zero elsewhere."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter(dim, indices, grad)


def share(grad, chosen, dim, keepdim, shape):
    """Divide a gradient evenly among the elements that were `chosen`."""
    return ops.spread(grad, dim, keepdim, shape) * chosen / chosen.sum(dim, True)


# -- sums and products ------------------------------------------------------------------------------------------------
@primitive(name="sum", dtype=accumulate, shape=reduced_shape, rewrites=("dtype",), out=True)
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


@sum_.gradient("input")
def _(grad, dim, keepdim, input_shape):
    return ops.spread(grad, dim, keepdim, input_shape)


@composite()
def sum_to_size(input, size: Sizes):
    """Sum over dimensions so that the result has shape `size`, from which the input's shape could have been broadcast.

    >>> import corefw as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    size, shape = as_shape(size), input.array.shape
    leading = len(shape) - len(size)
    if leading < 0 or [n for n, m in zip(size, shape[leading:]) if n not in (1, m)]:
        raise ShapeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    inner = [i for i, n in enumerate(size, leading) if n == 1 != shape[i]]
    if not inner:
        return input.sum(tuple(range(leading))) if leading else input
    result = input.sum((*range(leading), *inner), keepdim=True)
    return result.reshape(size) if leading else result


@primitive(dtype=same.without("bool", "integer"), shape=reduced_shape, rewrites=("dtype",), out=True)
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


@mean.gradient("input")
def _(grad, dim, keepdim, input_shape):
    return ops.spread(grad / (count(input_shape, dim) or 1), dim, keepdim, input_shape)


@primitive(dtype=accumulate.without("complex"), shape=reduced_shape, rewrites=("dtype",), out=True)
def nansum(input, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The sum of the elements over the dimensions `dim`, NaN counted as zero. Arguments as for `sum`.

    >>> import corefw as torch
    >>> torch.tensor([1.0, torch.nan, 2.0]).nansum()
    tensor(3.)
    """
    return input.to(dtype).nansum(dim, keepdim).to(dtype)


@nansum.gradient("input")
def _(grad, input, dim, keepdim, input_shape):
    return ops.spread(grad, dim, keepdim, input_shape) * input.isnan().logical_not()


@composite(out=True)
def nanmean(input, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The mean of the elements that are not NaN, over the dimensions `dim`. Arguments as for `mean`.

    >>> import corefw as torch
    >>> torch.tensor([1.0, torch.nan, 2.0]).nanmean()
    tensor(1.5000)
    """
    if input.place.dtype.category < dtypes.FLOATING and dtype is None:
        raise DtypeError(
            "nanmean(): expected input to have floating point or complex dtype but got " + input.place.dtype.title
        )
    return input.nansum(dim, keepdim, dtype=dtype) / input.isnan().logical_not().sum(dim, keepdim)


@primitive(name="prod", dtype=accumulate, shape=reduced_shape, rewrites=("dtype",), out=True)
def product(input, dim: Dim | None = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The product of all elements, or of those along `dim`; integers and bool are multiplied in int64.

    Args:
        input: any shape.
        dim: the dimension to reduce; None for all.
        keepdim: keep the reduced dimension with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.tensor([[1, 2], [3, 4]]).prod(1)
    tensor([ 2, 12])
    """
    return input.to(dtype).prod(dim, keepdim).to(dtype)


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
def _(grad, input, dim, keepdim, input_shape):
    if not input_shape:
        return grad
    if dim is None:
        others = product_of_others(input.reshape(-1), 0).reshape(input_shape)
    else:
        others = product_of_others(input, dim)
    return ops.spread(grad, None if dim is None else (dim,), keepdim, input_shape) * others.conj()


# -- extremes ---------------------------------------------------------------------------------------------------------
@primitive(dtype=same.without("complex"), shape=nonempty("amax"), out=True)
def amax(input, dim: Dims = (), keepdim: bool = False):
    """The largest element over the dimensions `dim`; NaN where there is one. Equal largest elements share the gradient.

    Args:
        input: any shape.
        dim: the dimensions to reduce; () or None for all.
        keepdim: keep the reduced dimensions with size 1.

    Raises:
        RuntimeError, IndexError: if there is nothing to choose from.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).amax((0, 1))
    tensor(4.)
    """


@primitive(dtype=same.without("complex"), shape=nonempty("amin"), out=True)
def amin(input, dim: Dims = (), keepdim: bool = False):
    """The smallest element over the dimensions `dim`; NaN where there is one. Otherwise as `amax`.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).amin(1)
    tensor([1., 2.])
    """


def _extreme_gradient(grad, input, out, dim, keepdim, input_shape):
    return share(grad, input == ops.spread(out, dim, keepdim, input_shape), dim, keepdim, input_shape)


for _extreme in (amax, amin):
    _extreme.gradient("input")(_extreme_gradient)


@composite(out=True, outputs=("min", "max"))
def aminmax(input, *, dim: Dim | None = None, keepdim: bool = False):
    """The smallest and the largest element, of all or along `dim`, as a named tuple ``(min, max)``.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).aminmax().max
    tensor(3.)
    """
    if dim is not None:
        dim = canonical_dim(dim, input.ndim)
    elif not prod(input.array.shape):
        raise ShapeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    return aminmax.op.result_type(input.amin(dim, keepdim), input.amax(dim, keepdim))


_positions = same.without("complex").giving(same, index)


@primitive(
    dtype=_positions,
    shape=picked("max"),
    method=False,
    outputs=("values", "indices"),
    result_name="max",
    grad_name="Max",
)
def max_dim(input, dim: Dim, keepdim: bool = False):
    """The largest elements along `dim` and the first positions where they are found; NaN counts as largest."""


@primitive(
    dtype=_positions,
    shape=picked("min"),
    method=False,
    outputs=("values", "indices"),
    result_name="min",
    grad_name="Min",
)
def min_dim(input, dim: Dim, keepdim: bool = False):
    """The smallest elements along `dim` and the first positions where they are found; NaN counts as smallest."""


@overload
def max_(input) -> Tensor: ...
@overload
def max_(input, dim: int, keepdim: bool = False) -> return_types.max: ...
@overload
def max_(input, other: Tensor) -> Tensor: ...
@composite(name="max", out=True)
def max_(input, dim: int | None = None, keepdim: bool = False, *, other=None):
    """The largest of all elements; the largest along `dim`, as a named tuple ``(values, indices)``; or with a tensor in
    place of `dim`, the elementwise `maximum` of two.

    Args:
        input: any shape.
        dim: the dimension to reduce, or the other tensor.
        keepdim: keep the reduced dimension with size 1.
        other: the other tensor.

    Equal largest elements share the gradient of ``max()``; ``max(dim)`` gives it to the position it names.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).max(1).indices
    tensor([1, 0])
    """
    if dim is None:
        return input.amax() if other is None else ops.maximum(input, other)
    return ops.maximum(input, dim) if isinstance(dim, Tensor) else ops.max_dim(input, dim, keepdim)


@overload
def min_(input) -> Tensor: ...
@overload
def min_(input, dim: int, keepdim: bool = False) -> return_types.min: ...
@overload
def min_(input, other: Tensor) -> Tensor: ...
@composite(name="min", out=True)
def min_(input, dim: int | None = None, keepdim: bool = False, *, other=None):
    """The smallest of all elements, along `dim`, or of two tensors elementwise; arguments as for `max`.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).min(0).values
    tensor([1., 2.])
    """
    if dim is None:
        return input.amin() if other is None else ops.minimum(input, other)
    return ops.minimum(input, dim) if isinstance(dim, Tensor) else ops.min_dim(input, dim, keepdim)


@primitive(dtype=index.without("bool", "complex"), shape=nonempty("argmax", DimensionError), out=True)
def argmax(input, dim: Dim | None = None, keepdim: bool = False):
    """The first position of the largest element along `dim`, or in the flattened tensor; NaN counts as largest.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).argmax()
    tensor(1)
    """


@primitive(dtype=index.without("bool", "complex"), shape=nonempty("argmin", DimensionError), out=True)
def argmin(input, dim: Dim | None = None, keepdim: bool = False):
    """The first position of the smallest element along `dim`, or in the flattened tensor; NaN counts as smallest.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 4.0], [3.0, 2.0]]).argmin(1)
    tensor([0, 1])
    """


# -- order statistics -------------------------------------------------------------------------------------------------
@primitive(
    dtype=_positions.without("bool", "complex"),
    shape=picked("median"),
    method=False,
    outputs=("values", "indices"),
    result_name="median",
    grad_name="Median",
)
def median_dim(input, dim: Dim, keepdim: bool = False):
    """The lower medians along `dim` and their positions; the first NaN where there is one."""


@primitive(
    dtype=_positions.without("bool", "complex"),
    shape=picked("nanmedian"),
    method=False,
    outputs=("values", "indices"),
    result_name="nanmedian",
    grad_name="Nanmedian",
)
def nanmedian_dim(input, dim: Dim, keepdim: bool = False):
    """The lower medians along `dim` of the elements that are not NaN, and their positions."""


@overload
def median(input) -> Tensor: ...
@overload
def median(input, dim: int, keepdim: bool = False) -> return_types.median: ...
@composite(out=True)
def median(input, dim: int | None = None, keepdim: bool = False):
    """The median of all elements, or along `dim` as a named tuple ``(values, indices)``.

    Of an even number of elements it is the lower of the two in the middle. NaN where there is one.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 4.0, 2.0]).median()
    tensor(2.)
    """
    return _median(input, ops.median_dim) if dim is None else ops.median_dim(input, dim, keepdim)


@overload
def nanmedian(input) -> Tensor: ...
@overload
def nanmedian(input, dim: int, keepdim: bool = False) -> return_types.nanmedian: ...
@composite(out=True)
def nanmedian(input, dim: int | None = None, keepdim: bool = False):
    """As `median`, of the elements that are not NaN.

    >>> import corefw as torch
    >>> torch.tensor([3.0, torch.nan, 4.0]).nanmedian()
    tensor(3.)
    """
    return _median(input, ops.nanmedian_dim) if dim is None else ops.nanmedian_dim(input, dim, keepdim)


def _median(input, median_along):
    if not input.numel():
        return input.new_full((), float("nan"))
    return median_along(input.reshape(-1), 0).values


@primitive(dtype=_positions, shape=picked("mode"), outputs=("values", "indices"), out=True)
def mode(input, dim: Dim = -1, keepdim: bool = False):
    """The most frequent values along `dim`, the smallest of several, and the positions of their last occurrences.

    >>> import corefw as torch
    >>> torch.tensor([1, 3, 3, 1, 2]).mode().values
    tensor(1)
    """


def _kth_shape(input: Shape, k: int, dim: int, keepdim: bool):
    result = picked("kthvalue")(input, dim, keepdim)
    if not 1 <= k <= (input[dim] if input else 1):
        raise ShapeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return result


@primitive(dtype=_positions.without("bool", "complex"), shape=_kth_shape, outputs=("values", "indices"), out=True)
def kthvalue(input, k: int, dim: Dim = -1, keepdim: bool = False):
    """The `k`-th smallest elements along `dim`, counted from 1, and their positions; NaN counts as largest.

    Raises:
        RuntimeError: if there are fewer than `k` elements.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).kthvalue(2).values
    tensor(2.)
    """


def _pick_gradient(grad, indices, dim, keepdim, input_shape):
    return ops.unpick(grad, dim, indices, keepdim, input_shape)


for _pick in (max_dim, min_dim, median_dim, nanmedian_dim, mode, kthvalue):
    _pick.gradient("input")(_pick_gradient)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@composite(out=True)
def quantile(input, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"):
    """The values below which a share `q` of the elements lies, in all or along `dim`. NaN where there is one.

    Args:
        input: any shape, float32 or float64.
        q: the share from 0 to 1; a 1-d tensor of shares gives the result a first dimension of its size.
        dim: the dimension to reduce; None for all.
        keepdim: keep the reduced dimension with size 1.
        interpolation: what to take between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0, 3.0, 5.0]).quantile(0.5)
    tensor(2.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@composite(out=True)
def nanquantile(
    input, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
):
    """As `quantile`, of the elements that are not NaN.

    >>> import corefw as torch
    >>> torch.tensor([1.0, torch.nan, 3.0]).nanquantile(0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input, q, dim, keepdim: bool, interpolation: str):
    if input.place.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise ShapeError(f"{name}() interpolation must be one of {', '.join(_INTERPOLATIONS)}, but got {interpolation}")
    if not input.numel():
        raise ShapeError(f"{name}() input tensor must be non-empty")
    if not isinstance(q, Tensor):
        q = input.new_full((), q)
    if q.place.dtype is not input.place.dtype:
        raise DtypeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.ndim > 1:
        raise ShapeError(f"{name}() q must be a scalar or 1D tensor")
    if bool(((q < 0) | (q > 1)).any()):
        raise ShapeError(f"{name}() q values must be in the range [0, 1]")
    ndim = input.ndim
    lines = input.reshape(-1) if dim is None else input.movedim(dim, -1) if ndim else input.reshape(1)
    ordered = lines.sort(-1).values
    shares = q.reshape(-1)
    if name == "nanquantile":
        rank = shares * (lines.isnan().logical_not().sum(-1, True) - 1).clamp(0)
    else:
        rank = (shares * (lines.shape[-1] - 1)).expand((*lines.shape[:-1], shares.numel()))
        rank = rank.masked_fill(lines.isnan().any(-1, True), lines.shape[-1] - 1)  # where NaN has been sorted to
    if interpolation in ("lower", "higher", "nearest"):
        position = (
            rank.floor() if interpolation == "lower" else rank.ceil() if interpolation == "higher" else rank.round()
        )
        result = ordered.gather(-1, position.long())
    else:
        low = ordered.gather(-1, rank.floor().long())
        high = ordered.gather(-1, rank.ceil().long())
        weight = 0.5 if interpolation == "midpoint" else rank - rank.floor()
        result = ops.lerp(low, high, weight)
    result = result.movedim(-1, 0)
    if keepdim:
        if dim is None or not ndim:
            result = result.reshape((shares.numel(), *(1,) * ndim))
        else:
            result = result.unsqueeze(dim + 1 if dim >= 0 else dim)
    return result if q.ndim else result.squeeze(0)


# -- logic ------------------------------------------------------------------------------------------------------------
_truth = replace(boolean, results=(lambda d: d if d is dtypes.uint8 else dtypes.bool_,))


@primitive(name="all", dtype=_truth, shape=reduced_shape, out=True)
def all_(input, dim: Dims = None, keepdim: bool = False):
    """Whether all elements over the dimensions `dim` are true, that is not zero; NaN is true. uint8 gives uint8.

    >>> import corefw as torch
    >>> torch.tensor([[True, False], [True, True]]).all(1)
    tensor([False,  True])
    """


@primitive(name="any", dtype=_truth, shape=reduced_shape, out=True)
def any_(input, dim: Dims = None, keepdim: bool = False):
    """Whether some element over the dimensions `dim` is true, that is not zero; NaN is true. uint8 gives uint8.

    >>> import corefw as torch
    >>> torch.tensor([[True, False], [False, False]]).any(1)
    tensor([ True, False])
    """


@primitive(dtype=index, shape=reduced_shape)
def count_nonzero(input, dim: Dims = None):
    """How many elements over the dimensions `dim` are not zero.

    >>> import corefw as torch
    >>> torch.tensor([[0.0, 1.0], [2.0, 3.0]]).count_nonzero(0)
    tensor([1, 2])
    """


# -- moments ----------------------------------------------------------------------------------------------------------
_moment = floating_real.without("bool", "integer")


@composite(dtype=_moment, shape=reduced_shape, method=False, grad_name="Var")
def variance(input, dim: Dims, keepdim: bool, correction: Number):
    """The mean squared distance from the mean over `dim`, where `correction` is taken off the number of elements."""
    distance = input - input.mean(dim, True)
    squared = distance.abs().square() if input.place.dtype.is_complex else distance.square()
    freedom = count(input.shape, dim) - correction
    return squared.sum(dim, keepdim) / (freedom if freedom > 0 else 0.0)


@variance.gradient("input")
def _(grad, input, dim, keepdim, correction):
    return _variance_gradient(grad, input, dim, keepdim, correction)


def _variance_gradient(grad, input, dim, keepdim, correction):
    freedom = count(input.shape, dim) - correction
    scaled = grad * (2 / freedom if freedom > 0 else inf)
    return ops.spread(scaled, dim, keepdim, input.array.shape) * (input - input.mean(dim, True))


@composite(dtype=_moment, shape=reduced_shape, method=False, grad_name="Std")
def deviation(input, dim: Dims, keepdim: bool, correction: Number):
    """The square root of `variance`; where it is zero so is its gradient."""
    return ops.variance(input, dim, keepdim, correction).sqrt()


@deviation.gradient("input")
def _(grad, input, out, dim, keepdim, correction):
    return _variance_gradient((grad / (2 * out)).masked_fill(out == 0, 0), input, dim, keepdim, correction)


def _moment_options(dim, unbiased: bool | None, correction: Number | None):
    """`dim` and the correction meant by the arguments of `var`, `std` and their like."""
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    elif unbiased is not None:
        raise TypeError("unbiased and correction say the same thing; give one of them")
    return dim, correction


@composite(out=True)
def var(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Number | None = None
):
    """The variance of the elements over the dimensions `dim`: ``|x - mean|^2`` summed, over ``n - correction``.

    Args:
        input: any shape, floating or complex.
        dim: the dimensions to reduce; None or () for all. A bool in its place is `unbiased`.
        unbiased: False for ``correction=0``.
        keepdim: keep the reduced dimensions with size 1.
        correction: taken off the number of elements, 1 (Bessel's) unless given. NaN where nothing is left.

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0, 3.0]).var()
    tensor(1.)
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.variance(input, dim, keepdim, correction)


@composite(out=True)
def std(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Number | None = None
):
    """The standard deviation of the elements over the dimensions `dim`: the square root of `var`, with its arguments.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 3.0], [2.0, 2.0]]).std(1, correction=0)
    tensor([1., 0.])
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.deviation(input, dim, keepdim, correction)


@composite(out=True, method=False, outputs=("var", "mean"))
def var_mean(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Number | None = None
) -> tuple[Tensor, Tensor]:
    """The variance and the mean; arguments as for `var`.

    >>> import corefw as torch
    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.variance(input, dim, keepdim, correction), input.mean(dim, keepdim)


@composite(out=True, method=False, outputs=("std", "mean"))
def std_mean(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Number | None = None
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean; arguments as for `var`.

    >>> import corefw as torch
    >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.deviation(input, dim, keepdim, correction), input.mean(dim, keepdim)


@primitive(dtype=floating, shape=reduced_shape, out=True)
def logsumexp(input, dim: Dims, keepdim: bool = False):
    """``log(sum(exp(input)))`` over the dimensions `dim`, without overflow; -inf where there is nothing to sum.

    >>> import corefw as torch
    >>> torch.tensor([1000.0, 1000.0]).logsumexp(0)
    tensor(1000.6932)
    """


@logsumexp.gradient("input")
def _(grad, input, out, dim, keepdim, input_shape):
    shares = (input - ops.spread(out, dim, keepdim, input_shape)).exp()
    return ops.spread(grad, dim, keepdim, input_shape) * shares.conj()


# -- norms ------------------------------------------------------------------------------------------------------------
def _norm_shape(input: Shape, ord, dim, keepdim):
    if (ord < 0 or ord == inf) and not count(input, dim):
        where = "an empty tensor" if dim is None else f"the empty dimensions {list(dim)}"
        raise ShapeError(f"linalg.vector_norm cannot compute the {ord} norm on {where}; it has no identity")
    return reduced_shape(input, dim, keepdim)


@primitive(dtype=_moment, shape=_norm_shape, method=False, grad_name="LinalgVectorNorm")
def vector_norm(input, ord: Number, dim: Dims = None, keepdim: bool = False):
    """``sum(|x|^ord)^(1/ord)`` over `dim`; for the limits inf and -inf the largest and smallest modulus, for 0 the
    number of elements that are not zero."""


@vector_norm.gradient("input")
def _(grad, input, out, ord, dim, keepdim, input_shape):
    if ord == 0:
        return None
    if ord == 1:
        return ops.spread(grad, dim, keepdim, input_shape) * input.sgn()
    if ord in (inf, -inf):
        chosen = input.abs() == ops.spread(out, dim, keepdim, input_shape)
        return share(grad, chosen, dim, keepdim, input_shape) * input.sgn()
    if ord == 2:
        return ops.spread((grad / out).masked_fill(out == 0, 0), dim, keepdim, input_shape) * input
    scale = (grad / out ** (ord - 1)).masked_fill(out == 0, 0)
    modulus = input.abs()
    if ord < 2:  # a negative power below, infinite at 0
        powers = input.sgn() * (modulus ** (ord - 1)).masked_fill(modulus == 0, 0)
    else:
        powers = input * modulus ** (ord - 2)
    return ops.spread(scale, dim, keepdim, input_shape) * powers


@composite(out=True)
def norm(input, p: Number | str | None = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """The `p`-norm of the elements over the dimensions `dim`: ``sum(|x|^p)^(1/p)``.

    Args:
        input: any shape, floating or complex.
        p: the order; "fro" and None mean 2, inf and -inf the largest and smallest modulus, 0 the number of elements
            that are not zero.
        dim: the dimensions to reduce; None or () for all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    if dtype is not None:
        input = input.to(dtype)
    if isinstance(p, str) and p != "fro":
        raise ShapeError(f"norm: the order is a number, 'fro' or None, not {p!r}")
    return ops.vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim)


@composite()
def dist(input, other, p: Number = 2):
    """The `p`-norm of ``input - other``, which broadcast.

    >>> import corefw as torch
    >>> torch.dist(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    tensor(5.)
    """
    return (input - other).norm(p)


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
