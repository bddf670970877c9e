"""Memory that is written while it is read: threads come to their elements in any order, so that what another thread
reads must not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

MOST_PLACES = 4  # along a dimension that are looked at; more are taken for an element in common


def apart(arrays: Sequence, out, clone: Callable) -> Sequence:
    """The arrays from which elements of `out` are computed, each from those at its own position; copies of those that
    have an element in common with `out` at another position."""
    return [clone(a) if a is not out and changes(a, out) else a for a in arrays]


def changes(array, out) -> bool:
    """Whether writing to `out` changes an element of `array` at another position."""
    distance, size = array.data.ptr - out.data.ptr, out.dtype.itemsize
    if array.shape == out.shape and array.strides == out.strides and array.dtype.itemsize == size:
        return distance != 0 and meets(distance, array.shape, array.strides, size)
    (first, end), (other_first, other_end) = (_reach(a.shape, a.strides, a.dtype.itemsize) for a in (array, out))
    return distance + first < other_end and other_first < distance + end


@lru_cache(maxsize=1 << 12)
def meets(distance: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether two arrays of one shape and strides, `distance` bytes apart, have an element in common.

    >>> meets(20 * 4, (40, 20), (160, 4), 4), meets(4, (40, 39), (160, 4), 4)
    (False, True)
    """
    steps = sorted(((abs(step), n) for n, step in zip(shape, strides, strict=True) if n != 1), reverse=True)
    return 0 not in shape and _meets(distance, steps, itemsize)


def _meets(distance: int, steps: list[tuple[int, int]], itemsize: int) -> bool:
    if not steps:
        return abs(distance) < itemsize
    (step, n), *rest = steps
    reach = itemsize - 1 + sum((m - 1) * below for below, m in rest)  # of the dimensions below
    if not step:
        return _meets(distance, rest, itemsize)
    least, most = max(1 - n, -((reach - distance) // step)), min(n - 1, (distance + reach) // step)
    return most - least >= MOST_PLACES or any(
        _meets(distance - k * step, rest, itemsize) for k in range(least, most + 1)
    )


@lru_cache(maxsize=1 << 12)
def _reach(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The first byte and the end of an array's elements, counted from its first element."""
    reaches = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    if 0 in shape:
        return 0, 0
    return sum(min(0, reach) for reach in reaches), itemsize + sum(max(0, reach) for reach in reaches)
