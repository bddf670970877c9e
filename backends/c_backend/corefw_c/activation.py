"""Activations along a dimension."""

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def along(name):
        compute = getattr(lib, name)

        def kernel(input, dim):
            output = empty(input.shape, input.dtype)
            if status := compute(id(input), dim, id(output)):
                if input.flags.c_contiguous:
                    fail(name, status)
                return kernel(dense(input), dim)
            return output

        return Kernel(name, kernel, FLOATS)

    def along_backward(name):
        compute = getattr(lib, name)

        def kernel(grad, output, dim):
            if grad.shape != output.shape:
                grad, output = np.broadcast_arrays(grad, output)
            grad, output = dense(grad), dense(output)
            result = empty(output.shape, output.dtype)
            if status := compute(id(grad), id(output), dim, id(result)):
                fail(name, status)
            return result

        return Kernel(name, kernel, FLOATS)

    return [
        along("softmax"),
        along("log_softmax"),
        along_backward("softmax_backward"),
        along_backward("log_softmax_backward"),
    ]
