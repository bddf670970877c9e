"""Order, distinct values and membership.

How many distinct values there are (`unique_values`) is known only from the data, so the host waits for the number.
"""

from __future__ import annotations

from math import prod

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, NUMBERS, THREADS, blocks, offered
from corefw_cupy.ordering import SORTED, ordering
from corefw_cupy.positions import INT64, positions
from corefw_cupy.selection import selection

BOOL = np.dtype(bool)


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    order, masks, at, empty, dense = ordering(cuda), selection(cuda), positions(cuda), cuda.empty, cuda.dense
    mark_runs = cuda.function("sorting/runs.cu", "mark_runs", T=SORTED)
    search_rows = cuda.function("sorting/search.cu", "search_rows", T=NUMBERS)
    find_members = cuda.function("sorting/search.cu", "find_members", T={**SORTED, **COMPLEX})

    def sort(input, dim, descending):
        return order.first(input, input.shape[dim] if input.ndim else 1, dim, descending)

    def topk(input, k, dim, largest, sorted):
        return order.first(input, k, dim, largest)

    # -- distinct values
    def rows_of(array, index):
        return at.read_slices(array, 0, index, False, 0)

    def parts(array):
        """Complex numbers as twice as many real ones: so are they ordered, by real parts, then by imaginary ones."""
        return array.view(np.dtype(f"f{array.dtype.itemsize // 2}"))

    def visits(lines):
        """The positions of lines in lexicographic order: sorted by their last element first, down to their first."""
        found = None
        for column in range(lines.shape[1] - 1, -1, -1):
            keys = lines[:, column] if found is None else rows_of(lines[:, column], found)
            places = order.first(keys, keys.size, 0, False)[1]
            found = places if found is None else rows_of(found, places)
        return found

    def unique_values(input, dim, consecutive):
        if dim is not None:
            return unique_slices(input, dim, consecutive)
        values, inverse, counts = unique_slices(dense(input).reshape(-1), 0, consecutive)
        return values, inverse.reshape(input.shape), counts

    def unique_slices(input, dim, consecutive):
        dims = [dim, *(d for d in range(input.ndim) if d != dim)]
        slices = dense(input.transpose(dims))
        n, width = len(slices), prod(slices.shape[1:])
        lines = slices.reshape(n, width)
        if input.dtype in COMPLEX:
            lines = parts(lines)
        visited = 0 if consecutive else visits(lines)
        begins = empty((n,), BOOL)
        mark_runs[lines.dtype](blocks(n), (THREADS,), (lines, visited, n, lines.shape[1], begins))
        firsts, inverse, counts = masks.runs(begins, visited)
        values = rows_of(lines, firsts).view(input.dtype).reshape(-1, *slices.shape[1:])
        return values.transpose([dims.index(d) for d in range(input.ndim)]), inverse, counts

    # -- search and membership
    def search(sequence, input, right):
        length = sequence.shape[-1]
        if sequence.dtype != input.dtype or (sequence.ndim > 1 and sequence.shape[:-1] != input.shape[:-1]):
            raise ValueError("leading shapes differ")
        places = empty(input.shape, INT64)
        if input.size:
            shared = input.size if sequence.ndim == 1 else input.shape[-1]
            arguments = (dense(sequence), length, dense(input), input.size, shared, bool(right), places)
            search_rows[input.dtype](blocks(input.size), (THREADS,), arguments)
        return places

    def isin(elements, test_elements, assume_unique, invert):
        if elements.dtype != test_elements.dtype:
            raise ValueError("the dtypes differ")
        tests = dense(test_elements).reshape(-1)
        if tests.dtype in COMPLEX:
            row = rows_of(tests, visits(parts(tests.reshape(-1, 1))))
        else:
            row = order.first(tests, tests.size, 0, False)[0]
        found = empty(elements.shape, BOOL)
        if found.size:
            arguments = (row, row.size, dense(elements), found.size, bool(invert), found)
            find_members[elements.dtype](blocks(found.size), (THREADS,), arguments)
        return found

    return [
        Kernel("isin", isin, offered({**SORTED, **COMPLEX})),
        Kernel("search", search, offered(NUMBERS)),
        Kernel("sort", sort, offered(SORTED)),
        Kernel("topk", topk, offered(SORTED)),
        Kernel("unique_values", unique_values, offered({**SORTED, **COMPLEX})),
    ]
