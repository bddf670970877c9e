"""Stable sorts: short rows in shared memory, long ones digit by digit; of long rows, the first few are selected."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, NUMBERS, THREADS, blocks
from corefw_cupy.positions import along_elements, positions
from corefw_cupy.ranking import ranking

INT64, UINT32, UINT64 = np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.uint64)
SORTED = {**NUMBERS, **BOOL}
#: keys by their size
KEYS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
#: as in radix_sort.cu
DIGITS, TILE = 256, 4096
SHARED = 32 << 10  # bytes that the entries of a block may take
FEWEST, USUAL = 64, 1024  # entries of a block


def geometry(rows: int, n: int, size: int) -> tuple[int, int, int] | None:
    """How rows of `n` elements of `size` bytes are sorted in shared memory: the entries of a row, those of a block,
    and the bytes of these; None if a row does not fit."""
    bytes_of_entry = 16 if size == 8 else 8
    width = 1 << max(0, n - 1).bit_length()
    if width * bytes_of_entry > SHARED:
        return None
    together = 1 << (rows - 1).bit_length()
    entries = max(width, min(USUAL, max(FEWEST, width * together)))
    return width, entries, entries * bytes_of_entry


def selects(rows: int, n: int) -> bool:
    """Whether a block for each row finds the first few sooner than the whole device sorts all."""
    return rows >= 8 or n <= 1 << 18


class Ordering:
    """Functions that sort rows."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.at, self.ranking = cuda, positions(cuda), ranking(cuda)
        self.sort_short = cuda.function("sorting/short_sort.cu", "sort_short", T=SORTED)
        self.make_keys = cuda.function("sorting/long_sort.cu", "make_keys", T=SORTED)
        self.in_order = cuda.function("sorting/long_sort.cu", "in_order", T=SORTED)
        self.count_digits = cuda.function("sorting/radix_sort.cu", "count_digits", KEY=KEYS)
        self.sort_digits = cuda.function("sorting/radix_sort.cu", "sort_digits", KEY=KEYS)
        self.select_first = cuda.function("data_movement/select.cu", "select_first", T=SORTED)

    def first(self, input, k: int, dim: int, descending: bool) -> tuple[Any, Any]:
        """The first `k` elements in order along a dimension, and their positions.

        Equal elements stay in the order in which they came; NaN counts as the largest.
        """
        if not input.ndim:
            values, indices = self.first(input.reshape(1), k, 0, descending)
            return values.reshape(()), indices.reshape(())
        input = self.cuda.dense(input)
        n, inner = input.shape[dim], prod(input.shape[dim + 1 :])
        if not 0 <= k <= n < 1 << 32:
            raise ValueError(f"{k} of {n} elements")
        shape = (*input.shape[:dim], k, *input.shape[dim + 1 :])
        values, indices = self.cuda.empty(shape, input.dtype), self.cuda.empty(shape, INT64)
        if not values.size:
            return values, indices
        rows = input.size // n
        if found := geometry(rows, n, input.dtype.itemsize):
            width, entries, shared = found
            grid = (-(-rows // (entries // width)),)
            arguments = (input, values, indices, rows, n, k, inner, width, entries, descending)
            self.sort_short[input.dtype](grid, (min(1024, entries // 2),), arguments, shared_mem=shared)
        elif inner == 1 and selects(rows, n) and geometry(rows, k, input.dtype.itemsize):
            chosen, places = self.cuda.empty(shape, input.dtype), self.cuda.empty(shape, INT64)
            self.select_first[input.dtype]((rows,), (1024,), (input, chosen, places, n, k, descending))
            values, ranks = self.first(chosen, k, dim, descending)
            indices = self.at.read(places, along_elements(places, dim, ranks), ranks, 0)
        else:
            keys = self.cuda.empty((rows, n), np.dtype(f"u{input.dtype.itemsize}"))
            launch = self.make_keys[input.dtype]
            launch(blocks(input.size), (THREADS,), (input, keys, rows, n, inner, descending))
            positions = self.sort_keys(keys, 8 * keys.dtype.itemsize)[1]
            launch = self.in_order[input.dtype]
            launch(blocks(rows * k), (THREADS,), (input, positions, values, indices, rows, n, k, inner))
        return values, indices

    def sort_keys(self, keys, bits: int) -> tuple[Any, Any]:
        """Rows of unsigned integers of which only the lowest bits are set, in ascending order, and the positions
        where they were; `keys` are written over."""
        empty, (rows, n), size = self.cuda.empty, keys.shape, keys.dtype.itemsize
        tiles = -(-n // TILE)
        counts, totals = empty((rows, DIGITS, tiles), INT64), empty((rows, DIGITS), INT64)
        other_keys, positions, other_positions = empty(keys.shape, keys.dtype), 0, empty(keys.shape, UINT32)
        spare = empty(keys.shape, UINT32) if bits > 8 else 0
        for shift in range(0, max(bits, 1), 8):
            grid, threads = (rows * tiles,), (DIGITS,)
            self.count_digits[size](grid, threads, (keys, n, tiles, shift, counts))
            self.ranking.sums(counts, rows * DIGITS, tiles, totals)
            arguments = (keys, positions, n, tiles, shift, counts, totals, other_keys, other_positions)
            self.sort_digits[size](grid, threads, arguments)
            keys, other_keys = other_keys, keys
            positions, other_positions = other_positions, spare if isinstance(positions, int) else positions
        return keys, positions


@cache
def ordering(cuda: Cuda) -> Ordering:
    """The functions that all families share."""
    return Ordering(cuda)
