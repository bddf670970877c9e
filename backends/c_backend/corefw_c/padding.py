"""Padding with a constant; the other paddings are gathers."""

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import empty
from corefw_c.creation import scalar
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def constant_pad_nd(input, pad, value):
        if not input.ndim and not pad:
            return input.copy()
        shape, before = list(input.shape), [0] * input.ndim
        for i in range(0, len(pad), 2):
            dim = -1 - i // 2
            before[dim] = pad[i]
            if shape[dim] + min(pad[i], pad[i + 1], pad[i] + pad[i + 1]) < 0:
                raise ValueError("more is cut than there is")
            shape[dim] += pad[i] + pad[i + 1]
        output, border = empty(shape, input.dtype), scalar(value, input.dtype)
        if status := lib.constant_pad(id(input), before, id(border), id(output)):
            fail("constant_pad_nd", status)
        return output

    return [Kernel("constant_pad_nd", constant_pad_nd)]
