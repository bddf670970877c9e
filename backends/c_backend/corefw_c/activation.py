"""Activations along a dimension."""

from corefw.dispatch.registry import Kernel
from corefw_c.arrays import REALS, dense, empty
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def softmax(input, dim):
        input = dense(input)
        output = empty(input.shape, input.dtype)
        if status := lib.softmax(id(input), dim, id(output)):
            fail("softmax", status)
        return output

    return [Kernel("softmax", softmax, REALS)]
