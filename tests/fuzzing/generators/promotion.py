"""Operands of different dtypes: tensors, 0-d tensors, numbers; as functions, operators, in place, with out=."""

from __future__ import annotations

from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.programs import Name, Ref, words

_FUNCTIONS = words("""
    add sub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot eq ne lt le gt ge
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    copysign xlogy logaddexp logaddexp2 heaviside nextafter gcd lcm ldexp float_power rsub clamp_min clamp_max isclose
""")
_OPERATORS = words("add sub mul truediv floordiv mod pow and_ or_ xor eq ne lt le gt ge lshift rshift")
_TERNARY = ("addcmul", "addcdiv", "lerp", "where", "clamp")
_UNARY = words("""
    sqrt exp log sin tanh neg abs sign floor ceil round reciprocal square sigmoid relu isnan isfinite signbit
    logical_not bitwise_not trunc frac expm1 log1p exp2 log2 log10 rsqrt cos tan asin acos atan sinh cosh asinh acosh
    atanh erf erfc erfinv deg2rad angle sgn isinf nan_to_num positive conj isposinf isneginf logit sinc
""")


def _operand(b: Builder, shape: tuple[int, ...]):
    """A tensor that broadcasts with the shape, a 0-d one, or a number."""
    rng, at = b.rng, b.rng.random()
    dtype = drawing.dtype(rng, floating=0.4)
    if at < 0.2:
        return rng.choice((2, -1, 0, 3, 0.5, -2.5, True, 1e30, 70000, 2.0, 1j, float("inf"), float("nan"), 2**40))
    if at < 0.4:
        return b.leaf(dtype, (), grad=rng.random() < 0.3)
    style = rng.choice(("exact", "random", "special", "positive" if dtype in drawing.FLOATING else "exact"))
    return b.leaf(dtype, drawing.broadcastable(rng, shape), style, grad=rng.random() < 0.4)


def promotion(b: Builder) -> None:
    rng = b.rng
    shape = drawing.large_shape(rng, 2) if rng.random() < 0.05 else drawing.shape(rng, most=3)
    first = b.leaf(drawing.dtype(rng, floating=0.5), shape, grad=rng.random() < 0.4)
    at = rng.random()
    if at < 0.25:
        name, operands = rng.choice(_UNARY), [first]
    elif at < 0.85:
        name, operands = rng.choice(_FUNCTIONS), [first, _operand(b, shape)]
    else:
        name, operands = rng.choice(_TERNARY), [first, _operand(b, shape), _operand(b, shape)]
    keywords = {}
    if name in ("add", "sub", "rsub") and rng.random() < 0.3:
        keywords["alpha"] = rng.choice((2, -1, 0.5, True, 3))
    if name == "div" and rng.random() < 0.6:
        keywords["rounding_mode"] = rng.choice(("trunc", "floor", None))
    if name in ("addcmul", "addcdiv") and rng.random() < 0.5:
        keywords["value"] = rng.choice((2, -1, 0.5))
    if name == "where":
        operands[0] = b.leaf("bool", drawing.broadcastable(rng, shape), "exact")
    _in_some_form(b, name, operands, keywords)
    if b.tensors() and rng.random() < 0.3:
        b.call(".to", rng.choice(b.tensors()), Name(drawing.dtype(rng, floating=0.3)))
    b.gradients()


def _in_some_form(b: Builder, name: str, operands: list, keywords: dict) -> None:
    rng, at = b.rng, b.rng.random()
    if at < 0.2 and name in _FUNCTIONS:
        operator, pair = rng.choice(_OPERATORS), operands[:2]
        if rng.random() < 0.3:
            pair.reverse()
        if rng.random() < 0.3 and operator not in ("eq", "ne", "lt", "le", "gt", "ge"):
            operator = "i" + operator.rstrip("_")
        b.call(f"operator.{operator}", *pair)
    elif at < 0.4 and name != "where":
        target = operands[0]
        if rng.random() < 0.5:
            target = b.call(".clone", target) or target
        b.call(f".{name}_", target, *operands[1:], **keywords, records=rng.random() < 0.8)
    elif at < 0.6:
        out(b, name, operands, keywords, pointwise=True)
    elif at < 0.7 and name != "where":
        b.call(f".{name}", *operands, **keywords)
    else:
        b.call(name, *operands, **keywords)


def out(b: Builder, name: str, operands: list, keywords: dict, pointwise: bool = False) -> Ref | None:
    """The form with out=: a fitting tensor, an empty one, one of another dtype; of pointwise functions an operand, or a
    view of one."""
    rng = b.rng
    result = b.call(name, *operands, **keywords, records=False)
    if result is None or not hasattr(b.value(result), "dtype"):
        return None
    shape, dtype, at = b.shape(result), b.dtype(result), rng.random() * (1 if pointwise else 0.8)
    if at < 0.5:
        given = b.leaf(dtype, shape)
    elif at < 0.6:
        given = b.leaf(dtype, (0,), layout="contiguous")
    elif at < 0.8:
        given = b.leaf(drawing.dtype(rng, floating=0.6), shape)
    else:
        given = rng.choice([operand for operand in operands if isinstance(operand, Ref)] or [result])
        if at > 0.95 and b.shape(given):
            given = b.call("operator.getitem", given, slice(None, None, rng.choice((None, 2)))) or given
    return b.call(name, *operands, **keywords, out=given, records=rng.random() < 0.3)
