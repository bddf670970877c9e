"""Norms of the elements over dimensions."""

from math import inf

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.shapes import count_reduced
from corefw_c.arrays import FLOATS, empty
from corefw_c.library import fail
from corefw_c.reduction import mask_of, without


def kernels(lib):
    """The family's kernels."""
    reductions = {
        1: lib.REDUCE_MODULI,
        2: lib.REDUCE_SQUARES,
        inf: lib.REDUCE_LARGEST_MODULUS,
        -inf: lib.REDUCE_SMALLEST,  # of the moduli
        0: lib.REDUCE_SUM,  # of ones
    }

    def vector_norm(input, ord, dim, keepdim):
        output = empty(without(input.shape, dim, keepdim), input.dtype)
        if (ord < 0 or ord == inf) and not input.size and not count_reduced(input.shape, dim):
            raise ValueError("nothing to reduce")
        if ord == 0:
            input = np.asarray(input != 0, input.dtype)
        elif ord == -inf:
            input = np.asarray(abs(input))
        reduction = reductions.get(ord, lib.REDUCE_POWERS)
        if status := lib.reduce(reduction, id(input), mask_of(dim), ord, id(output)):
            fail("vector_norm", status)
        return output

    return [Kernel("vector_norm", vector_norm, FLOATS)]
