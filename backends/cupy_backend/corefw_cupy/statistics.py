"""Medians and other ranks, variance and deviation."""

from __future__ import annotations

import numpy as np

from corefw import shapes
from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.extremes import ORDERED
from corefw_cupy.launch import NUMBERS, THREADS, offered
from corefw_cupy.norms import REAL
from corefw_cupy.reducing import BLOCKS, Reduction, power_of_two
from corefw_cupy.reduction import FIELDS

SLOT = 16  # bytes, of a table in mode.cu
MOST = 1 << 28  # bytes of all tables, if there is more than one


def tables(rows: int, n: int) -> tuple[int, int]:
    """How many tables the modes of rows of `n` elements take, and how many slots each has."""
    capacity = power_of_two(2 * n)
    return max(1, min(rows, BLOCKS, MOST // (SLOT * capacity))), capacity


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def moment(op, operation):
        reduce = Reduction(cuda, "normalization/statistics.cu", operation, FIELDS, REAL)

        def kernel(input, dim, keepdim, correction):
            return reduce(input, dim, keepdim, float(correction))

        return Kernel(op, kernel, offered(FIELDS))

    def by_rows(fill):
        """The kernel that picks an element of each line along `dim`, by `fill(rows, values, places, *arguments)`."""

        def kernel(input, dim, keepdim, *arguments):
            if not input.ndim:
                values, places = kernel(input.reshape(1), 0, False, *arguments)
                return values, places
            rest = [d for d in range(input.ndim) if d != dim]
            shape = shapes.reduced(input.shape, (dim,), keepdim)
            values, places = cuda.empty(shape, input.dtype), cuda.empty(shape, np.int64)
            if not input.shape[dim]:
                raise ValueError("nothing to choose from")
            if values.size:
                rows = cuda.dense(input.transpose([*rest, dim])).reshape(values.size, input.shape[dim])
                fill(rows, values, places, *arguments)
            return values, places

        return kernel

    def ranked(rule):
        select = cuda.function("reduction/order_statistics.cu", "select_ranks", T=NUMBERS, RULE={rule: rule})

        def fill(rows, values, places, k=1):
            if not 1 <= k <= rows.shape[1]:
                raise IndexError(k)
            select[rows.dtype, rule]((rows.shape[0],), (THREADS,), (rows, rows.shape[1], k, values, places))

        return by_rows(fill)

    find_modes = cuda.function("reduction/mode.cu", "find_modes", T=ORDERED)

    def fill_modes(rows, values, places):
        count, capacity = tables(*rows.shape)
        space = cuda.empty((count * capacity * SLOT,), np.uint8)
        find_modes[rows.dtype]((count,), (THREADS,), (rows, *rows.shape, space, capacity, values, places))

    kth = ranked("Kth")

    def kthvalue(input, k, dim, keepdim):
        return kth(input, dim, keepdim, k)

    return [
        moment("variance", "Variance"),
        moment("deviation", "Deviation"),
        Kernel("median_dim", ranked("Median"), offered(NUMBERS)),
        Kernel("nanmedian_dim", ranked("Nanmedian"), offered(NUMBERS)),
        Kernel("kthvalue", kthvalue, offered(NUMBERS)),
        Kernel("mode", by_rows(fill_modes), offered(ORDERED)),
    ]
