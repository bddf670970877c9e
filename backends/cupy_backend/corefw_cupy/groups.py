"""How normalisations see arrays: as groups of elements, and weights beside them (source/normalization/groups.cuh)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw_cupy.launch import argument

_FIELDS = ("outer", "groups", "inner", "period", "channels", "run")


@dataclass(frozen=True, eq=False)  # `view` makes one of each
class View:
    """An array of outer x groups x inner elements, and which number of a weight belongs to which."""

    outer: int
    groups: int
    inner: int
    period: int
    channels: int
    run: int
    struct: Any  # all of that for CUDA

    @property
    def size(self) -> int:
        """The elements of a group."""
        return self.outer * self.inner

    @property
    def in_columns(self) -> bool:
        """Whether the groups are the columns of a matrix."""
        return self.inner == 1 and self.outer > 1

    @property
    def weight_per_group(self) -> bool:
        """Whether all elements of a group share a number of the weight, and no other group does."""
        return self.period == self.groups and self.channels == 1

    @property
    def weight_per_element(self) -> bool:
        """Whether each element of a row has a number of the weight, in all rows the same."""
        return self.outer == self.period == self.run == 1


@lru_cache(maxsize=4096)
def view(outer: int, groups: int, inner: int, period: int = 1, channels: int = 1, run: int = 1) -> View:
    """The view of these sizes."""
    struct = np.zeros(1, [(name, "i8") for name in _FIELDS])
    numbers = (outer, groups, inner, period, channels, max(run, 1))
    struct[0] = numbers
    return View(*numbers, argument(struct))


@lru_cache(maxsize=4096)
def layers(shape: tuple[int, ...], normalized_shape: tuple[int, ...]) -> tuple[View, tuple[int, ...]]:
    """(rows of the last dimensions, the shape of their statistics)."""
    first = len(shape) - len(normalized_shape)
    if first < 0 or not normalized_shape or shape[first:] != normalized_shape:
        raise ValueError(f"an input of shape (*, {normalized_shape}) expected")
    return view(1, prod(shape[:first]), prod(normalized_shape)), shape[:first] + (1,) * len(normalized_shape)


@lru_cache(maxsize=4096)
def channel_groups(shape: tuple[int, ...], num_groups: int) -> View:
    """Groups of the channels (dimension 1) of each sample."""
    samples, channels, *rest = shape
    if num_groups <= 0 or channels % num_groups:
        raise ValueError(f"channels that {num_groups} divides expected")
    size, run = channels // num_groups, prod(rest)
    return view(1, samples * num_groups, size * run, num_groups, size, run)


@lru_cache(maxsize=4096)
def channels(shape: tuple[int, ...]) -> View:
    """All elements of a channel (dimension 1) of all samples."""
    outer, groups, inner = shape[0], shape[1], prod(shape[2:])
    return view(outer, groups, inner, groups, 1, outer * inner)


@dataclass(frozen=True)
class Standing:
    """How an array is seen of which statistics are taken over some dimensions."""

    view: View
    statistics: tuple[int, ...]  # their shape
    order: tuple[int, ...] | None  # of dimensions, in which the array can be seen so, if that is another
    inverse: tuple[int, ...] | None
    weighted: bool  # whether the view tells which number of the weight belongs to which element


def _weight_numbers(shape: tuple[int, ...], beside: tuple[int, ...], first: int) -> tuple[int, int, int] | None:
    """(period, channels, run) of a weight for rows of the dimensions from `first` on, if it is one of such numbers."""
    varied = [d for d in range(len(shape)) if beside[d] == shape[d] > 1]
    if not varied:
        return None
    begin, end = varied[0], varied[-1] + 1
    if prod(beside) != prod(shape[begin:end]) or not begin <= first <= end:
        return None
    return prod(shape[begin:first]), prod(shape[first:end]), prod(shape[end:])


@lru_cache(maxsize=4096)
def standing(shape: tuple[int, ...], dims: tuple[int, ...], weight: tuple[int, ...] | None = None) -> Standing:
    """How an array is seen beside a weight: as rows if `dims` are the last ones, as samples of channels if what is kept
    lies together, or as rows of a transposed array."""
    kept = tuple(d for d in range(len(shape)) if d not in dims)
    statistics = tuple(1 if d in dims else n for d, n in enumerate(shape))
    beside = None if weight is None else (1,) * (len(shape) - len(weight)) + weight
    if kept == tuple(range(len(kept))):
        groups, size = prod(statistics), prod(shape[len(kept) :])
        numbers = None if beside is None else _weight_numbers(shape, beside, len(kept))
        return Standing(view(1, groups, size, *numbers or ()), statistics, None, None, numbers is not None)
    if kept == tuple(range(kept[0], kept[-1] + 1)):
        outer, groups, inner = prod(shape[: kept[0]]), prod(statistics), prod(shape[kept[-1] + 1 :])
        seen = view(outer, groups, inner, groups, 1, outer * inner)
        return Standing(seen, statistics, None, None, beside == statistics)
    order = (*kept, *dims)
    inverse = tuple(sorted(range(len(shape)), key=order.__getitem__))
    seen = view(1, prod(shape[d] for d in kept), prod(shape[d] for d in dims))
    return Standing(seen, statistics, order, inverse, False)
