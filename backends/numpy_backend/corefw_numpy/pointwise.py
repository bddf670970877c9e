"""Elementwise arithmetic and mathematics: most kernels are the ufunc itself."""


def kernels(xp):
    """Ops that compute."""

    def relu(input):
        return xp.maximum(input, input.dtype.type(0))

    def relu_backward(grad, out):
        return xp.multiply(grad, xp.sign(out))

    return {
        "add": xp.add,
        "mul": xp.multiply,
        "relu": relu,
        "relu_backward": relu_backward,
    }


def movements(xp):
    """Ops that only move or compare elements."""
    return {}
