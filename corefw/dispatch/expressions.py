"""What elementwise ops compute, as formulas that are valid in C and in CUDA C++: backends make their kernels from them.

In a formula ``T`` is the element type, x, y and z are the tensors in order, s, t and u the numbers that follow them.
Before the last semicolon it may define variables (``e = exp(x); e / (1 + e)``). Functions are those of C's <math.h>
with the type of their argument, and besides `rsqrt`, `sigmoid`, `erfinv` and `normcdf` (the normal distribution
function); `T(1)` converts. The functions of the folder special_functions, which is written in what C and CUDA C++ have
in common, compute in double. Formulas hold for NaN, infinities and signed zeros as they stand.

A formula is given per class of dtypes: "floating" (half types are computed in float32), "signed" and "unsigned"
integers, "wrapping" (integers of both kinds, where T is the unsigned one), "bool" (where T is an unsigned byte, which
is true unless it is 0).

Most ops are the formula of their name, or of its case. How the others choose one, what numbers they give it and what
they refuse is their `Call`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np

from corefw import dtypes
from corefw.dispatch.numbers import LARGEST


@dataclass(frozen=True)
class Expression:
    """One elementwise function.

    Attributes: ``name`` of the op, or of one of its cases; ``inputs`` the variables, tensors before numbers;
    ``formulas`` per class of dtypes; ``cost`` in elementary steps, which tells how many elements are worth a thread;
    ``test`` whether the result is bool instead of T.
    """

    name: str
    inputs: str
    formulas: dict[str, str]
    cost: int
    test: bool = False

    @property
    def tensors(self) -> int:
        """The number of tensors among the inputs."""
        return sum(variable in "xyz" for variable in self.inputs.split())

    @property
    def numbers(self) -> int:
        """The number of numbers among the inputs."""
        return len(self.inputs.split()) - self.tensors


def _floating(inputs: str, cost: int, **formulas: str) -> list[Expression]:
    """Functions of floating numbers."""
    return [Expression(name, inputs, {"floating": formula}, cost) for name, formula in formulas.items()]


def _all(inputs: str, *classes: str, test: bool = False, **formulas: str) -> list[Expression]:
    """Cheap functions with one formula for several classes of dtypes."""
    return [Expression(name, inputs, dict.fromkeys(classes, formula), 1, test) for name, formula in formulas.items()]


_INTEGERS = ("signed", "unsigned")
_GELU_LOGIT = "T(1.5957691216057308) * (y + T(0.044715) * y * y * y)"

EXPRESSIONS = (
    # -- arithmetic -------------------------------------------------------------------------------------------------
    *_all("x y", "floating", add="x + y", sub="x - y", mul="x * y"),
    *_all("x y", "wrapping", add="T(x + y)", sub="T(x - y)", mul="T(1u * x * y)"),
    *_all("x", "floating", neg="-x", square="x * x"),
    *_all("x", "wrapping", neg="T(0 - x)", square="T(1u * x * x)"),
    *_floating("x", 1, abs="fabs(x)", sign="T(x > 0) - T(x < 0)", sgn="T(x > 0) - T(x < 0)"),
    *_all("x", "signed", abs="x < 0 ? T(0ull - x) : x", sign="T((x > 0) - (x < 0))", sgn="T((x > 0) - (x < 0))"),
    *_floating("x", 1, ceil="ceil(x)", floor="floor(x)", trunc="trunc(x)", rint="rint(x)", frac="x - trunc(x)"),
    *_all("x", "wrapping", ceil="x", floor="x", trunc="x"),
    *_floating("x s t", 4, round_to="t ? rint(x / s) * s : rint(x * s) / s"),
    *_floating("x", 2, reciprocal="1 / x", cube="x * x * x"),
    *_floating("x y", 2, div="x / y", trunc_divide="trunc(x / y)", copysign="copysign(x, y)"),
    *_floating(
        "x y",
        12,
        fmod="fmod(x, y)",
        remainder="m = fmod(x, y); m == 0 ? copysign(m, y) : (m < 0) == (y < 0) ? m : m + y",
        floor_divide="m = fmod(x, y); n = (x - m) / y - T((m != 0) & ((m < 0) != (y < 0))); f = floor(n); "
        "y == 0 ? x / y : n == 0 ? copysign(n, x / y) : f + T(n - f > T(0.5))",
    ),
    *_all("x y", "signed", trunc_divide="y == 0 ? 0 : y == -1 ? T(0ull - x) : T(x / y)"),
    *_all("x y", "unsigned", trunc_divide="y == 0 ? 0 : T(x / y)"),
    *_floating("x y z s", 2, addcmul="x + s * (y * z)", addcdiv="x + s * (y / z)"),
    *_floating("x y z", 2, lerp="fabs(z) < T(0.5) ? x + z * (y - x) : y - (1 - z) * (y - x)"),
    *_floating("x y s", 2, add_scaled="x + s * y", sub_scaled="x - s * y"),
    *_all("x y s", "wrapping", add_scaled="T(x + T(1u * s * y))", sub_scaled="T(x - T(1u * s * y))"),
    *_floating("x y s", 2, lerp_number="fabs(s) < T(0.5) ? x + s * (y - x) : y - (1 - s) * (y - x)"),
    *_floating("x y", 60, pow="pow(x, y)"),
    *_floating("x y", 4, hypot="hypot(x, y)"),
    *_floating("x", 1, angle="x != x ? x : x < 0 ? T(3.141592653589793) : 0", conj_physical="x"),
    *_floating("x", 1, deg2rad="x * T(0.017453292519943295)", rad2deg="x * T(57.295779513082323)"),
    # -- elementary functions ---------------------------------------------------------------------------------------
    *_floating("x", 3, sqrt="sqrt(x)", rsqrt="rsqrt(x)"),
    *_floating("x", 6, exp="exp(x)", exp2="exp2(x)", expm1="expm1(x)", log="log(x)", log1p="log1p(x)", tanh="tanh(x)"),
    *_floating("x", 6, sigmoid="sigmoid(x)", erf="erf(x)", sin="sin(x)", cos="cos(x)"),
    *_floating("x", 20, log2="log2(x)", log10="log10(x)", tan="tan(x)", sinh="sinh(x)", cosh="cosh(x)"),
    *_floating("x", 20, asin="asin(x)", acos="acos(x)", atan="atan(x)"),
    *_floating("x", 30, asinh="asinh(x)", acosh="acosh(x)", atanh="atanh(x)"),
    *_floating("x", 40, erfc="erfc(x)", erfinv="erfinv(x)", special_ndtr="T(0.5) * erfc(x * T(-0.7071067811865476))"),
    *_floating("x y", 30, atan2="atan2(x, y)"),
    *_floating("x", 8, sinc="a = T(3.141592653589793) * x; x == 0 ? 1 : sin(a) / a"),
    *_floating("x", 8, logit="log(x / (1 - x))"),
    *_floating("x", 8, special_entr="x < 0 ? -INFINITY : x == 0 ? 0 : -(x * log(x))"),
    *_floating("x s t", 8, logit_clamped="p = x < s ? s : x > t ? t : x; log(p / (1 - p))"),
    *_floating(
        "x y",
        12,
        xlogy="(x == 0) & (y == y) ? 0 : x * log(y)",
        special_xlog1py="(x == 0) & (y == y) ? 0 : x * log1p(y)",
        logaddexp="x == y ? x + T(0.6931471805599453) : (x > y ? x : y) + log1p(exp(-fabs(x - y)))",
        logaddexp2="x == y ? x + 1 : (x > y ? x : y) + T(1.4426950408889634) * log1p(exp2(-fabs(x - y)))",
    ),
    *_floating("x y", 1, sigmoid_backward="x * ((1 - y) * y)", tanh_backward="x * (1 - y * y)"),
    # -- special functions, in double ------------------------------------------------------------------------------
    *_floating("x", 20, frexp_mantissa="mantissa_of(x)", frexp_exponent="exponent_of(x)"),
    *_floating("x y", 40, ldexp="times_power_of_two(x, y)"),
    *_floating("x", 60, special_erfcx="scaled_erfc(x)", special_log_ndtr="log_ndtr(x)"),
    *_floating("x", 60, lgamma="log_gamma(x)", digamma="digamma(x)"),
    *_floating("x y", 400, special_zeta="hurwitz_zeta(x, y)", igamma="gamma_p(x, y)", igammac="gamma_q(x, y)"),
    *_floating("x", 60, i0="modified_bessel_i0(x)", special_i0e="modified_bessel_i0e(x)"),
    *_floating("x", 60, special_i1="modified_bessel_i1(x)", special_i1e="modified_bessel_i1e(x)"),
    *_floating("x", 80, special_modified_bessel_k0="modified_bessel_k0(x)"),
    *_floating("x", 80, special_modified_bessel_k1="modified_bessel_k1(x)"),
    *_floating("x", 80, special_scaled_modified_bessel_k0="modified_bessel_k0e(x)"),
    *_floating("x", 80, special_scaled_modified_bessel_k1="modified_bessel_k1e(x)"),
    *_floating("x", 80, special_bessel_j0="bessel_j0(x)", special_bessel_j1="bessel_j1(x)"),
    *_floating("x", 80, special_bessel_y0="bessel_y0(x)", special_bessel_y1="bessel_y1(x)"),
    *_floating("x", 80, special_airy_ai="airy_ai(x)"),
    *(
        expression
        for kind in "tuvw"
        for expression in _floating(
            "x y",
            20,
            **{
                f"special_chebyshev_polynomial_{kind}": f"chebyshev_{kind}(x, y)",
                f"special_shifted_chebyshev_polynomial_{kind}": f"chebyshev_{kind}(2.0 * x - 1, y)",
            },
        )
    ),
    *_floating("x y", 20, special_hermite_polynomial_h="hermite_h(x, y)"),
    *_floating("x y", 20, special_hermite_polynomial_he="hermite_he(x, y)"),
    *_floating("x y", 30, special_laguerre_polynomial_l="laguerre_l(x, y)"),
    *_floating("x y", 30, special_legendre_polynomial_p="legendre_p(x, y)"),
    # -- comparisons, extremes, logic, bits -------------------------------------------------------------------------
    *_all("x y", "floating", "wrapping", test=True, eq="x == y", ne="x != y"),
    *_all("x y", "bool", test=True, eq="(x != 0) == (y != 0)", ne="(x != 0) != (y != 0)"),
    *_all("x y", "floating", *_INTEGERS, test=True, lt="x < y", le="x <= y", gt="x > y", ge="x >= y"),
    *_all("x y", "bool", test=True, lt="(x == 0) & (y != 0)", le="(x == 0) | (y != 0)"),
    *_all("x y", "bool", test=True, gt="(x != 0) & (y == 0)", ge="(x != 0) | (y == 0)"),
    *_all("x y", "floating", "wrapping", "bool", test=True, logical_and="(x != 0) & (y != 0)"),
    *_all("x y", "floating", "wrapping", "bool", test=True, logical_or="(x != 0) | (y != 0)"),
    *_all("x y", "floating", "wrapping", "bool", test=True, logical_xor="(x != 0) ^ (y != 0)"),
    *_all("x", "floating", "wrapping", "bool", test=True, logical_not="x == 0"),
    *_all("x", "floating", test=True, isnan="x != x", isinf="fabs(x) == INFINITY", isfinite="fabs(x) < INFINITY"),
    *_all("x", "floating", test=True, isposinf="x == INFINITY", isneginf="x == -INFINITY"),
    *_all("x", "floating", test=True, signbit="copysign(T(1), x) < 0"),
    *_all("x y", "floating", maximum="(x > y) | (x != x) ? x : y", minimum="(x < y) | (x != x) ? x : y"),
    *_all("x y", "floating", fmax="(x > y) | (y != y) ? x : y", fmin="(x < y) | (y != y) ? x : y"),
    *_all("x y", *_INTEGERS, maximum="x > y ? x : y", minimum="x < y ? x : y"),
    *_all("x y", *_INTEGERS, fmax="x > y ? x : y", fmin="x < y ? x : y"),
    *_all("x y z", "floating", clamp="m = (x < y) | (y != y) ? y : x; (m > z) | (z != z) ? z : m"),
    *_all("x y z", *_INTEGERS, clamp="m = x > y ? x : y; m < z ? m : z"),
    *_floating("x s t", 1, clamp_numbers="m = (x < s) | (s != s) ? s : x; (m > t) | (t != t) ? t : m"),
    *_all("x s t", *_INTEGERS, clamp_numbers="m = x > s ? x : s; m < t ? m : t"),
    *_all("x y", "floating", *_INTEGERS, heaviside="x == 0 ? y : T(x > 0)"),
    *_floating("x s t u", 1, nan_to_num="x != x ? s : x == INFINITY ? t : x == -INFINITY ? u : x"),
    *_all("x y", "wrapping", bitwise_and="x & y", bitwise_or="x | y", bitwise_xor="x ^ y"),
    *_all("x y", "bool", bitwise_and="(x != 0) & (y != 0)", bitwise_or="(x != 0) | (y != 0)"),
    *_all("x y", "bool", bitwise_xor="(x != 0) ^ (y != 0)"),
    *_all("x", "wrapping", bitwise_not="T(~x)"),
    *_all("x", "bool", bitwise_not="x == 0"),
    # -- activation functions and their gradients -------------------------------------------------------------------
    *_all("x", "floating", *_INTEGERS, relu="x <= 0 ? 0 : x"),
    *_floating("x y", 1, relu_backward="y <= 0 ? 0 : x"),
    *_floating("x y", 1, prelu_elements="x > 0 ? x : y * x"),
    *_floating("x s", 1, leaky_relu="x > 0 ? x : x * s", hardshrink="fabs(x) <= s ? 0 : x"),
    *_floating("x s", 1, softshrink="fabs(x) <= s ? 0 : x - copysign(s, x)"),
    *_floating("x y s", 1, leaky_relu_backward="y > 0 ? x : x * s"),
    *_floating("x s t", 1, hardtanh="x < s ? s : x > t ? t : x", threshold="x <= s ? t : x"),
    *_floating(
        "x",
        3,
        hardsigmoid="a = x + 3; (a < 0 ? 0 : a > 6 ? 6 : a) / 6",
        hardswish="a = x + 3; x * (a < 0 ? 0 : a > 6 ? 6 : a) / 6",
    ),
    *_floating("x s t u", 8, elu="x > 0 ? x * s : t * expm1(x * u)"),
    *_floating("x y s t u", 8, elu_backward="y <= 0 ? x * t * exp(y * u) : x * s"),
    *_floating("x s t", 12, softplus="a = x * s; a > t ? x : log1p(exp(a)) / s"),
    *_floating("x", 12, logsigmoid="(x < 0 ? x : 0) - log1p(exp(-fabs(x)))"),
    *_floating("x", 8, silu="x / (1 + exp(-x))"),
    *_floating("x y", 8, silu_backward="p = sigmoid(y); x * (p * (1 + y * (1 - p)))"),
    *_floating("x", 8, mish="e = exp(x > 20 ? 20 : x); n = e * (e + 2); x * (n / (n + 2))"),
    *_floating(
        "x y",
        12,
        mish_backward="z = y > 20 ? 20 : y; e = exp(z); n = e * (e + 2); m = n + 2; "
        "x * (n / m + 4 * z * (e * (e + 1) / m) / m)",
    ),
    *_floating("x s t", 3, huber="a = fabs(x); a < s ? a * a * (T(0.5) * t) : (a - T(0.5) * s) * (s * t)"),
    *_floating("x y s t", 2, huber_backward="d = y < -s ? -s : y > s ? s : y; x * (d * t)"),
    *_floating("x", 8, gelu="x * normcdf(x)"),
    *_floating("x", 8, gelu_tanh=f"x * sigmoid({_GELU_LOGIT.replace('y', 'x')})"),
    *_floating(
        "x y",
        12,
        gelu_backward="d = T(0.3989422804014327) * exp(T(-0.5) * y * y); x * (normcdf(y) + y * d)",
        gelu_tanh_backward=f"p = sigmoid({_GELU_LOGIT}); d = T(1.5957691216057308) * (1 + T(0.134145) * y * y); "
        "x * (p + y * (p * (1 - p)) * d)",
    ),
)


def statements(formula: str, element: str) -> str:
    """A formula over an element type as the body of a C function."""
    *definitions, result = [part.strip() for part in re.sub(r"\bT\(", f"({element})(", formula).split(";")]
    return "; ".join([f"const {element} {definition}" for definition in definitions] + [f"return {result}"])


#: the files of special_functions in the order in which one needs another
_SPECIAL_FUNCTIONS = (
    *("sums", "floating_parts", "error_function", "gamma", "incomplete_gamma_coefficients", "incomplete_gamma"),
    *("modified_bessel", "bessel", "airy", "polynomials"),
)


def special_functions() -> str:
    """The text of the functions that formulas call, of which SPECIAL and TABLE are to be defined before it: how a
    function and a table of numbers are declared."""
    folder = Path(__file__).parent / "special_functions"
    return "\n".join((folder / f"{name}.h").read_text(encoding="utf-8") for name in _SPECIAL_FUNCTIONS)


#: by name the error in units in the last place of float32 and float64 that is allowed, that of the reference included
ULPS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("ceil", "floor", "fmod", "rint", "trunc"), (0, 0)),
    "sqrt": (0.5, 0.5),
    **dict.fromkeys(("erfc", "log", "log10", "log1p", "log2", "pow"), (1, 1)),
    **dict.fromkeys(("acos", "acosh", "asinh", "atan", "atan2", "atanh", "cosh", "hypot", "sinh"), (1, 2)),
    "asin": (1, 2.5),
    "tan": (1, 3),
    "erfinv": (1, 5),
    **dict.fromkeys(("exp", "exp2", "rsqrt"), (1.5, 1.5)),
    "erf": (1.5, 4),
    **dict.fromkeys(("cos", "expm1", "sin"), (2, 2)),
    "tanh": (2, 3),
}


# -- ops that are not the formula of their name -----------------------------------------------------------------------
#: by op the expression that it is, which is another op too
ALIASES = {"clamp_max": "minimum", "clamp_min": "maximum"}
#: by a number that is the exponent of all elements the expression that is its power
POWERS = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal", 3.0: "cube"}


@dataclass(frozen=True)
class Call:
    """How an op is computed by an expression that takes numbers.

    Attributes: ``expression`` its name; ``numbers`` makes them from the dtype of the first tensor and the arguments
    behind the tensors, or raises what is wrong with these; ``plain`` says for some values of a single such argument
    which expression takes the tensors alone.
    """

    expression: str
    numbers: Callable[..., tuple]
    plain: Mapping = field(default_factory=dict)


def hardtanh_bounds(least, greatest) -> tuple:
    """The bounds of hardtanh; ValueError if they are crossed."""
    if least > greatest:
        raise ValueError(f"hardtanh: min_val {least} cannot be greater than max_val {greatest}")
    return least, greatest


def softshrink_limit(limit) -> tuple:
    """What softshrink takes off; ValueError if it is negative."""
    if limit < 0:
        raise ValueError(f"lambda must be greater or equal to 0, but found to be {limit}.")
    return (limit,)


def is_approximated(approximate) -> bool:
    """Whether gelu is computed with tanh; ValueError for what names neither way."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate argument must be either none or tanh, got {approximate!r}")
    return approximate == "tanh"


def _approximation(dtype: np.dtype, approximate) -> tuple:
    is_approximated(approximate)
    return ()


def _logit_bounds(dtype: np.dtype, eps) -> tuple:
    return (eps, 1 - eps) if eps >= 0 else (-inf, inf)


def _power_of_ten(dtype: np.dtype, decimals) -> tuple:
    if dtype.kind in "iu":
        raise RuntimeError(f"round: integers are rounded to decimals=0 only, got {decimals}")
    return 10.0 ** abs(decimals), decimals < 0


def _replacements(dtype: np.dtype, nan, posinf, neginf) -> tuple:
    if dtype.kind in "biu":
        return 0, 0, 0  # of nothing: integers are finite
    largest = LARGEST[dtypes.of_numpy(dtype).to_real()]
    given = (nan, 0.0), (posinf, largest), (neginf, -largest)
    return tuple([default if value is None else value for value, default in given])


#: by op; ops with numbers that are not listed give them as they are
CALLS = {
    "elu": Call("elu", lambda dtype, alpha, scale, inner: (scale, alpha * scale, inner)),
    "elu_backward": Call("elu_backward", lambda dtype, alpha, scale, inner: (scale, alpha * scale * inner, inner)),
    "gelu": Call("gelu", _approximation, {"none": "gelu", "tanh": "gelu_tanh"}),
    "gelu_backward": Call("gelu_backward", _approximation, {"none": "gelu_backward", "tanh": "gelu_tanh_backward"}),
    "hardtanh": Call("hardtanh", lambda dtype, *bounds: hardtanh_bounds(*bounds)),
    "logit": Call("logit_clamped", _logit_bounds, {None: "logit"}),
    "nan_to_num": Call("nan_to_num", _replacements),
    "round": Call("round_to", _power_of_ten, {0: "rint"}),
    "softshrink": Call("softshrink", lambda dtype, limit: softshrink_limit(limit)),
}
