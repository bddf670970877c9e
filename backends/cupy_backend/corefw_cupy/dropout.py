"""Dropout in training."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import FLOATS, THREADS, blocks, offered
from corefw_cupy.pointwise_function import Pointwise
from corefw_cupy.random import place


def _scale(p: float) -> float:
    """What kept elements are multiplied by."""
    return 0.0 if p == 1 else 1 / (1 - p)


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    empty = cuda.empty
    forward = cuda.function("random/dropout.cu", "masked_dropout", T=FLOATS)
    backward = Pointwise(
        cuda, "masked_dropout_backward", ("T", "bool"), 1, "double", "T", "x * (y ? s : 0)", {"T": FLOATS}
    )

    def masked_dropout(input, p, seed, offset):
        input = cuda.dense(input)
        dtype, n = input.dtype, input.size
        output, mask = empty(input.shape, dtype), empty(input.shape, np.bool_)
        if n:
            arguments = (input, output, mask, n, *place(cuda, seed, offset), 1.0 - p, _scale(p))
            forward[dtype](blocks(n * dtype.itemsize, 16 * THREADS), (THREADS,), arguments)
        return output, mask

    def masked_dropout_backward(output_grad, mask, p):
        if mask.shape != output_grad.shape:
            raise ValueError("the mask has another shape")
        return backward((output_grad.dtype,), output_grad.dtype, (output_grad, mask), (_scale(p),))

    taken = offered(FLOATS)
    return [
        Kernel("masked_dropout", masked_dropout, taken),
        Kernel("masked_dropout_backward", masked_dropout_backward, taken),
    ]
