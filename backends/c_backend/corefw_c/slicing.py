"""The copies behind the gradients of views."""

from corefw.dispatch.backend import Kernel
from corefw_c.creation import zeros
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def basic_index_backward(grad, shape, key):
        output = zeros(lib, shape, grad.dtype)
        part = output[key] if ... in key else output[(*key, ...)]
        if lib.copy(id(grad), id(part)):
            part[...] = grad  # of a view that was turned since: NumPy broadcasts
        return output

    def diagonal_backward(grad, shape, offset, dim1, dim2):
        output = zeros(lib, shape, grad.dtype)
        diagonal = output.diagonal(offset, dim1, dim2)
        diagonal.flags.writeable = True  # NumPy gives none that is, not even of a new array
        if status := lib.copy(id(grad), id(diagonal)):
            fail("diagonal_backward", status)
        return output

    return [Kernel("basic_index_backward", basic_index_backward), Kernel("diagonal_backward", diagonal_backward)]
