"""Elementwise arithmetic."""

import math

import numpy as np

from corefw.testing.case import Case

PAIRS = (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (4,)), ((3,), ()), ((0, 3), (1, 3)))
TRIPLES = (((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((4,), (1,), (4,)), ((0, 3), (1, 3), (3,)))


def away_from_zero(rng, shape, dtype, low=0.5, high=3.0):
    """Elements whose absolute values lie in an interval that excludes zero."""
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    size = rng.uniform(low, high, shape)
    if dtype.kind in "iu":
        return np.asarray(np.ceil(size) * (rng.choice([-1, 1], shape) if dtype.kind == "i" else 1)).astype(dtype)
    sign = rng.choice([-1, 1], shape) if dtype.kind != "c" else np.exp(1j * rng.uniform(0, 2 * math.pi, shape))
    return np.asarray(size * sign).astype(dtype)


def divisions(rng, dtype):
    """Pairs of which the second has no zeros, and quotients far from integers."""
    found = []
    for shape, other in PAIRS:
        divisor = away_from_zero(rng, other, dtype)
        whole = rng.integers(-3, 3, np.broadcast_shapes(shape, other))
        if dtype.kind == "u":
            whole = np.abs(whole)
        part = rng.uniform(0.2, 0.8, shape) * (dtype.kind in "fV")
        first = np.asarray((whole + part) * divisor if shape == np.broadcast_shapes(shape, other) else part + 1)
        found.append(([first.astype(dtype), divisor], {}))
    return found


def quotients(rng, dtype):
    """As `divisions`, floating ones with every rounding mode."""
    modes = (None, "trunc", "floor") if dtype.kind in "fV" else (None,)
    return [(pair, {"rounding_mode": mode}) for pair, _ in divisions(rng, dtype) for mode in modes]


def div(a, b, rounding_mode=None):
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    return a / b if rounding_mode is None else np.trunc(a / b)


def bases(rng, dtype):
    """Positive bases, so that every power is defined, and exponents as tensors and as numbers."""

    def base(shape):
        return np.asarray(np.abs(away_from_zero(rng, shape, dtype))).astype(dtype)

    def exponent(shape):
        return (rng.integers(0, 4, shape) if dtype.kind in "iu" else away_from_zero(rng, shape, dtype)).astype(dtype)

    numbers = (0, 1, 2, 3) if dtype.kind in "iu" else (0, 1, 2, 3, 0.5, -0.5, -1, -2.5)
    found = [([base(a), exponent(b)], {}) for a, b in PAIRS]
    found += [([base((2, 3)), n], {}) for n in numbers]
    return found + [([2, exponent((2, 3))], {})]


def double_bases(rng, dtype):
    return [call for call in bases(rng, dtype) if isinstance(call[0][0], np.ndarray)]


def quotient_triples(rng, dtype):
    return [
        ([away_from_zero(rng, shape, dtype) for shape in shapes], {"value": value})
        for shapes in TRIPLES
        for value in (1, 0.5)
    ]


def factors(rng, dtype):
    """Triples with a factor that the dtype takes."""
    return [
        ([away_from_zero(rng, shape, dtype) for shape in shapes], {"value": value})
        for shapes in TRIPLES
        for value in ((1, 3) if dtype.kind in "iu" else (1, 0.5))
    ]


def nonzero(rng, dtype):
    return [([away_from_zero(rng, shape, dtype)], {}) for shape in ((2, 3), (), (0, 3))]


def between_integers(rng, dtype):
    """Elements far from where rounding jumps, for numerical gradients."""
    found = []
    for shape in ((2, 3), (), (0, 3)):
        whole = rng.integers(-3, 4, shape)
        if dtype.kind == "u":
            whole = np.abs(whole)
        found.append(([np.asarray(whole + rng.uniform(0.1, 0.4, shape) * (dtype.kind in "fV")).astype(dtype)], {}))
    return found


def decimals(rng, dtype):
    numbers = (0,) if dtype.kind in "iu" else (0, 1, -1)
    return [(arguments, {"decimals": n}) for arguments, _ in between_integers(rng, dtype) for n in numbers]


def add(a, b, alpha=1):
    return a | b if a.dtype.kind == "b" else a + alpha * b


def power(a, n):
    """Of -inf a root is NaN and a power is not: one number asks for a root, and NumPy's loops by their strides."""
    if np.ndim(n) == 0:
        return np.sqrt(a) if n == 0.5 else 1 / np.sqrt(a) if n == -0.5 else np.power(a, n)
    return np.power(a, np.array(np.broadcast_to(n, np.broadcast_shapes(np.shape(a), n.shape))))


def ldexp(a, n):
    """Of a power that neither overflows nor vanishes."""
    return a * np.exp2(n if n.dtype.kind == "c" else np.clip(n, -9999, 9999).astype(np.longdouble))


def sgn(a):
    return np.divide(a, np.abs(a), out=np.zeros_like(a), where=a != 0) if a.dtype.kind == "c" else sign(a)


def sign(a):
    return np.where(a > 0, 1, np.where(a < 0, -1, 0)).astype(a.dtype) if a.dtype.kind != "b" else a


def trunc_divide(a, b):
    if np.result_type(a, b).kind in "iu":
        return np.floor_divide(a, b) + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))
    return np.trunc(a / b)


CASES = (
    Case(
        "add",
        lambda a, b, alpha=1: a + alpha * b if a.dtype.kind != "b" else a | b,
        shapes=PAIRS,
        attributes=({}, {"alpha": 2}),
    ),
    Case("sub", lambda a, b, alpha=1: a - alpha * b, shapes=PAIRS, attributes=({}, {"alpha": 2})),
    Case("rsub", lambda a, b, alpha=1: b - alpha * a, shapes=PAIRS, attributes=({}, {"alpha": 2})),
    Case(
        "add_scaled",
        lambda a, b, alpha: a + alpha * b if a.dtype.kind != "b" else a | b,
        shapes=PAIRS,
        attributes=({"alpha": 2},),
    ),
    Case("sub_scaled", lambda a, b, alpha: a - alpha * b, shapes=PAIRS, attributes=({"alpha": 2},)),
    Case("mul", np.multiply, shapes=PAIRS),
    Case("addcmul", lambda a, b, c, value=1: a + value * b * c, make=factors),
    Case("div", div, make=quotients),
    Case("true_divide", lambda a, b: a / b, make=divisions),
    Case("floor_divide", np.floor_divide, make=divisions, torch=None),
    Case("trunc_divide", trunc_divide, make=divisions),
    Case("remainder", np.remainder, make=divisions, rtol=1e-6, atol=1e-6),
    Case("fmod", np.fmod, make=divisions, rtol=1e-6, atol=1e-6),
    Case("reciprocal", lambda a: 1 / a, make=nonzero),
    Case("addcdiv", lambda a, b, c, value=1: a + value * b / c, make=quotient_triples),
    Case("lerp", lambda a, b, w: a + w * (b - a), shapes=TRIPLES, special=False),
    Case("square", lambda a: a * a if a.dtype.kind != "b" else a.astype(np.int64)),
    Case("pow", power, make=bases),
    Case("float_power", np.float_power, make=double_bases, rtol=1e-6),
    Case("ldexp", ldexp, shapes=PAIRS),
    Case("neg", np.negative),
    Case("positive", lambda a: a),
    Case("abs", np.abs, make=nonzero),
    Case("sign", sign, make=nonzero),
    Case("sgn", sgn, make=nonzero),
    Case("copysign", np.copysign, make=divisions),
    Case("ceil", np.ceil, make=between_integers),
    Case("floor", np.floor, make=between_integers),
    Case("trunc", np.trunc, make=between_integers),
    Case("round", lambda a, decimals=0: np.round(a, decimals), make=decimals),
    Case("frac", lambda a: a - np.trunc(a), make=between_integers, rtol=1e-6, atol=1e-6),
    Case("gcd", np.gcd, shapes=PAIRS, domain=(-30, 30)),
    Case("lcm", np.lcm, shapes=PAIRS, domain=(-9, 9)),
)
