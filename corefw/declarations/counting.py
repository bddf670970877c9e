"""How often values occur: of whole numbers, and in intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod
from typing import overload

from corefw import dtypes, return_types
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.numbers import Real
from corefw.dispatch.rules import computed
from corefw.errors import DtypeError, KernelNotFoundError, ShapeError
from corefw.tensor import Tensor


@composite()
def bincount(input, weights=None, minlength: int = 0):
    """How often each of 0, 1, 2, ... occurs, or the sum of the `weights` where it does.

    Args:
        input: 1-d, integers that are not negative.
        weights: of the same shape; the result is float32 for float32 ones, else float64.
        minlength: the least size of the result.

    >>> import corefw as torch
    >>> torch.tensor([0, 2, 2]).bincount()
    tensor([1, 0, 2])
    """
    if input.dispatch_key.dtype.category != dtypes.INTEGER:
        raise DtypeError(f"bincount only supports 1-d non-negative integral inputs, got {input.dispatch_key.dtype!r}")
    if minlength < 0:
        raise ShapeError("minlength should be >= 0")
    size = int(input.max()) + 1 if input.numel() else 0
    if input.ndim != 1 or (input.numel() and int(input.min()) < 0):
        raise ShapeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        weights = ops.ones_like(input, dtype=dtypes.int64)
    elif weights.array.shape != input.array.shape:
        raise ShapeError("weights should be 1-d and have the same length as input")
    elif weights.dispatch_key.dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    return weights.new_zeros(max(size, minlength)).index_add_(0, input.long(), weights.detach())


@composite(out=True)
def histc(input, bins: int = 100, min: Real = 0, max: Real = 0):
    """How many elements fall into each of `bins` intervals of equal width between `min` and `max`; others are left out.

    Args:
        input: any shape, floating.
        bins: the number of intervals.
        min, max: the ends; if equal, the smallest and the largest element.

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0, 1.0]).histc(4, 0, 3)
    tensor([0., 2., 1., 0.])
    """
    dtype = input.dispatch_key.dtype
    if not dtype.is_floating_point:
        raise DtypeError(f"histc: expected a floating-point tensor, got {dtype!r}")
    if bins <= 0:
        raise ShapeError(f"bins must be > 0, got {bins}")
    values = input.detach().reshape(-1).to(computed(dtype))
    low, high = float(min), float(max)
    if low == high and values.numel():
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (isfinite(low) and isfinite(high)):
        raise ShapeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise ShapeError("max must be larger than min")
    counted = (values >= low) & (values <= high)
    values = values.masked_fill(counted.logical_not(), low)
    position = ((values - low) * (bins / (high - low))).long().clamp(max=bins - 1)
    return position.new_zeros(bins).index_add_(0, position, counted.long()).to(dtype)


# -- histograms -------------------------------------------------------------------------------------------------------
def _bounds(values, given: Sequence[float] | None, d: int) -> tuple[float, float]:
    """The ends of the intervals of dimension `d`: those that are given, or the smallest and the largest value."""
    if given is None:
        given = (float(values.min()), float(values.max())) if values.numel() else (0.0, 1.0)
    low, high = given
    if not (isfinite(low) and isfinite(high)):
        raise ShapeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise ShapeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(name: str, values, bins: int | Tensor, given: Sequence[float] | None, d: int):
    """The edges of the intervals of dimension `d`, in the dtype of the values."""
    if not isinstance(bins, Tensor):
        if bins <= 0:
            raise ShapeError(f"torch.{name}(): bins must be > 0, but got {bins} for dimension {d}")
        low, high = _bounds(values, given, d)
        return ops.linspace(low, high, bins + 1, dtype=values.dtype, device=values.device)
    if bins.dtype is not values.dtype:
        raise DtypeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{values.dtype} and bins for dimension {d} with dtype {bins.dtype}"
        )
    if bins.ndim != 1:
        raise ShapeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins "
            f"tensor for dimension {d}"
        )
    if bins.numel() < 2:
        raise ShapeError(f"torch.{name}(): bins must be > 0, but got {bins.numel() - 1} for dimension {d}")
    return bins.detach()


def _histogram(points, edges: Sequence[Tensor], weight, density: bool):
    """What lies in each cell: the sum of the weights of points, shape (N, D), between the edges of all dimensions."""
    place, inside = ops.zeros(len(points), dtype=dtypes.int64, device=points.device), None
    for values, edge in zip(points.unbind(1), edges, strict=True):
        count = edge.numel() - 1
        found = ops.searchsorted(edge, values.contiguous(), right=True) - 1
        found = ops.where(values == edge[-1], count - 1, found)  # the last interval includes its right end
        within = (found >= 0) & (found < count)
        inside = within if inside is None else inside & within
        place = place * count + found
    sizes = tuple(edge.numel() - 1 for edge in edges)
    weight = ops.ones_like(points[:, 0]) if weight is None else weight.detach().reshape(-1)
    result = points.new_zeros(prod(sizes)).index_add_(0, place[inside], weight[inside]).reshape(sizes)
    if density:
        result = result / result.sum()
        for d, edge in enumerate(edges):
            result = result / edge.diff().reshape((-1, *(1,) * (len(edges) - d - 1)))
    return result


def _check_histogram(input, shape: Sequence[int], weight) -> None:
    """Refuse what PyTorch's histograms do not take."""
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise KernelNotFoundError(f"\"histogramdd\" not implemented for '{input.dtype.title}'")
    if weight is None:
        return
    if weight.dtype is not input.dtype:
        raise DtypeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({input.dtype}), and weight({weight.dtype})"
        )
    if tuple(weight.shape) != tuple(shape):
        raise ShapeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )


@overload
def histogram(
    input, bins: int = 100, *, range: tuple[float, float] | None = None, weight=None, density: bool = False
) -> return_types.histogram: ...
@overload
def histogram(input, bins: Tensor, *, weight=None, density: bool = False) -> return_types.histogram: ...
@composite(outputs=("hist", "bin_edges"), out=True)
def histogram(
    input,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight=None,
    density: bool = False,
):
    """How many elements fall into each of several intervals; the last one includes its right end.

    Args:
        input: any shape, float32 or float64. NaN falls into no interval.
        bins: the number of intervals of equal width, or their edges in ascending order.
        range: the ends of the intervals; the smallest and the largest element unless given.
        weight: what each element counts, of the shape and dtype of `input`; 1 unless given.
        density: whether counts are divided by their sum and the widths of the intervals.

    Returns:
        A named tuple ``(hist, bin_edges)``.

    >>> import corefw as torch
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError("histogram(): edges in 'bins' say the range themselves; give one of them")
    _check_histogram(input, input.shape, weight)
    points = input.detach().reshape(-1, 1)
    edges = _edges("histogram", points[:, 0], bins, range, 0)
    return return_types.histogram(_histogram(points, [edges], weight, density), edges)


@composite(outputs=("hist", "bin_edges"))
def histogramdd(
    input,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight=None,
    density: bool = False,
):
    """How many points fall into each cell of a grid in D dimensions.

    Args:
        input: the points, shape (..., D), float32 or float64.
        bins: the number of intervals, of all dimensions or of each, or their edges in ascending order.
        range: the ends of the intervals, two numbers for each dimension.
        weight: what each point counts, shape (...) and dtype of `input`; 1 unless given.
        density: whether counts are divided by their sum and the volumes of the cells.

    Returns:
        A named tuple ``(hist, bin_edges)``: a tensor with D dimensions, and a tuple of D tensors.

    >>> import corefw as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), bins=2).hist
    tensor([[0., 1.],
            [2., 0.]])
    """
    if input.ndim < 2:
        raise ShapeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    _check_histogram(input, input.shape[:-1], weight)
    count = input.shape[-1]
    every: list = [bins] * count if isinstance(bins, int) else list(bins)
    if len(every) != count:
        raise ShapeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * count:
        raise ShapeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} elements, but got "
            f"{len(range)}"
        )
    points = input.detach().reshape(-1, count)
    edges = tuple(
        _edges("histogramdd", points[:, d], one, None if range is None else range[2 * d : 2 * d + 2], d)
        for d, one in enumerate(every)
    )
    return histogramdd.op.result_type(_histogram(points, edges, weight, density), edges)
