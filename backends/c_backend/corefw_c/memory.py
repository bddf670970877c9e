"""Copies of arrays in a memory order."""

import numpy as np

from corefw.dispatch.registry import Kernel
from corefw_c.arrays import SMALL, empty
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def clone(input):
        expanded = 0 in input.strides  # such an array has no memory order to keep
        if input.nbytes < SMALL:
            return input.copy("C" if expanded else "K")
        output = empty(input.shape, input.dtype) if expanded else np.empty_like(input)
        if status := lib.copy(id(input), id(output)):
            fail("clone", status)
        return output

    def clone_in_order(input, order):
        ordered = input.transpose(order)
        output = empty(ordered.shape, input.dtype)
        if status := lib.copy(id(ordered), id(output)):
            fail("clone_in_order", status)
        return output.transpose([order.index(d) for d in range(input.ndim)])

    return [Kernel("clone", clone), Kernel("clone_in_order", clone_in_order)]
