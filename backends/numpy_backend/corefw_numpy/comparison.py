"""Comparisons, extremes, logic, bits and tests for special values: most kernels are the ufunc itself."""

import ml_dtypes

from corefw_numpy.booleans import of_bools


def kernels(xp):
    """Ops that compute."""

    def clamp(input, min, max):
        if min is None and max is None:
            raise ValueError("no bound is given")
        bounded = input if min is None else xp.maximum(input, min)
        return bounded if max is None else xp.minimum(bounded, max)

    def heaviside(input, values):
        return xp.where(input == 0, values, input > 0).astype(input.dtype)

    return {
        "bitwise_and": xp.bitwise_and,
        "bitwise_left_shift": xp.left_shift,
        "bitwise_not": xp.invert,
        "bitwise_or": xp.bitwise_or,
        "bitwise_right_shift": xp.right_shift,
        "bitwise_xor": xp.bitwise_xor,
        "clamp": clamp,
        "clamp_max": xp.minimum,
        "clamp_min": xp.maximum,
        "fmax": xp.fmax,
        "fmin": xp.fmin,
        "heaviside": heaviside,
        "maximum": xp.maximum,
        "minimum": xp.minimum,
    }


def data_movement(xp):
    """Ops that only move or compare elements."""

    def nan_to_num(input, nan, posinf, neginf):
        if input.dtype.kind in "biu":
            return input.copy()
        if input.dtype.kind == "c":
            result = xp.empty_like(input)
            result.real = nan_to_num(input.real, nan, posinf, neginf)
            result.imag = nan_to_num(input.imag, nan, posinf, neginf)
            return result
        info = ml_dtypes.finfo(input.dtype)
        finite = xp.where(xp.isnan(input), input.dtype.type(0 if nan is None else nan), input)
        high = info.max if posinf is None else posinf
        low = info.min if neginf is None else neginf
        finite = xp.where(finite == xp.inf, input.dtype.type(high), finite)
        return xp.where(finite == -xp.inf, input.dtype.type(low), finite)

    return {
        "eq": xp.equal,
        "ge": xp.greater_equal,
        "gt": xp.greater,
        "isfinite": xp.isfinite,
        "isinf": xp.isinf,
        "isnan": xp.isnan,
        "isneginf": lambda input: input == -xp.inf,
        "isposinf": lambda input: input == xp.inf,
        "le": xp.less_equal,
        "logical_and": xp.logical_and,
        "logical_not": xp.logical_not,
        "logical_or": xp.logical_or,
        "logical_xor": xp.logical_xor,
        "lt": xp.less,
        "nan_to_num": nan_to_num,
        "ne": xp.not_equal,
        "nextafter": xp.nextafter,
        "signbit": xp.signbit,
    }


def bool_kernels(xp):
    """Ops for bool alone."""
    functions = {
        "bitwise_xor": xp.bitwise_xor,
        "eq": xp.equal,
        "ge": xp.greater_equal,
        "gt": xp.greater,
        "le": xp.less_equal,
        "logical_xor": xp.logical_xor,
        "lt": xp.less,
        "ne": xp.not_equal,
    }
    return {op: of_bools(xp, function) for op, function in functions.items()}
