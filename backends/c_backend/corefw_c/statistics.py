"""Medians and other ranks, variance and deviation."""

from corefw.dispatch.registry import Kernel
from corefw_c.arrays import REALS, empty
from corefw_c.library import fail
from corefw_c.reduction import mask_of, without


def kernels(lib):
    """The family's kernels."""

    def moment(op, reduction):
        def kernel(input, dim, keepdim, correction):
            output = empty(without(input.shape, dim, keepdim), input.dtype)
            if status := lib.reduce(reduction, id(input), mask_of(dim), correction, id(output)):
                fail(op, status)
            return output

        return kernel

    return [
        Kernel("variance", moment("variance", lib.REDUCE_VARIANCE), REALS),
        Kernel("deviation", moment("deviation", lib.REDUCE_DEVIATION), REALS),
    ]
