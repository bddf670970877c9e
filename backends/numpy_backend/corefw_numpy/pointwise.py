"""Elementwise arithmetic: most kernels are the ufunc itself."""

from corefw import dtypes
from corefw.dispatch.flags import unheard
from corefw.dispatch.numbers import fitting_number


def kernels(xp):
    """Ops that compute."""

    def dividing(ufunc):
        """A division that refuses integer zeros, of which NumPy makes zeros."""

        def divide(input, other, out=None):
            if input.size and other.dtype.kind in "iu" and not other.all():
                raise RuntimeError("ZeroDivisionError")
            return ufunc(input, other, out=out)

        divide.takes_out = True  # type: ignore[attr-defined]
        return divide

    floor_divide = dividing(xp.floor_divide)
    fmod = dividing(xp.fmod)

    def trunc_divide(input, other):
        if input.dtype.kind in "iu":
            return floor_divide(input - fmod(input, other), other)
        return xp.trunc(input / other)

    def factor(value, array):
        """A number as an element beside those of `array`."""
        return value if array.dtype.kind in "fc" else fitting_number(value, dtypes.of_numpy(array.dtype))

    @unheard
    def addcmul(input, tensor1, tensor2, value, out=None):
        product = tensor1 * tensor2
        return xp.add(input, product if value == 1 else factor(value, input) * product, out=out)

    @unheard
    def addcdiv(input, tensor1, tensor2, value, out=None):
        quotient = tensor1 / tensor2
        return xp.add(input, quotient if value == 1 else value * quotient, out=out)

    addcmul.takes_out = addcdiv.takes_out = True  # type: ignore[attr-defined]

    @unheard
    def lerp(input, end, weight):
        distance = end - input
        near_end = input + weight * distance, end - (1 - weight) * distance
        return xp.where(xp.absolute(weight) < 0.5, *near_end)

    quick_powers = {
        2.0: xp.square,
        0.5: xp.sqrt,
        -0.5: lambda input: 1 / xp.sqrt(input),
        -1.0: xp.reciprocal,
        3.0: lambda input: input * input * input,
    }

    def pow(input, exponent):
        if exponent.dtype.kind == "i":
            if (exponent < 0).any():
                return negative_powers(input, exponent)
        elif exponent.ndim == 0 and (n := exponent.item()) in quick_powers:
            return quick_powers[n](input)
        return xp.power(input, exponent)

    def negative_powers(input, exponent):
        """Integer powers of which some are reciprocals: these are 0 but for the bases 1 and -1."""
        unit = xp.where(xp.absolute(input) == 1, xp.where(exponent % 2 == 0, 1, input), 0)
        return xp.where(exponent < 0, unit, xp.power(input, xp.maximum(exponent, 0))).astype(input.dtype)

    @unheard
    def neg(input):  # not in place, which NumPy 2.4 gets wrong for strides of 16 bytes
        return xp.negative(input)

    @unheard
    def sign(input):
        if input.dtype.kind == "b":
            return input.copy()
        return xp.subtract(input > 0, input < 0, dtype=input.dtype)  # 0 for NaN

    @unheard
    def sgn(input):
        return xp.sign(input) if input.dtype.kind == "c" else sign(input)

    def round(input, decimals):
        if input.dtype.kind in "iu":
            if decimals:
                raise RuntimeError(f"round: integers are rounded to decimals=0 only, got {decimals}")
            return input.copy()
        if decimals == 0:
            return xp.rint(input)
        scale = 10.0 ** (decimals if decimals > 0 else -decimals)
        return xp.rint(input * scale) / scale if decimals > 0 else xp.rint(input / scale) * scale

    @unheard
    def frac(input):
        return input - xp.trunc(input)

    return {
        "abs": xp.absolute,
        "add": xp.add,
        "addcdiv": addcdiv,
        "addcmul": addcmul,
        "ceil": xp.ceil,
        "copysign": xp.copysign,
        "div": xp.true_divide,
        "floor": xp.floor,
        "floor_divide": floor_divide,
        "fmod": fmod,
        "frac": frac,
        "gcd": xp.gcd,
        "lcm": xp.lcm,
        "lerp": lerp,
        "mul": xp.multiply,
        "neg": neg,
        "pow": pow,
        "reciprocal": xp.reciprocal,
        "remainder": dividing(xp.remainder),
        "round": round,
        "sgn": sgn,
        "sign": sign,
        "square": xp.square,
        "sub": xp.subtract,
        "trunc": xp.trunc,
        "trunc_divide": trunc_divide,
    }


def data_movement(xp):
    """Ops that only move or compare elements."""
    return {}
