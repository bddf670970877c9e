"""Elementwise ops as ONNX."""

from __future__ import annotations

from math import inf, log, pi, sqrt

from corefw import dtypes
from corefw.onnx.graph import Graph
from corefw.onnx.table import TABLE, written_as

#: ops that are one node of operands in the result's dtype
_ONE_NODE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "div": "Div", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "hardswish": "HardSwish", "log": "Log", "maximum": "Max", "minimum": "Min", "mish": "Mish",
    "mul": "Mul", "neg": "Neg", "pow": "Pow", "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid",
    "sign": "Sign", "sgn": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "sub": "Sub", "tan": "Tan",
    "tanh": "Tanh", "clamp_min": "Max", "clamp_max": "Min",
}  # fmt: skip
_COMPARISONS = {"eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less"}
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}


def _one_node(kind: str):
    return lambda g, *operands: g.node(kind, *g.as_result(*operands))


def _comparison(kind: str):
    def compare(g: Graph, input, other):
        common = dtypes.promote_types(input.dtype, other.dtype)
        if common is dtypes.bool_ and kind != "Equal":
            common = dtypes.int32
        return g.node(kind, g.cast(input, common), g.cast(other, common))

    return compare


def _logical(kind: str):
    return lambda g, *operands: g.node(kind, *(g.cast(value, dtypes.bool_) for value in operands))


def _bitwise(kind: str):
    return lambda g, *operands: g.node(kind if g.dtype is dtypes.bool_ else f"Bitwise{kind}", *g.as_result(*operands))


TABLE.update({op: _one_node(kind) for op, kind in _ONE_NODE.items()})
TABLE.update({op: _comparison(kind) for op, kind in _COMPARISONS.items()})
TABLE.update({op: _logical(kind) for op, kind in _LOGICAL.items()})
TABLE.update({op: _bitwise(kind) for op, kind in _BITWISE.items()})
TABLE["logical_not"] = _logical("Not")
TABLE["bitwise_not"] = _bitwise("Not")


@written_as("ne")
def ne(g: Graph, input, other):
    return g.node("Not", _comparison("Equal")(g, input, other))


# -- functions of one operand -----------------------------------------------------------------------------------------
def _formula(write):
    """An entry for a floating op of one operand, whose attributes `write` is given after it."""
    return lambda g, input, *attributes: write(g, *g.as_result(input), *attributes)


def _scaled(g: Graph, x, factor: float):
    return x if factor == 1 else g.node("Mul", x, g.number(factor))


def _log1p(g: Graph, x):
    return g.node("Log", g.node("Add", x, g.number(1)))


TABLE.update(
    {
        "rsqrt": _formula(lambda g, x: g.node("Reciprocal", g.node("Sqrt", x))),
        "square": _formula(lambda g, x: g.node("Mul", x, x)),
        "exp2": _formula(lambda g, x: g.node("Pow", g.number(2), x)),
        "expm1": _formula(lambda g, x: g.node("Sub", g.node("Exp", x), g.number(1))),
        "log1p": _formula(_log1p),
        "log2": _formula(lambda g, x: _scaled(g, g.node("Log", x), 1 / log(2))),
        "log10": _formula(lambda g, x: _scaled(g, g.node("Log", x), 1 / log(10))),
        "deg2rad": _formula(lambda g, x: _scaled(g, x, pi / 180)),
        "rad2deg": _formula(lambda g, x: _scaled(g, x, 180 / pi)),
        "erfc": _formula(lambda g, x: g.node("Sub", g.number(1), g.node("Erf", x))),
        "trunc": _formula(lambda g, x: _trunc(g, x)),
        "frac": _formula(lambda g, x: g.node("Sub", x, _trunc(g, x))),
        "silu": _formula(lambda g, x: g.node("Mul", x, g.node("Sigmoid", x))),
        "hardsigmoid": _formula(lambda g, x: g.node("HardSigmoid", x, alpha=1 / 6, beta=0.5)),
        "hardtanh": _formula(lambda g, x, low, high: g.node("Clip", x, g.number(low), g.number(high))),
        "leaky_relu": _formula(lambda g, x, slope: g.node("LeakyRelu", x, alpha=float(slope))),
        "hardshrink": _formula(lambda g, x, lambd: g.node("Shrink", x, lambd=float(lambd), bias=0.0)),
        "softshrink": _formula(lambda g, x, lambd: g.node("Shrink", x, lambd=float(lambd), bias=float(lambd))),
    }
)


def _trunc(g: Graph, x):
    return g.node("Mul", g.node("Sign", x), g.node("Floor", g.node("Abs", x)))


@written_as("round")
def round_(g: Graph, input, decimals):
    if g.dtype.category < dtypes.FLOATING:
        if decimals < 0:
            g.refuse(f"integers rounded to decimals={decimals} have no ONNX form")
        return g.node("Identity", input)
    return _scaled(g, g.node("Round", _scaled(g, input, 10.0**decimals)), 10.0**-decimals)


@written_as("logsigmoid")
def logsigmoid(g: Graph, input):
    (x,) = g.as_result(input)
    return g.node("Sub", g.node("Min", x, g.number(0)), _log1p(g, g.node("Exp", g.node("Neg", g.node("Abs", x)))))


@written_as("softplus")
def softplus(g: Graph, input, beta, threshold):
    (x,) = g.as_result(input)
    scaled = _scaled(g, x, beta)
    return g.node(
        "Where", g.node("Greater", scaled, g.number(threshold)), x, _scaled(g, g.node("Softplus", scaled), 1 / beta)
    )


@written_as("gelu")
def gelu(g: Graph, input, approximate):
    (x,) = g.as_result(input)
    if g.opset >= 20:
        return g.node("Gelu", x, approximate=approximate)
    if approximate == "none":
        inner = g.node("Erf", _scaled(g, x, 1 / sqrt(2)))
    else:
        cube = _scaled(g, g.node("Mul", g.node("Mul", x, x), x), 0.044715)
        inner = g.node("Tanh", _scaled(g, g.node("Add", x, cube), sqrt(2 / pi)))
    return _scaled(g, g.node("Mul", x, g.node("Add", inner, g.number(1))), 0.5)


@written_as("elu")
def elu(g: Graph, input, alpha, scale, input_scale):
    (x,) = g.as_result(input)
    if input_scale == 1:
        return _scaled(g, g.node("Elu", x, alpha=float(alpha)), scale)
    below = g.node("Sub", g.node("Exp", _scaled(g, x, input_scale)), g.number(1))
    positive = g.node("Greater", x, g.number(0))
    return g.node("Where", positive, _scaled(g, x, scale), _scaled(g, below, alpha * scale))


@written_as("threshold")
def threshold(g: Graph, input, threshold, value):
    (x,) = g.as_result(input)
    return g.node("Where", g.node("LessOrEqual", x, g.number(threshold)), g.number(value), x)


@written_as("prelu_elements")
def prelu_elements(g: Graph, input, weight):
    x, w = g.as_result(input, weight)
    return g.node("Where", g.node("Greater", x, g.number(0)), x, g.node("Mul", w, x))


@written_as("isnan")
def isnan(g: Graph, input):
    return g.node("IsNaN", input)


@written_as("isinf")
def isinf(g: Graph, input):
    return g.node("IsInf", input)


@written_as("isfinite")
def isfinite(g: Graph, input):
    return g.node("Less", g.node("Abs", input), g.number(inf, input.dtype))


@written_as("nan_to_num")
def nan_to_num(g: Graph, input, nan, posinf, neginf):
    limits = dtypes.finfo(g.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    x = g.node("Where", g.node("IsNaN", input), g.number(nan or 0.0), input)
    x = g.node("Where", g.node("Equal", x, g.number(inf)), g.number(high), x)
    return g.node("Where", g.node("Equal", x, g.number(-inf)), g.number(low), x)


# -- functions of several operands ------------------------------------------------------------------------------------
@written_as("remainder")
def remainder(g: Graph, input, other):
    x, y = g.as_result(input, other)
    if g.dtype.category < dtypes.FLOATING:
        return g.node("Mod", x, y)
    return g.node("Sub", x, g.node("Mul", g.node("Floor", g.node("Div", x, y)), y))


@written_as("fmod")
def fmod(g: Graph, input, other):
    return g.node("Mod", *g.as_result(input, other), fmod=1)


@written_as("floor_divide")
def floor_divide(g: Graph, input, other):
    x, y = g.as_result(input, other)
    if g.dtype.category < dtypes.FLOATING:
        return g.node("Div", g.node("Sub", x, g.node("Mod", x, y)), y)
    return g.node("Floor", g.node("Div", x, y))


@written_as("trunc_divide")
def trunc_divide(g: Graph, input, other):
    quotient = g.node("Div", *g.as_result(input, other))
    return quotient if g.dtype.category < dtypes.FLOATING else _trunc(g, quotient)


@written_as("add_scaled", "sub_scaled")
def add_scaled(g: Graph, input, other, alpha):
    x, y = g.as_result(input, other)
    return g.node("Add" if g.line.op.name == "add_scaled" else "Sub", x, _scaled(g, y, alpha))


@written_as("addcmul", "addcdiv")
def addcmul(g: Graph, input, tensor1, tensor2, value):
    x, a, b = g.as_result(input, tensor1, tensor2)
    return g.node("Add", x, _scaled(g, g.node("Mul" if g.line.op.name == "addcmul" else "Div", a, b), value))


@written_as("lerp")
def lerp(g: Graph, input, end, weight):
    x, y, w = g.as_result(input, end, weight)
    return g.node("Add", x, g.node("Mul", w, g.node("Sub", y, x)))


@written_as("atan2")
def atan2(g: Graph, input, other):
    y, x = g.as_result(input, other)
    zero = g.number(0)
    angle = g.node("Atan", g.node("Div", y, x))
    turn = g.node("Where", g.node("Less", y, zero), g.number(-pi), g.number(pi))
    angle = g.node("Where", g.node("Less", x, zero), g.node("Add", angle, turn), angle)
    upright = g.node("Mul", g.node("Sign", y), g.number(pi / 2))
    return g.node("Where", g.node("Equal", x, zero), upright, angle)


@written_as("hypot")
def hypot(g: Graph, input, other):
    return g.node("Sqrt", g.node("Add", *(g.node("Mul", x, x) for x in g.as_result(input, other))))


@written_as("logaddexp")
def logaddexp(g: Graph, input, other):
    x, y = g.as_result(input, other)
    distance = g.node("Neg", g.node("Abs", g.node("Sub", x, y)))
    return g.node("Add", g.node("Max", x, y), _log1p(g, g.node("Exp", distance)))


@written_as("clamp")
def clamp(g: Graph, input, min=None, max=None):
    (x,) = g.as_result(input)
    if min is not None:
        x = g.node("Max", x, *g.as_result(min))
    return x if max is None else g.node("Min", x, *g.as_result(max))


@written_as("choose")
def choose(g: Graph, condition, input, other):
    return g.node("Where", g.cast(condition, dtypes.bool_), *g.as_result(input, other))


@written_as("masked_fill")
def masked_fill(g: Graph, input, mask, value):
    return g.node("Where", g.cast(mask, dtypes.bool_), *g.as_result(value, input))


@written_as("cast")
def cast(g: Graph, input, dtype, copy):
    return g.node("Cast", input, to=g.element_type(g.dtype))


@written_as("clone", "clone_in_order")
def clone(g: Graph, input, *order):
    return g.node("Identity", input)
