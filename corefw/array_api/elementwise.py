"""The array API's elementwise functions: the ops, with the standard's names and promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corefw
from corefw import dtypes
from corefw.array_api.data_types import is_complex, isdtype, promoted
from corefw.tensor import Tensor


def _unary(name: str, op: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function `name` of one array."""

    def function(x: Tensor, /) -> Tensor:
        return op(x)

    return _called(function, name, op)


def _binary(name: str, op: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Any], Tensor]:
    """The function `name` of two arrays, of which one may be a Python number; the number of dimensions is without
    effect on the type."""

    def function(x1: Any, x2: Any, /) -> Tensor:
        if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype is x2.dtype):
            x1, x2 = promoted(x1, x2)
        return op(x1, x2)

    return _called(function, name, op)


def _called(function: Callable, name: str, op: Callable) -> Callable:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The array API's `{name}`: `corefw.{op.__name__.strip('_')}` of arrays promoted to one type."
    return function


def _kept(op: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """An op that rounds, which leaves integers as they are."""

    def function(x: Tensor) -> Tensor:
        return x.clone() if isdtype(x.dtype, "integral") else op(x)

    function.__name__ = op.__name__
    return function


def _round_complex(x: Tensor) -> Tensor:
    return corefw.complex(x.real.round(), x.imag.round()) if is_complex(x.dtype) else x.round()


def _sign(x: Tensor) -> Tensor:
    result = corefw.sgn(x)  # which gives 0 for NaN
    return corefw.where(x.isnan(), x, result) if x.is_floating_point() else result


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    result = corefw.floor_divide(x1, x2)  # which gives NaN and -1 where one is infinite
    if not result.is_floating_point():
        return result
    return corefw.where(x1.isinf() | x2.isinf(), corefw.floor(x1 / x2), result)


abs = _unary("abs", corefw.abs)
acos = _unary("acos", corefw.acos)
acosh = _unary("acosh", corefw.acosh)
asin = _unary("asin", corefw.asin)
asinh = _unary("asinh", corefw.asinh)
atan = _unary("atan", corefw.atan)
atanh = _unary("atanh", corefw.atanh)
bitwise_invert = _unary("bitwise_invert", corefw.bitwise_not)
ceil = _unary("ceil", _kept(corefw.ceil))
conj = _unary("conj", corefw.conj_physical)
cos = _unary("cos", corefw.cos)
cosh = _unary("cosh", corefw.cosh)
exp = _unary("exp", corefw.exp)
expm1 = _unary("expm1", corefw.expm1)
floor = _unary("floor", _kept(corefw.floor))
isfinite = _unary("isfinite", corefw.isfinite)
isinf = _unary("isinf", corefw.isinf)
isnan = _unary("isnan", corefw.isnan)
log = _unary("log", corefw.log)
log1p = _unary("log1p", corefw.log1p)
log2 = _unary("log2", corefw.log2)
log10 = _unary("log10", corefw.log10)
logical_not = _unary("logical_not", corefw.logical_not)
negative = _unary("negative", corefw.neg)
positive = _unary("positive", corefw.clone)
reciprocal = _unary("reciprocal", corefw.reciprocal)
round = _unary("round", _kept(_round_complex))
sign = _unary("sign", _sign)
signbit = _unary("signbit", corefw.signbit)
sin = _unary("sin", corefw.sin)
sinh = _unary("sinh", corefw.sinh)
sqrt = _unary("sqrt", corefw.sqrt)
square = _unary("square", corefw.square)
tan = _unary("tan", corefw.tan)
tanh = _unary("tanh", corefw.tanh)
trunc = _unary("trunc", _kept(corefw.trunc))

add = _binary("add", corefw.add)
atan2 = _binary("atan2", corefw.atan2)
bitwise_and = _binary("bitwise_and", corefw.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", corefw.bitwise_left_shift)
bitwise_or = _binary("bitwise_or", corefw.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", corefw.bitwise_right_shift)
bitwise_xor = _binary("bitwise_xor", corefw.bitwise_xor)
copysign = _binary("copysign", corefw.copysign)
divide = _binary("divide", corefw.div)
equal = _binary("equal", corefw.eq)
floor_divide = _binary("floor_divide", _floor_divide)
greater = _binary("greater", corefw.gt)
greater_equal = _binary("greater_equal", corefw.ge)
hypot = _binary("hypot", corefw.hypot)
less = _binary("less", corefw.lt)
less_equal = _binary("less_equal", corefw.le)
logaddexp = _binary("logaddexp", corefw.logaddexp)
logical_and = _binary("logical_and", corefw.logical_and)
logical_or = _binary("logical_or", corefw.logical_or)
logical_xor = _binary("logical_xor", corefw.logical_xor)
maximum = _binary("maximum", corefw.maximum)
minimum = _binary("minimum", corefw.minimum)
multiply = _binary("multiply", corefw.mul)
nextafter = _binary("nextafter", corefw.nextafter)
not_equal = _binary("not_equal", corefw.ne)
pow = _binary("pow", corefw.pow)
remainder = _binary("remainder", corefw.remainder)
subtract = _binary("subtract", corefw.sub)


def real(x: Tensor, /) -> Tensor:
    """The real parts; `x` itself if it is real."""
    return x.real


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts; zeros if `x` is real."""
    return x.imag if is_complex(x.dtype) else corefw.zeros_like(x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """`x` limited to [min, max], in the type of `x`.

    Args:
        x: real, any shape.
        min, max: numbers, or arrays that broadcast with `x`; None for no limit.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().clip(torch.tensor([-1, 5]), 0, 3)
    tensor([0, 3])
    """
    limits = [None if v is None else _limit(v, x) for v in (min, max)]
    return x.clone() if limits == [None, None] else corefw.clamp(x, *limits).to(x.dtype)


def _limit(value: Any, x: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(x.dtype)
    if isdtype(x.dtype, "integral"):  # a limit outside of the type is none
        info = dtypes.iinfo(x.dtype)
        value = info.min if value < info.min else info.max if value > info.max else value
    return corefw.tensor(value, dtype=x.dtype, device=x.device)
