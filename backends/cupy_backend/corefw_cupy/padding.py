"""Padding with a constant; the other paddings are gathers."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.moving import Move


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    move = Move(cuda, "constant_pad")

    def constant_pad_nd(input, pad, value):
        shape, offsets = list(input.shape), [0] * input.ndim
        if len(pad) % 2 or len(pad) > 2 * input.ndim:
            raise ValueError("not a pair for each dimension")
        for dim, before, after in zip(reversed(range(input.ndim)), pad[::2], pad[1::2]):
            if shape[dim] + min(before, after, before + after) < 0:
                raise ValueError("more is cut than there is")
            shape[dim] += before + after
            offsets[dim] = -before
        border = np.zeros(2, np.int64)
        border.view(input.dtype)[:] = value
        return move(input, tuple(shape), tuple(offsets), *border.tolist())

    return [Kernel("constant_pad_nd", constant_pad_nd)]
