"""The array API's reductions, running sums and differences."""

from __future__ import annotations

from typing import Any

import corefw
from corefw import dtypes
from corefw.array_api.data_types import isdtype
from corefw.dtypes import dtype
from corefw.tensor import Tensor

Axes = int | tuple[int, ...] | None


def _axes(x: Tensor, axis: Axes) -> tuple[int, ...]:
    """The axes to reduce, all of them for None, none for ()."""
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _sum_type(x: Tensor, wanted: dtype | None) -> dtype:
    """The type of a sum: that of `x`, but 64 bits for integers."""
    if wanted is not None:
        return wanted
    if isdtype(x.dtype, "unsigned integer"):
        return dtypes.uint64
    return dtypes.int64 if isdtype(x.dtype, ("signed integer", "bool")) else x.dtype


def _accumulated(op: Any, x: Tensor, total: dtype, *arguments: Any) -> Tensor:
    """A sum or product in `total`; that of uint64 in int64, whose bits are the same."""
    work = dtypes.int64 if total is dtypes.uint64 else total
    return op(x.to(total).to(work), *arguments).to(total)


def sum(x: Tensor, /, *, axis: Axes = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The sum along axes; of integers in 64 bits, unsigned ones unsigned.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().sum(torch.tensor([200, 100], dtype=torch.uint8))
    tensor(300, dtype=torch.uint64)
    """
    axes, total = _axes(x, axis), _sum_type(x, dtype)
    return _accumulated(corefw.sum, x, total, axes, keepdims) if axes else x.to(total, copy=True)


def prod(x: Tensor, /, *, axis: Axes = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The product along axes; of integers in 64 bits, unsigned ones unsigned."""
    result = x.to(_sum_type(x, dtype), copy=True)
    for a in _axes(x, axis):
        result = _accumulated(corefw.prod, result, result.dtype, a, True)
    return result if keepdims else _without(result, _axes(x, axis))


def _without(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return x.squeeze(axes) if axes else x


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean along axes."""
    axes = _axes(x, axis)
    return corefw.mean(x, axes, keepdims) if axes else x.clone()


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axes, with N - `correction` in the denominator."""
    axes = _axes(x, axis)
    if not axes:
        return (x - x) / (1 - correction)  # NaN stays NaN
    return corefw.var(x, axes, correction=correction, keepdim=keepdims)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes, with N - `correction` in the denominator."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element along axes; NaN if one is."""
    axes = _axes(x, axis)
    return corefw.amax(x, axes, keepdims) if axes else x.clone()


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes; NaN if one is."""
    axes = _axes(x, axis)
    return corefw.amin(x, axes, keepdims) if axes else x.clone()


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are other than zero."""
    axes, found = _axes(x, axis), x != 0
    return corefw.all(found, axes, keepdims) if axes else found


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is other than zero."""
    axes, found = _axes(x, axis), x != 0
    return corefw.any(found, axes, keepdims) if axes else found


def _cumulative(op: Any, x: Tensor, axis: int | None, dtype: dtype | None, initial: int | None) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"cumulative_{op.__name__[3:]}: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    if not x.ndim:
        x = x.unsqueeze(0)
    result = _accumulated(op, x, _sum_type(x, dtype), axis)
    if initial is None:
        return result
    shape = list(result.shape)
    shape[axis] = 1
    return corefw.cat([corefw.full(shape, initial, dtype=result.dtype, device=x.device), result], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The running sum along an axis, which may be missing for a vector; 0 first with `include_initial`."""
    return _cumulative(corefw.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The running product along an axis, which may be missing for a vector; 1 first with `include_initial`."""
    return _cumulative(corefw.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The `n`-th differences of neighbours along an axis, with arrays put before and behind `x`."""
    return corefw.diff(x, n=n, dim=axis, prepend=prepend, append=append)
