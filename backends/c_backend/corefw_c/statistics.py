"""Medians and other ranks, variance and deviation."""

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail
from corefw_c.reduction import INT64, mask_of, without
from corefw_c.sorting import SORTED


def kernels(lib):
    """The family's kernels."""

    def moment(op, reduction):
        def kernel(input, dim, keepdim, correction):
            output = empty(without(input.shape, dim, keepdim), input.dtype)
            if status := lib.reduce(reduction, id(input), mask_of(dim), correction, id(output)):
                fail(op, status)
            return output

        return kernel

    def ranked(op, rank):
        """The kernel that picks the element of a rank along a dimension."""

        def kernel(input, dim, keepdim, k=1):
            shape = without(input.shape, (dim,), keepdim)
            input, values, indices = dense(input), empty(shape, input.dtype), empty(shape, INT64)
            line = input if input.ndim else input.reshape(1)
            if status := lib.sort_along(id(line), dim, False, rank, k - 1, id(values), id(indices)):
                fail(op, status)
            return values, indices

        return kernel

    kth = ranked("kthvalue", lib.RANK_KTH)

    def kthvalue(input, k, dim, keepdim):
        return kth(input, dim, keepdim, k)

    return [
        Kernel("variance", moment("variance", lib.REDUCE_VARIANCE), FLOATS),
        Kernel("deviation", moment("deviation", lib.REDUCE_DEVIATION), FLOATS),
        Kernel("median_dim", ranked("median_dim", lib.RANK_MEDIAN), SORTED),
        Kernel("nanmedian_dim", ranked("nanmedian_dim", lib.RANK_NANMEDIAN), SORTED),
        Kernel("mode", ranked("mode", lib.RANK_MODE), SORTED),
        Kernel("kthvalue", kthvalue, SORTED),
    ]
