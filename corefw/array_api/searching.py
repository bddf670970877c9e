"""The array API's functions that search, sort, pick and count distinct elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import corefw
from corefw import dtypes
from corefw.array_api.data_types import is_complex, promoted
from corefw.tensor import Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first largest element along an axis, in the flattened array if it is None."""
    return corefw.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element along an axis, in the flattened array if it is None."""
    return corefw.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The number of elements other than zero along axes."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    found = (x != 0).to(dtypes.int64)
    return found.sum(axes, keepdims) if axes else found


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements other than zero, a vector per axis; ValueError for an array without axes."""
    if not x.ndim:
        raise ValueError("nonzero: an array with at least one dimension is wanted")
    return tuple(corefw.nonzero(x).unbind(1))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of `x2` would have to be put into the vector `x1` to keep it sorted.

    Args:
        x1: a vector, sorted, or by `sorter`.
        x2: any shape.
        side: whether before ("left") or behind ("right") elements that are equal.
        sorter: the order that sorts `x1`.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().searchsorted(torch.tensor([1, 2, 2]), torch.tensor([2]), side="right")
    tensor([3])
    """
    keys, values = promoted(x1, x2)
    return corefw.searchsorted(keys if sorter is None else keys[sorter], values, side=side)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """The elements of `x1` where the condition holds, of `x2` elsewhere; one of these may be a number."""
    chosen, other = promoted(x1, x2)
    return corefw.where(condition, chosen, other)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """`x` in order along an axis."""
    return corefw.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that put `x` in order along an axis."""
    return corefw.argsort(x, dim=axis, descending=descending, stable=stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of `x` at a vector of positions; `axis` may be missing for a vector.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]), axis=1)
    tensor([[2, 2],
            [4, 4]])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    return x.index_select(axis, corefw.where(indices < 0, indices + x.shape[axis], indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The element of `x` at each position along an axis; the other axes broadcast."""
    return corefw.take_along_dim(x, corefw.where(indices < 0, indices + x.shape[axis], indices).to(dtypes.int64), axis)


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def _order(x: Tensor) -> Tensor:
    """The positions that put equal elements side by side; complex ones by their real parts, then the imaginary ones."""
    if not is_complex(x.dtype):
        return corefw.argsort(x, stable=True)
    order = corefw.argsort(x.imag, stable=True)
    return order[corefw.argsort(x.real[order], stable=True)]


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in ascending order, where each occurs first, which of them each element of `x` is, and how
    often each occurs. NaNs are distinct from each other; zeros of both signs are equal.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().unique_all(torch.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    flat = x.detach().flatten()
    order = _order(flat)
    ordered = flat[order]
    first = corefw.ones_like(ordered, dtype=dtypes.bool_)
    if flat.numel():
        first[1:] = ordered[1:] != ordered[:-1]
    places = first.nonzero().flatten()
    inverse = corefw.empty_like(order)
    inverse[order] = first.to(dtypes.int64).cumsum(0) - 1
    ends = corefw.cat([places[1:], places.new_tensor([flat.numel()])]) if flat.numel() else places
    return UniqueAll(ordered[places], order[places], inverse.reshape(x.shape), ends - places)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs; see `unique_all`."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements in ascending order, and which of them each element of `x` is; see `unique_all`."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements in ascending order; see `unique_all`."""
    return unique_all(x).values
