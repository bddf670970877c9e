"""Elementary functions: most kernels are the ufunc itself."""

import math

from corefw_numpy.error_function import erf, erfc


def kernels(xp):
    """Ops that compute."""

    def rsqrt(input):
        return 1 / xp.sqrt(input)

    def sigmoid(input):
        return 1 / (1 + xp.exp(-input))

    def sigmoid_backward(gradient, output):
        return gradient * xp.conjugate((1 - output) * output)

    def tanh_backward(gradient, output):
        return gradient * xp.conjugate(1 - output * output)

    def logit(input, eps):
        if eps is not None and eps >= 0:
            input = xp.clip(input, eps, 1 - eps)
        return xp.log(input / (1 - input))

    def logaddexp(input, other):
        if input.dtype.kind != "c":
            return xp.logaddexp(input, other)
        greater = input.real >= other.real
        high, low = xp.where(greater, input, other), xp.where(greater, other, input)
        return high + xp.log1p(xp.exp(low - high))

    def log1p(input):
        if input.dtype.kind != "c":
            return xp.log1p(input)
        x, y = input.real, input.imag
        near = xp.log1p(x * (2 + x) + y * y) / 2  # of the squared modulus of 1 + input
        result = xp.empty_like(input)
        result.real = xp.where(xp.abs(x) + xp.abs(y) < 0.5, near, xp.log(xp.hypot(1 + x, y)))
        result.imag = xp.arctan2(y, 1 + x)
        return result

    def expm1(input):
        if input.dtype.kind != "c":
            return xp.expm1(input)
        result = xp.asarray(xp.where(xp.isfinite(input), xp.expm1(input), xp.exp(input) - 1))
        result.real += 0.0  # of zeros of both signs it is 0
        return result

    def xlogy(input, other):
        return xp.where((input == 0) & ~xp.isnan(other), 0, input * xp.log(other))

    def sinc(input):
        angle = math.pi * xp.where(input == 0, 1, input)
        return xp.where(input == 0, 1, xp.sin(angle) / angle)

    def in_double(function):
        """Computed in float64, where the approximation is stated."""
        return lambda input: function(xp, input.astype(xp.float64)).astype(input.dtype)

    return {
        "acos": xp.arccos,
        "acosh": xp.arccosh,
        "asin": xp.arcsin,
        "asinh": xp.arcsinh,
        "atan": xp.arctan,
        "atan2": xp.arctan2,
        "atanh": xp.arctanh,
        "cos": xp.cos,
        "cosh": xp.cosh,
        "deg2rad": xp.deg2rad,
        "erf": in_double(erf),
        "erfc": in_double(erfc),
        "exp": xp.exp,
        "exp2": xp.exp2,
        "expm1": expm1,
        "hypot": xp.hypot,
        "log": xp.log,
        "log10": xp.log10,
        "log1p": log1p,
        "log2": xp.log2,
        "logaddexp": logaddexp,
        "logaddexp2": xp.logaddexp2,
        "logit": logit,
        "rad2deg": xp.rad2deg,
        "rsqrt": rsqrt,
        "sigmoid": sigmoid,
        "sigmoid_backward": sigmoid_backward,
        "sin": xp.sin,
        "sinc": sinc,
        "sinh": xp.sinh,
        "sqrt": xp.sqrt,
        "tan": xp.tan,
        "tanh": xp.tanh,
        "tanh_backward": tanh_backward,
        "xlogy": xlogy,
    }


def data_movement(xp):
    """Ops that only move or compare elements."""
    return {}
