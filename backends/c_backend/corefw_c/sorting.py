"""Order, distinct values and membership."""

from math import prod

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail
from corefw_c.reduction import BOOL, INT64

#: element types that have keys to sort by
SORTED = frozenset(d for d in dtypes.ALL if d.category <= dtypes.INTEGER) | FLOATS
_SEARCHED = FLOATS | {dtypes.int32, dtypes.int64}


def kernels(lib):
    """The family's kernels."""
    sort_along, ALL = lib.sort_along, lib.RANK_ALL

    def first(op, input, k, dim, descending):
        """The first `k` elements in order along `dim`, and their positions."""
        if not input.ndim:
            values, indices = first(op, input.reshape(1), k, 0, descending)
            return values.reshape(()), indices.reshape(())
        shape = input.shape
        if not 0 <= k <= shape[dim]:
            raise ValueError(k)
        shape = (*shape[:dim], k, *shape[dim + 1 :])
        input, values, indices = dense(input), empty(shape, input.dtype), empty(shape, INT64)
        if status := sort_along(id(input), dim, descending, ALL, k, id(values), id(indices)):
            fail(op, status)
        return values, indices

    def sort(input, dim, descending):
        return first("sort", input, input.shape[dim] if input.ndim else 1, dim, descending)

    def topk(input, k, dim, largest, sorted):
        return first("topk", input, k, dim, largest)

    def unique_values(input, dim, consecutive):
        if dim is not None:
            return unique_slices(input, dim, consecutive)
        input = dense(input)
        line = input.reshape(-1)
        order = None if consecutive else first("unique_values", line, line.size, 0, False)[1]
        values, inverse = empty(line.shape, line.dtype), empty(line.shape, INT64)
        counts, count = empty(line.shape, INT64), empty((), INT64)
        address = 0 if order is None else id(order)
        if status := lib.equal_runs(id(line), address, id(values), id(inverse), id(counts), id(count)):
            fail("unique_values", status)
        found = int(count)
        return values[:found].copy(), inverse.reshape(input.shape), counts[:found].copy()

    def unique_slices(input, dim, consecutive):
        """Distinct slices along `dim`: sorted by their last element first, down to their first one."""
        slices = np.moveaxis(input, dim, 0)
        lines = slices.reshape(len(slices), prod(slices.shape[1:]))
        order = np.arange(len(lines))
        for column in () if consecutive else range(lines.shape[1] - 1, -1, -1):
            order = order[first("unique_values", lines[order, column], len(order), 0, False)[1]]
        begins = np.ones(len(lines), bool)
        begins[1:] = (lines[order[1:]] != lines[order[:-1]]).any(1)
        starts = np.flatnonzero(begins)
        inverse = np.empty(len(lines), INT64)
        inverse[order] = begins.cumsum() - 1
        counts = np.diff(starts, append=len(lines))
        return np.moveaxis(slices[order[starts]], 0, dim), inverse, counts

    def search(sequence, input, right):
        sequence, input = dense(sequence), dense(input)
        positions = empty(input.shape, INT64)
        if status := lib.search_sorted(id(sequence), id(input), right, id(positions)):
            fail("search", status)
        return positions

    def isin(elements, test_elements, assume_unique, invert):
        elements, tests = dense(elements), dense(test_elements).reshape(-1)
        ordered = first("isin", tests, tests.size, 0, False)[0]
        found = empty(elements.shape, BOOL)
        if status := lib.is_member(id(elements), id(ordered), invert, id(found)):
            fail("isin", status)
        return found

    return [
        Kernel("sort", sort, SORTED),
        Kernel("topk", topk, SORTED),
        Kernel("unique_values", unique_values, _SEARCHED),
        Kernel("search", search, _SEARCHED),
        Kernel("isin", isin, _SEARCHED),
    ]
