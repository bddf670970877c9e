"""Comparisons, extremes, logic, bits and special values."""

import numpy as np

from corefw.testing.case import Case

PAIRS = (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (4,)), ((3,), ()), ((0, 3), (1, 3)))
BOTH = ("float32", "float64", "int64", "bool")


def bounds(rng, dtype):
    """Clamping by numbers, by tensors, by one bound, and by crossed bounds."""
    a = (rng.uniform(-3, 3, (2, 3)) if dtype.kind != "u" else rng.uniform(0, 3, (2, 3))).astype(dtype)
    low, high = np.asarray([0, 1, 1]).astype(dtype), np.asarray(2).astype(dtype)
    numbers = ({"min": 1}, {"max": 1}, {"min": 0, "max": 2}, {"min": 2, "max": 1})
    tensors = (
        {"min": low},
        {"max": high},
        {"min": low, "max": high},
        {"min": high, "max": low},
        {"min": low, "max": 2},
    )
    return [([a.copy()], attributes) for attributes in (*numbers, *tensors)] + [
        ([a[:0]], {"min": 0}),
        ([a[0, 0]], {"max": 1}),
    ]


def clamp(a, min=None, max=None):
    bounded = a if min is None else np.where(np.isnan(a), a, np.where(a < min, min, a))
    return bounded if max is None else np.where(np.isnan(a), a, np.where(bounded > max, max, bounded))


def near(rng, dtype):
    """Pairs of which some elements are nearly equal, with the tolerances."""
    a = rng.uniform(1, 3, (4, 3)).astype(dtype)
    b = (a + np.asarray([0, 1e-3, 1]) * (dtype.kind in "fc")).astype(dtype)
    return [
        ([a, b], attributes) for attributes in ({}, {"rtol": 0.01}, {"rtol": 0.0, "atol": 0.0}, {"equal_nan": True})
    ]


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(a, b, rtol, atol, equal_nan)


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.allclose(a, b, rtol, atol, equal_nan)


def special_numbers(rng, dtype):
    """Elements among which are NaN, infinities and zeros of both signs where the dtype has them."""
    a = rng.uniform(-3, 3, (3, 4)) if dtype.kind != "u" else rng.uniform(0, 3, (3, 4))
    if dtype.kind in "fcV":
        a.flat[:5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    a = a.astype(dtype)
    return [([a], {}), ([np.asarray(a[0, 0])], {}), ([a[:0]], {})]


def replacements(rng, dtype):
    a = special_numbers(rng, dtype)[0][0][0]
    return [([a], {}), ([a], {"nan": 1.5}), ([a], {"nan": 0.5, "posinf": 2.0, "neginf": -2.0})]


def nan_to_num(a, nan=None, posinf=None, neginf=None):
    return np.nan_to_num(a, nan=0 if nan is None else nan, posinf=posinf, neginf=neginf)


def shifts(rng, dtype):
    bits = 8 * dtype.itemsize
    a = rng.integers(-100 if dtype.kind == "i" else 0, 100, (3, 4)).astype(dtype)
    return [([a, rng.integers(0, bits, (4,)).astype(dtype)], {}), ([a, np.asarray(2, dtype)], {})]


def heaviside(a, values):
    return np.where(a == 0, values, (a > 0).astype(a.dtype))


def only(rng, dtype):
    return [([np.asarray(value).astype(dtype).reshape(shape)], {}) for value in (0, 1) for shape in ((), (1, 1))]


CASES = (
    Case("eq", np.equal, shapes=PAIRS),
    Case("ne", np.not_equal, shapes=PAIRS),
    Case("lt", np.less, shapes=PAIRS),
    Case("le", np.less_equal, shapes=PAIRS),
    Case("gt", np.greater, shapes=PAIRS),
    Case("ge", np.greater_equal, shapes=PAIRS),
    Case("equal", np.array_equal, shapes=(((2, 3), (2, 3)), ((2, 3), (3,)), ((0,), (0,))), dtypes=BOTH),
    Case("isclose", isclose, make=near),
    Case("allclose", allclose, make=near, dtypes=("float32", "float64", "int64", "complex64")),
    Case("maximum", np.maximum, shapes=PAIRS),
    Case("minimum", np.minimum, shapes=PAIRS),
    Case("fmax", np.fmax, shapes=PAIRS),
    Case("fmin", np.fmin, shapes=PAIRS),
    Case("clamp", clamp, make=bounds),
    Case("clamp_min", np.maximum, shapes=PAIRS),
    Case("clamp_max", np.minimum, shapes=PAIRS),
    Case(
        "nan_to_num",
        nan_to_num,
        make=replacements,
        wide=False,
        dtypes=("bool", "int64", "float16", "float32", "float64"),
    ),
    Case("heaviside", heaviside, shapes=PAIRS, gradient=False),
    Case("nextafter", np.nextafter, shapes=PAIRS, wide=False, dtypes=("float32", "float64"), gradient=False),
    Case("logical_and", np.logical_and, shapes=PAIRS),
    Case("logical_or", np.logical_or, shapes=PAIRS),
    Case("logical_xor", np.logical_xor, shapes=PAIRS),
    Case("logical_not", np.logical_not),
    Case("bitwise_and", np.bitwise_and, shapes=PAIRS, domain=(-100, 100)),
    Case("bitwise_or", np.bitwise_or, shapes=PAIRS, domain=(-100, 100)),
    Case("bitwise_xor", np.bitwise_xor, shapes=PAIRS, domain=(-100, 100)),
    Case("bitwise_not", np.invert, domain=(-100, 100)),
    Case("bitwise_left_shift", np.left_shift, make=shifts),
    Case("bitwise_right_shift", np.right_shift, make=shifts),
    Case("isnan", np.isnan, make=special_numbers),
    Case("isinf", np.isinf, make=special_numbers),
    Case("isfinite", np.isfinite, make=special_numbers),
    Case("isposinf", lambda a: a == np.inf, make=special_numbers),
    Case("isneginf", lambda a: a == -np.inf, make=special_numbers),
    Case("signbit", np.signbit, make=special_numbers),
    Case("is_floating_point", lambda a: a.dtype.kind == "f", dtypes=BOTH),
    Case("is_signed", lambda a: a.dtype.kind in "fi", dtypes=BOTH),
    Case("is_nonzero", lambda a: bool(a.item()), make=only, dtypes=BOTH),
)
