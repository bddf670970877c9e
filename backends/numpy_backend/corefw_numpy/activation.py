"""Activation functions whose arithmetic takes fewer passes or less memory than their bodies."""

from math import inf, pi, sqrt

from corefw.dispatch.expressions import is_approximated
from corefw.dispatch.flags import unheard
from corefw_numpy.error_function import erfc

#: up to so many elements `where` takes less time than a product of the elements' bits with 0 and 1, which has no branch
FEW = 2048


def kernels(xp):
    """Ops that compute."""

    zeros = {kind: xp.zeros((), kind) for kind in "bBhHiIlLqQfd"}  # a 0-d array costs a ufunc less than a number
    integers = {"f": xp.int32, "d": xp.int64}

    @unheard
    def relu(input):
        return xp.maximum(input, zeros[input.dtype.char])

    @unheard
    def relu_backward(grad, output):
        zero = zeros[grad.dtype.char]
        dropped = output <= zero
        bits = integers.get(grad.dtype.char) if grad.size > FEW else None
        if bits is None:
            return xp.where(dropped, zero, grad)
        return xp.multiply(grad.view(bits), xp.logical_not(dropped, dropped)).view(grad.dtype)

    def leaky_relu(input, negative_slope):
        return xp.where(input > 0, input, input * input.dtype.type(negative_slope))

    def leaky_relu_backward(grad, input, negative_slope):
        return xp.where(input > 0, grad, grad * grad.dtype.type(negative_slope))

    def elu(input, alpha, scale, input_scale):
        number = input.dtype.type
        negative = xp.expm1(input * number(input_scale))
        return xp.where(input > 0, input * number(scale), negative * number(alpha * scale))

    def silu(input):
        return input / (1 + xp.exp(-input))

    def silu_backward(grad, input):
        s = 1 / (1 + xp.exp(-input))
        slope = s * (1 + input * (1 - s))
        return grad * (slope.conj() if slope.dtype.kind == "c" else slope)

    def mish_backward(grad, input):
        e = xp.exp(xp.minimum(input, 20))  # beyond, the slope is 1
        n = e * (e + 2)
        return grad * (n / (n + 2) + 4 * xp.minimum(input, 20) * (e * (e + 1) / (n + 2)) / (n + 2))

    def ndtr(input):
        return (0.5 * erfc(xp, input.astype(xp.float64) * -sqrt(0.5))).astype(input.dtype)

    def gelu_backward(grad, input, approximate):
        if is_approximated(approximate):
            p = 1 / (1 + xp.exp(-2 * sqrt(2 / pi) * (input + 0.044715 * input**3)))
            return grad * (p + input * (p * (1 - p)) * (2 * sqrt(2 / pi) * (1 + 3 * 0.044715 * input * input)))
        density = xp.exp(-0.5 * input * input) / sqrt(2 * pi)
        return grad * (ndtr(input) + input * density)

    def softmax(input, dim):
        e = xp.exp(input - input.max(dim, keepdims=True, initial=-inf))
        e /= e.sum(dim, keepdims=True)
        return e

    def softmax_backward(grad, out, dim):
        weighted = grad * out
        return weighted - out * weighted.sum(dim, keepdims=True)

    def log_softmax(input, dim):
        shifted = input - input.max(dim, keepdims=True, initial=-inf)
        shifted -= xp.log(xp.exp(shifted).sum(dim, keepdims=True))
        return shifted

    def log_softmax_backward(grad, out, dim):
        return grad - xp.exp(out) * grad.sum(dim, keepdims=True)

    return {
        "elu": elu,
        "gelu_backward": gelu_backward,
        "leaky_relu": leaky_relu,
        "leaky_relu_backward": leaky_relu_backward,
        "log_softmax": log_softmax,
        "log_softmax_backward": log_softmax_backward,
        "mish_backward": mish_backward,
        "relu": relu,
        "relu_backward": relu_backward,
        "silu": silu,
        "silu_backward": silu_backward,
        "softmax": softmax,
        "softmax_backward": softmax_backward,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
