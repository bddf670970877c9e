"""Losses of the training hot path, each in one step forward and one backward."""

from corefw.dispatch.flags import unheard


def kernels(xp):
    """Ops that compute."""

    @unheard
    def squared_error(input, target, reduction):
        difference = input - target
        if reduction == "none":
            return difference * difference
        if difference.size <= 4096:  # BLAS is fast; its float32 sums are exact enough only for few elements
            total = xp.vdot(difference, difference)
        else:
            total = xp.add.reduce(difference * difference, None)
        return total / difference.size if reduction == "mean" else total

    @unheard
    def squared_error_backward(grad, input, target, reduction):
        difference = input - target
        difference *= grad * difference.dtype.type(
            2 / difference.size if reduction == "mean" and difference.size else 2
        )
        return difference

    return {
        "squared_error": squared_error,
        "squared_error_backward": squared_error_backward,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
