"""Losses of the training hot path."""

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, LOSS_REDUCTIONS, dense, empty
from corefw_c.library import fail


def alike(input, target):
    """Both, broadcast with each other, dense."""
    if input.shape != target.shape:
        input, target = np.broadcast_arrays(input, target)
    return dense(input), dense(target)


def kernels(lib):
    """The family's kernels."""

    def squared_error(input, target, reduction):
        input, target = alike(input, target)
        loss = empty(input.shape if reduction == "none" else (), input.dtype)
        if status := lib.squared_error(id(input), id(target), LOSS_REDUCTIONS[reduction], id(loss)):
            fail("squared_error", status)
        return loss

    def squared_error_backward(grad, input, target, reduction):
        input, target = alike(input, target)
        if grad.ndim:
            grad = dense(np.broadcast_to(grad, input.shape))
        result = empty(input.shape, input.dtype)
        if status := lib.squared_error_backward(
            id(grad), id(input), id(target), LOSS_REDUCTIONS[reduction], id(result)
        ):
            fail("squared_error_backward", status)
        return result

    return [
        Kernel("squared_error", squared_error, FLOATS),
        Kernel("squared_error_backward", squared_error_backward, FLOATS),
    ]
