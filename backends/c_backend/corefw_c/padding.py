"""Padding with a constant; the other paddings are gathers."""

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import empty
from corefw_c.creation import scalar
from corefw_c.library import fail


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

    return [Kernel("constant_pad_nd", constant_pad_nd)]
