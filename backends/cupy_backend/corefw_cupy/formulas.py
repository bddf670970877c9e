"""Formulas beside those of `corefw.dispatch.expressions`: integer division, shifts and powers, complex numbers, and
what the CPU's backends compute with NumPy."""

from __future__ import annotations

from corefw.dispatch.expressions import Expression


def _of(kind: str, inputs: str, test: bool = False, **formulas: str) -> list[Expression]:
    return [Expression(name, inputs, {kind: formula}, 1, test) for name, formula in formulas.items()]


#: formulas that may report a fault, with the message and the error
FAULTS: dict[str, tuple[str, type[Exception]]] = {
    **dict.fromkeys(("floor_divide", "remainder", "fmod", "trunc_divide"), ("ZeroDivisionError", RuntimeError)),
}
_DIVIDED = "y == 0 ? (report(device_asserts, kind, 0, 0, 0), T(0)) : "

FORMULAS = (
    # -- integers ---------------------------------------------------------------------------------------------------
    *(
        expression
        for kind in ("signed", "unsigned")
        for expression in _of(
            kind,
            "x y",
            floor_divide=_DIVIDED + "divided_down(x, y)",
            remainder=_DIVIDED + "T(x - y * divided_down(x, y))",
            fmod=_DIVIDED + "rest_of(x, y)",
            trunc_divide=_DIVIDED + "quotient_of(x, y)",
            pow="integer_power(x, y)",
            gcd="greatest_divisor(x, y)",
            lcm="g = greatest_divisor(x, y); g == 0 ? T(0) : T(magnitude(x) / g * magnitude(y))",
            bitwise_left_shift="shifted_left(x, y)",
            bitwise_right_shift="shifted_right(x, y)",
            heaviside="x == 0 ? y : T(x > 0)",
            fmax="x > y ? x : y",
            fmin="x < y ? x : y",
        )
    ),
    *_of("unsigned", "x", abs="x", sign="T(x > 0)", sgn="T(x > 0)"),
    *_of("wrapping", "x", ceil="x", floor="x", trunc="x", rint="x", conj_physical="x"),
    *_of("wrapping", "x s t u", nan_to_num="x"),
    *_of("wrapping", "x", test=True, isnan="false", isinf="false", isfinite="true", isposinf="false", isneginf="false"),
    *_of("signed", "x", test=True, signbit="x < 0"),
    *_of("unsigned", "x", test=True, signbit="false"),
    *_of("wrapping", "x y z s", addcmul="T(x + T(s) * y * z)"),
    # -- bool -------------------------------------------------------------------------------------------------------
    *_of("bool", "x y", add="x | y", mul="x & y", maximum="x | y", minimum="x & y", fmax="x | y", fmin="x & y"),
    *_of("bool", "x y", test=True, lt="x < y", le="x <= y", gt="x > y", ge="x >= y"),
    *_of("bool", "x", abs="x", sign="x", sgn="x", conj_physical="x", square="x"),
    *_of("bool", "x s t u", nan_to_num="x"),
    *_of("bool", "x y z", clamp="m = x > y ? x : y; m < z ? m : z"),
    *_of("bool", "x y", heaviside="x == 0 ? y : x", pow="x | (1 - y)"),
    *_of("bool", "x", test=True, isnan="false", isinf="false", isfinite="true", isposinf="false", isneginf="false"),
    *_of("bool", "x", test=True, signbit="false"),
    # -- floating numbers -------------------------------------------------------------------------------------------
    *_of(
        "floating",
        "x y",
        # exact where one number means a square, a reciprocal or a root, which of -inf is NaN and the power is not
        pow_number="y == 2 ? x * x : y == 3 ? x * x * x : y == -1 ? 1 / x : y == T(0.5) ? sqrt(x) : "
        "y == T(-0.5) ? rsqrt(x) : pow(x, y)",
    ),
    *_of("floating", "x", special_erfcx="erfcx(x)"),
    *_of("real", "x y", nextafter="nextafter(x, y)"),
    *_of("half", "x y", nextafter="next_half((T)x, (T)y)"),
    # -- complex numbers --------------------------------------------------------------------------------------------
    *_of("complex", "x y", add="x + y", sub="x - y", mul="x * y", div="x / y", pow="pow(x, y)"),
    *_of("complex", "x", neg="-x", square="x * x", reciprocal="T(1) / x", conj_physical="conj(x)"),
    *_of("complex", "x", sqrt="sqrt(x)", rsqrt="T(1) / sqrt(x)", exp="exp(x)", exp2="exp(x * T(0.6931471805599453))"),
    *_of("complex", "x", expm1="exp(x) - T(1)", log="log(x)", log10="log10(x)", log1p="log(x + T(1))"),
    *_of("complex", "x", log2="log(x) * T(1.4426950408889634)", sigmoid="T(1) / (T(1) + exp(-x))"),
    *_of("complex", "x", sin="sin(x)", cos="cos(x)", tan="tan(x)", sinh="sinh(x)", cosh="cosh(x)", tanh="tanh(x)"),
    *_of("complex", "x", asin="asin(x)", acos="acos(x)", atan="atan(x)", asinh="asinh(x)", acosh="acosh(x)"),
    *_of("complex", "x", atanh="atanh(x)", silu="x / (T(1) + exp(-x))", sgn="x == T(0) ? x : x / T(abs(x))"),
    *_of("complex", "x", sinc="a = x * T(3.141592653589793); x == T(0) ? T(1) : sin(a) / a"),
    *_of("complex", "x s t u", nan_to_num="T(finite(x.re, s.re, t.re, u.re), finite(x.im, s.re, t.re, u.re))"),
    *_of("complex", "x y z s", addcmul="x + s * (y * z)", addcdiv="x + s * (y / z)"),
    *_of("complex", "x y z", lerp="abs(z) < 0.5 ? x + z * (y - x) : y - (T(1) - z) * (y - x)"),
    *_of("complex", "x y s", lerp_number="abs(s) < 0.5 ? x + s * (y - x) : y - (T(1) - s) * (y - x)"),
    *_of(
        "complex",
        "x y",
        sigmoid_backward="x * conj((T(1) - y) * y)",
        tanh_backward="x * conj(T(1) - y * y)",
        silu_backward="p = T(1) / (T(1) + exp(-y)); x * conj(p * (T(1) + y * (T(1) - p)))",
        xlogy="x == T(0) && y == y ? T(0) : x * log(y)",
        logaddexp="h = x.real() >= y.real() ? x : y; l = x.real() >= y.real() ? y : x; h + log(exp(l - h) + T(1))",
    ),
    *_of("complex", "x y", test=True, eq="x == y", ne="x != y"),
    *_of("complex", "x y", test=True, logical_and="x != T(0) && y != T(0)", logical_or="x != T(0) || y != T(0)"),
    *_of("complex", "x y", test=True, logical_xor="(x != T(0)) != (y != T(0))"),
    *_of("complex", "x", test=True, logical_not="x == T(0)", isnan="x.real() != x.real() || x.imag() != x.imag()"),
    *_of("complex", "x", test=True, isinf="fabs(x.real()) == INFINITY || fabs(x.imag()) == INFINITY"),
    *_of("complex", "x", test=True, isfinite="fabs(x.real()) < INFINITY && fabs(x.imag()) < INFINITY"),
)
