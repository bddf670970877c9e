"""Padding with a constant; the other paddings are gathers."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_cupy.cuda import Cuda
from corefw_cupy.moving import Move


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    move = Move(cuda, "constant_pad")

    def constant_pad_nd(input, pad, value):
        shape = shape_rule("constant_pad_nd")(input.shape, pad)
        offsets = (0,) * (input.ndim - len(pad) // 2) + tuple([-before for before in pad[-2::-2]])
        border = np.zeros(2, np.int64)
        border.view(input.dtype)[:] = value
        return move(input, shape, offsets, *border.tolist())

    return [Kernel("constant_pad_nd", constant_pad_nd)]
