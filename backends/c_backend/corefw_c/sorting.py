"""Order, distinct values and membership."""

from corefw import dtypes
from corefw.dispatch.registry import Kernel
from corefw_c.arrays import REALS, dense, empty
from corefw_c.library import fail
from corefw_c.reduction import INT64

#: element types that have keys to sort by
SORTED = frozenset(d for d in dtypes.ALL if d.category <= dtypes.INTEGER) | REALS


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

    return [Kernel("sort", sort, SORTED), Kernel("topk", topk, SORTED)]
