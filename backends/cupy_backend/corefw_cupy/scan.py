"""Scans along one dimension: running sums, products and extremes."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.extremes import ORDERED
from corefw_cupy.launch import FLOATS, THREADS, offered
from corefw_cupy.reducing import BLOCKS, STATE, WARP, Along, Results, Types, power_of_two
from corefw_cupy.reduction import FIELDS, SUMS, WHOLE

LEAST = 64  # elements of a column that are worth a part of their own


@lru_cache(maxsize=1 << 14)
def geometry(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
    """The number of lines along `dim` and the distance between their elements, and grid and block of the launch.

    The grid's second number is that of blocks that share a line; `size` is that of an element in bytes.
    """
    n, inner = shape[dim], prod(shape[dim + 1 :])
    lines = prod(shape[:dim]) * inner
    if inner > 1:
        threads = max(WARP, min(THREADS, power_of_two(lines)))
        blocks = -(-lines // threads)
        return lines, inner, (blocks, max(1, min(2 * BLOCKS // blocks, n // LEAST))), (threads, 1)
    packs = -(-n // min(8, 16 // size))
    if packs <= 4 * WARP:
        threads = min(WARP, power_of_two(packs))
        return lines, 1, (-(-lines * threads // THREADS), 1), (threads, THREADS // threads)
    return lines, 1, (lines, max(1, min(BLOCKS // lines, packs // (4 * THREADS)))), (THREADS, 1)


class Scan(Along):
    """Running results: `finds` says whether the positions of elements found are wanted too."""

    kind = "scan"

    def __init__(self, cuda: Cuda, file: str, operation: str, types: Types, result: Results = None, finds=False):
        super().__init__(cuda, file, operation, types, result)
        self.finds = finds

    def __call__(self, input, dim):
        """The results along `dim`, and the positions of the elements found if they are wanted."""
        dtype = input.dtype
        results = self.empty(input.shape, dtype if self.result is None else self.result[dtype])
        positions = self.empty(input.shape, np.int64) if self.finds else 0
        if input.size:
            self._launch(self.dense(input), dim, results, positions)
        return (results, positions) if self.finds else results

    def _launch(self, input, dim, results, positions) -> None:
        shape = input.shape or (1,)
        lines, inner, grid, block = geometry(shape, dim, input.itemsize)
        launch = (self.rows if inner == 1 else self.columns)[input.dtype, self.operation]
        lengths = (lines, shape[dim]) if inner == 1 else (lines, shape[dim], inner)
        parts = 0
        if grid[1] > 1:
            parts = self.empty((lines * grid[1] * STATE,), np.uint8)
            launch(grid, block, (input, *lengths, parts, True, results, positions))
        launch(grid, block, (input, *lengths, parts, False, results, positions))


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def running(op, file, operation, types, result=None, finds=False):
        return Kernel(op, Scan(cuda, file, operation, types, result, finds), offered(types))

    every = {**WHOLE, **FIELDS}
    return [
        running("cumsum", "scan/scan.cu", "Total", every, SUMS),
        running("cumprod", "scan/scan.cu", "Product", every, SUMS),
        running("logcumsumexp", "scan/logcumsumexp.cu", "LogSumExp", FLOATS),
        running("cummax", "scan/running_extremes.cu", "LastLargest", ORDERED, finds=True),
        running("cummin", "scan/running_extremes.cu", "LastSmallest", ORDERED, finds=True),
    ]
