"""How row-wise kernels distribute rows over threads (source/core/rows.cuh), and the layouts of arrays as such rows."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

WARP = 32
MOST_THREADS = 512  # as in rows.cuh
SMALL = 128  # threads of a block that holds several rows
MULTIPROCESSORS = 132  # of an H100
MANY = 8 * MULTIPROCESSORS  # rows that keep a device busy with a warp for each
SPAN = 4096  # elements that are worth a block of their own

#: elements that a thread holds in registers, by the key of the macro ITEMS
ITEMS = {count: str(count) for count in (1, 8, 16, 32)}
#: the same where it holds as many of a second array
ITEMS_OF_TWO = {count: str(count) for count in (1, 8, 16)}


class Launch(NamedTuple):
    """How a kernel is launched whose threads hold rows in registers."""

    items: int  # elements that a thread holds
    lanes: int  # threads of a row
    grid: tuple[int]
    block: tuple[int]


def power_of_two(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << max(0, n - 1).bit_length()


def _several(items: int, lanes: int, rows: int) -> Launch:
    threads = max(lanes, SMALL)
    return Launch(items, lanes, (-(-rows // (threads // lanes)) if lanes < SMALL else rows,), (threads,))


@lru_cache(maxsize=4096)
def distribute(n: int, rows: int, most: int = 32) -> Launch | None:
    """How threads hold rows of `n` elements, at most `most` each; None if rows are too long.

    Part of a warp or a warp holds a short row, a block a long one, or any but the shortest if there are few.
    """
    if n <= WARP:
        return _several(1, power_of_two(n), rows)
    choices = [items for items in ITEMS if 1 < items <= most]
    for items in choices:
        if n <= WARP * items and (rows >= MANY or n <= WARP * choices[0]):
            return _several(items, power_of_two(-(-n // items)), rows)
    for items in choices:
        lanes = -(-n // (items * WARP)) * WARP
        if lanes <= MOST_THREADS:
            return Launch(items, lanes, (rows,), (lanes,))
    return None


@lru_cache(maxsize=4096)
def split(n: int, rows: int) -> tuple[int, int]:
    """(parts, elements of a part) of long rows: several blocks work on each if there are few rows."""
    wanted = -(-2 * MULTIPROCESSORS // max(rows, 1))
    parts = max(1, min(wanted, n // SPAN, MOST_THREADS))
    length = -(-n // parts)
    length = -(-length // 16) * 16  # parts begin where 16 bytes do, if rows do
    return max(1, -(-n // length)), length


@lru_cache(maxsize=4096)
def along(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """(outer, n, inner): how many elements lie before, along and after a dimension."""
    if not shape:
        return 1, 1, 1
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


@lru_cache(maxsize=4096)
def columns(outer: int, n: int, inner: int) -> tuple[int, int, tuple[int], tuple[int]]:
    """(columns of a block, tiles of columns, grid, block) of kernels whose threads lie along `inner`, several for each
    column."""
    width = min(WARP, power_of_two(inner))
    threads = max(WARP, width * min(SMALL // 4, power_of_two(n), 256 // width))
    tiles = -(-inner // width)
    return width, tiles, (outer * tiles,), (threads,)


def expanded(cuda, array, shape: tuple[int, ...]):
    """The array broadcast to a shape, dense."""
    if array.shape == shape:
        return cuda.dense(array)
    result = cuda.empty(shape, array.dtype)
    cuda.copying.copy(result, array)
    return result
