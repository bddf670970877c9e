"""Exclusive sums of rows, which tell how many elements come before."""

from __future__ import annotations

from functools import cache

from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import THREADS, blocks

SHORT = 64  # the longest row that one thread sums up
MOST_THREADS = 1024


class Ranking:
    """Functions that sum up rows of int64 numbers."""

    def __init__(self, cuda: Cuda):
        self.long = cuda.function("sorting/ranks.cu", "exclusive_sums")
        self.short = cuda.function("sorting/ranks.cu", "exclusive_sums_short")

    def sums(self, rows, count: int, length: int, totals) -> None:
        """Replace each number by the sum of those before it in its row; the sums of whole rows go to `totals`."""
        if length <= SHORT:
            self.short[()](blocks(count), (THREADS,), (rows, count, length, totals))
        else:
            self.long[()]((count,), (min(MOST_THREADS, -(-length // 32) * 32),), (rows, length, totals))


@cache
def ranking(cuda: Cuda) -> Ranking:
    """The functions that all families share."""
    return Ranking(cuda)
