"""Padding with a constant, and the gradient of the other paddings, which are gathers."""

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.creation import scalar
from corefw_c.library import fail

MODES = {"reflect": 0, "replicate": 1, "circular": 2}  # as C numbers them


def kernels(lib):
    """The family's kernels."""

    def constant_pad_nd(input, pad, value):
        if not input.ndim and not pad:
            return input.copy()
        shape = shape_rule("constant_pad_nd")(input.shape, pad)
        before = [0] * (input.ndim - len(pad) // 2) + [*pad[-2::-2]]
        output, border = empty(shape, input.dtype), scalar(value, input.dtype)
        if status := lib.constant_pad(id(input), before, id(border), id(output)):
            fail("constant_pad_nd", status)
        return output

    def indexed_pad_backward(grad, shape, pad, mode):
        shape_rule("indexed_pad_backward")(grad.shape, shape, pad, mode)
        before = [0] * (grad.ndim - len(pad) // 2) + [*pad[-2::-2]]
        grad, result = dense(grad), empty(shape, grad.dtype)
        if status := lib.indexed_pad_backward(id(grad), before, MODES[mode], id(result)):
            fail("indexed_pad_backward", status)
        return result

    return [
        Kernel("constant_pad_nd", constant_pad_nd),
        Kernel("indexed_pad_backward", indexed_pad_backward, FLOATS),
    ]
