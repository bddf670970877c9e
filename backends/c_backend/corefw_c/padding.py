"""Padding: arrays extended at their borders, by a constant or by elements of their own, or cut there."""

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.creation import scalar
from corefw_c.library import fail

MODES = {"reflect": 1, "replicate": 2, "circular": 3}  # as in padding.c


def before(ndim, pad):
    """How much is added in front of each dimension; negative: taken away."""
    return [0] * (ndim - len(pad) // 2) + [*pad[-2::-2]]


def kernels(lib):
    """The family's kernels."""

    def constant_pad_nd(input, pad, value):
        if not input.ndim and not pad:
            return input.copy()
        shape = shape_rule("constant_pad_nd")(input.shape, pad)
        output, border = empty(shape, input.dtype), scalar(value, input.dtype)
        if status := lib.constant_pad(id(input), before(input.ndim, pad), id(border), id(output)):
            fail("constant_pad_nd", status)
        return output

    def indexed_pad(input, pad, mode):
        shape = shape_rule("indexed_pad")(input.shape, pad, mode)
        if not input.ndim:
            return input.copy()
        output = empty(shape, input.dtype)
        if status := lib.indexed_pad(id(input), before(input.ndim, pad), MODES[mode], id(output)):
            fail("indexed_pad", status)
        return output

    def indexed_pad_backward(grad, shape, pad, mode):
        shape_rule("indexed_pad_backward")(grad.shape, shape, pad, mode)
        if not grad.ndim:
            return grad.copy()
        grad, output = dense(grad), empty(shape, grad.dtype)
        if status := lib.indexed_pad_gradient(id(grad), before(grad.ndim, pad), MODES[mode], id(output)):
            fail("indexed_pad_backward", status)
        return output

    return [
        Kernel("constant_pad_nd", constant_pad_nd),
        Kernel("indexed_pad", indexed_pad),
        Kernel("indexed_pad_backward", indexed_pad_backward, FLOATS),
    ]
