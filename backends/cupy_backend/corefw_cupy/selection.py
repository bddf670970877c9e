"""The true elements of masks: their number, their positions, and the elements of other arrays at these."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from corefw.errors import ShapeError
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BITS, THREADS, argument, blocks
from corefw_cupy.ranking import ranking
from corefw_cupy.walks import MAX_DIMS

INT64 = np.dtype(np.int64)
MARKS = 8  # as in masks.cuh


@lru_cache(maxsize=1 << 10)
def _sizes(shape: tuple[int, ...]) -> Any:
    """The struct Sizes in masks.cu."""
    struct = np.zeros(1, [("dims", "i8"), ("sizes", "i8", MAX_DIMS)])
    struct["dims"], struct["sizes"][0, : len(shape)] = len(shape), shape
    return argument(struct)


class Selection:
    """Functions of masks that lie in row-major order."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.ranking = cuda, ranking(cuda)
        self.count_true = cuda.function("indexing/masks.cu", "count_true")
        self.find_true = cuda.function("indexing/masks.cu", "find_true")
        self.masked_read = cuda.function("indexing/masked_moves.cu", "masked_read", T=BITS)
        self.masked_write = cuda.function("indexing/masked_moves.cu", "masked_write", T=BITS)
        self.number_runs = cuda.function("sorting/run_numbers.cu", "number_runs")
        self.measure_runs = cuda.function("sorting/run_numbers.cu", "measure_runs")
        self.short_source = cuda.device_asserts.kind(
            "Number of elements of source < number of ones in mask ({0} < {1})", ShapeError
        )

    def _grid(self, mask) -> tuple[tuple[int], tuple[int]]:
        return blocks(-(-mask.size // MARKS)), (THREADS,)

    def ranks(self, mask):
        """How many elements are true before each block of threads, and in all (an array of one element)."""
        grid, threads = self._grid(mask)
        ranks, count = self.cuda.empty(grid, INT64), self.cuda.empty((1,), INT64)
        self.count_true[()](grid, threads, (mask, mask.size, ranks))
        self.ranking.sums(ranks, 1, grid[0], count)
        return ranks, count

    def positions(self, mask):
        """The coordinates of the true elements: (their number, ndim). Waits for the number."""
        ranks, count = self.ranks(mask)
        found = self.cuda.empty((self.cuda.number(count), mask.ndim), INT64)
        if found.size:
            self.find_true[()](*self._grid(mask), (mask, mask.size, ranks, found, _sizes(mask.shape)))
        return found

    def read(self, mask, array):
        """The elements of an array in row-major order where the mask is true. Waits for their number."""
        ranks, count = self.ranks(mask)
        found = self.cuda.empty((self.cuda.number(count),), array.dtype)
        if found.size:
            read = self.masked_read[array.dtype.itemsize]
            read(*self._grid(mask), (mask, mask.size, ranks, array, found))
        return found

    def write(self, mask, array, line) -> None:
        """Write the first elements of `line` to an array in row-major order where the mask is true."""
        ranks, count = self.ranks(mask)
        write = self.masked_write[array.dtype.itemsize]
        arguments = (
            mask,
            mask.size,
            ranks,
            array,
            line,
            count,
            line.size,
            self.cuda.device_asserts.address,
            self.short_source,
        )
        write(*self._grid(mask), arguments)

    def runs(self, begins, order):
        """Of the runs that begin where a mask is true: the first line of each, the number of each line's run, and the
        lengths. Lines are visited in an order of their positions, or as they lie (0). Waits for the number of runs."""
        empty, n, (grid, threads) = self.cuda.empty, begins.size, self._grid(begins)
        ranks, count = self.ranks(begins)
        runs = self.cuda.number(count)
        lines, starts, lengths, numbers = (empty((size,), INT64) for size in (runs, runs, runs, n))
        if n:
            self.number_runs[()](grid, threads, (begins, n, ranks, order, numbers, starts, lines))
            self.measure_runs[()](blocks(runs), threads, (starts, runs, n, lengths))
        return lines, numbers, lengths


@cache
def selection(cuda: Cuda) -> Selection:
    """The functions that all families share."""
    return Selection(cuda)
