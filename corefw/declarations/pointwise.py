"""Elementwise arithmetic: sums, products, quotients, powers, signs and rounding.

Tensors have any shapes that broadcast; a Python number may stand for every tensor but one.
"""

from __future__ import annotations

import math
from typing import Any

from corefw import dtypes
from corefw.dispatch.batching.calls import elementwise
from corefw.dispatch.declare import Declaration, composite, ops, primitive
from corefw.dispatch.numbers import checked_factor, fitting_number
from corefw.dispatch.promotion import result_type
from corefw.dispatch.rules import (
    DtypeRule,
    computed,
    floating,
    numbers,
    ordered,
    promote,
    promoted_floats,
    promoted_real_numbers,
    real,
    real_floats,
    real_numbers,
    same,
)
from corefw.errors import DtypeError
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Constant, Tensor


def _counting(d):
    """bool counts in int64."""
    return dtypes.int64 if d is dtypes.bool_ else d


counting = DtypeRule("counting", compute=_counting, results=(_counting,))


def _scaled(combine: Declaration, scaled: Declaration, alpha, input, other):
    """`input` combined with ``alpha * other`` by `scaled`, or complex numbers in two steps.

    `alpha` has no part in the choice of the result's dtype, and is refused unless that holds numbers of its kind.
    """
    alpha, apart = _factor(combine, alpha, input, other)
    return combine.op.function(input, other * alpha) if apart else scaled(input, other, alpha)


def _factor(combine: Declaration, alpha, input, other) -> tuple[Any, bool]:
    """`alpha` as `_scaled` applies it, and whether in two steps."""
    alike = input.__class__ is Tensor and other.__class__ is Tensor and input.dispatch_key is other.dispatch_key
    common = input.dispatch_key.dtype if alike else result_type(input, other)
    alpha = checked_factor(combine.op.name, "alpha", alpha, common)
    apart = alike and common.is_complex
    return fitting_number(alpha, common if apart else computed(common)), apart


def _scaled_into(combine: Declaration, scaled: Declaration):
    """As `_scaled`, in the memory of `input`."""

    def into(input, other, *, alpha):
        alpha, apart = _factor(combine, alpha, input, other)
        if apart:
            return combine.op.inplace_function(input, other * alpha)
        return scaled.op.inplace_function(input, other, alpha)

    return into


# -- sums and products ------------------------------------------------------------------------------------------------
@primitive(dtype=promote, shape=broadcast, rewrites=("alpha",), inplace=True, out=True)
def add(input, other, *, alpha: float = 1):
    """The sum ``input + alpha * other``.

    Args:
        input: any shape.
        other: a tensor or number that broadcasts with `input`.
        alpha: a factor for `other`.

    >>> import corefw as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    return _scaled(add, add_scaled, alpha, input, other)


add.gradients(
    input=lambda grad: grad,
    other=lambda grad: grad,
)


@primitive(
    dtype=promote.without("bool").strictly(),
    shape=broadcast,
    rewrites=("alpha",),
    inplace=True,
    out=True,
    aliases=("subtract",),
)
def sub(input, other, *, alpha: float = 1):
    """The difference ``input - alpha * other``; arguments as for `add`, but bool is refused (use ``~`` or ``^``).

    >>> import corefw as torch
    >>> torch.sub(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 3.0]), alpha=2)
    tensor([-5., -4.])
    """
    return _scaled(sub, sub_scaled, alpha, input, other)


sub.gradients(
    input=lambda grad: grad,
    other=lambda grad: -grad,
)


@composite(
    dtype=promote, shape=lambda input, other, alpha: broadcast(input, other), inplace=True, public="", grad_name="Add"
)
def add_scaled(input, other, alpha: float):
    """The sum ``input + alpha * other``, where `alpha` becomes a number of the dtype of the result."""
    return input + other * fitting_number(alpha, input.dispatch_key.dtype)


add_scaled.gradients(
    input=lambda grad: grad,
    other=lambda grad, alpha: grad * alpha.conjugate(),
)


@composite(
    dtype=promote.without("bool").strictly(),
    shape=lambda input, other, alpha: broadcast(input, other),
    inplace=True,
    public="",
    grad_name="Sub",
)
def sub_scaled(input, other, alpha: float):
    """The difference ``input - alpha * other``, where `alpha` becomes a number of the dtype of the result."""
    return input - other * fitting_number(alpha, input.dispatch_key.dtype)


sub_scaled.gradients(
    input=lambda grad: grad,
    other=lambda grad, alpha: -grad * alpha.conjugate(),
)

add.in_place(_scaled_into(add, add_scaled))
sub.in_place(_scaled_into(sub, sub_scaled))


@composite(public="corefw")
def rsub(input, other, *, alpha: float = 1):
    """The reversed difference ``other - alpha * input``.

    >>> import corefw as torch
    >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    return ops.sub(other, input, alpha=alpha)


@primitive(dtype=promote, shape=broadcast, inplace=True, out=True, aliases=("multiply",))
def mul(input, other):
    """The product ``input * other``.

    >>> import corefw as torch
    >>> torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([[3.0], [4.0]]))
    tensor([[3., 6.],
            [4., 8.]])
    """


mul.gradients(
    input=lambda grad, other: grad * other.conj(),
    other=lambda grad, input: grad * input.conj(),
)


@composite(dtype=promote.without("bool"), shape=broadcast, inplace=True, out=True)
def addcmul(input, tensor1, tensor2, *, value: float = 1):
    """A scaled product added: ``input + value * tensor1 * tensor2``.

    >>> import corefw as torch
    >>> torch.addcmul(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=0.5)
    tensor([2.5000, 5.0000])
    """
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * fitting_number(value, input.dispatch_key.dtype))


addcmul.batching(elementwise)
addcmul.gradients(
    input=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * (tensor2 * value).conj(),
    tensor2=lambda grad, tensor1, value: grad * (tensor1 * value).conj(),
)


# -- quotients --------------------------------------------------------------------------------------------------------
@primitive(dtype=floating, shape=broadcast, rewrites=("rounding_mode",), inplace=True, out=True, aliases=("divide",))
def div(input, other, *, rounding_mode: str | None = None):
    """The quotient ``input / other``; integers are divided as floating numbers unless a rounding mode is given.

    Args:
        input: any shape.
        other: a tensor or number that broadcasts with `input`.
        rounding_mode: None; "trunc" to round the quotient towards zero as C does; "floor" to round it down as Python's
            ``//``. Rounded integers stay integers, and their division by zero raises RuntimeError.

    >>> import corefw as torch
    >>> torch.div(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    if rounding_mode == "trunc":
        return ops.trunc_divide(input, other)
    if rounding_mode == "floor":
        return ops.floor_divide(input, other)
    if rounding_mode is not None:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return input / other


div.gradients(
    input=lambda grad, other: grad / other.conj(),
    other=lambda grad, input, other: -grad * (input / other / other).conj(),
)


@composite(inplace=True, out=True)
def true_divide(input, other):
    """The quotient ``input / other``, as `div` without rounding.

    >>> import corefw as torch
    >>> torch.true_divide(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    """
    return input / other


@primitive(dtype=promoted_real_numbers, shape=broadcast, inplace=True, out=True)
def floor_divide(input, other):
    """The quotient rounded down, ``floor(input / other)``; an integer divided by zero raises RuntimeError.

    >>> import corefw as torch
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """


@floor_divide.gradient("input", "other")
def floor_divide_vjp(grad):
    zeros = ops.zeros_like(grad)
    return zeros, zeros


@primitive(dtype=promoted_real_numbers, shape=broadcast, public="", grad_name="Div2")
def trunc_divide(input, other):
    """The quotient rounded towards zero, `div` with ``rounding_mode="trunc"``."""


@trunc_divide.gradient("input", "other")
def trunc_divide_vjp(grad):
    zeros = ops.zeros_like(grad)
    return zeros, zeros


@primitive(
    dtype=promoted_real_numbers,
    shape=broadcast,
    inplace=True,
    out=True,
    grad_name=lambda other: "Remainder1" if other else "Remainder",
)
def remainder(input, other):
    """The remainder of floor division, with the sign of `other`, Python's ``%``:
    ``input - other * floor(input / other)``.

    An integer divided by zero raises RuntimeError; a floating number gives NaN.

    >>> import corefw as torch
    >>> torch.remainder(torch.tensor([-3.0, -2.5, 3.0]), 2)
    tensor([1.0000, 1.5000, 1.0000])
    """


remainder.gradients(
    input=lambda grad: grad,
    other=lambda grad, input, other: -grad * ops.floor_divide(input, other),
)


@primitive(
    dtype=promoted_real_numbers,
    shape=broadcast,
    inplace=True,
    out=True,
    grad_name=lambda other: "Fmod1" if other else "Fmod",
)
def fmod(input, other):
    """The remainder of truncated division, with the sign of `input`: C's ``fmod``.

    An integer divided by zero raises RuntimeError; a floating number gives NaN.

    >>> import corefw as torch
    >>> torch.fmod(torch.tensor([-3.0, -2.0, 3.0]), 2)
    tensor([-1., -0.,  1.])
    """


fmod.gradients(
    input=lambda grad: grad,
    other=lambda grad, input, other: -grad * ops.trunc_divide(input, other),
)


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def reciprocal(input):
    """The reciprocal ``1 / input``.

    >>> import corefw as torch
    >>> torch.reciprocal(torch.tensor([2.0, -0.5]))
    tensor([ 0.5000, -2.0000])
    """


reciprocal.gradients(input=lambda grad, out: -grad * (out * out).conj())


@composite(dtype=promoted_floats, shape=broadcast, inplace=True, out=True)
def addcdiv(input, tensor1, tensor2, *, value: float = 1):
    """A scaled quotient added: ``input + value * tensor1 / tensor2``.

    >>> import corefw as torch
    >>> torch.addcdiv(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), value=0.5)
    tensor([1.2500, 1.2500])
    """
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * fitting_number(value, input.dispatch_key.dtype))


addcdiv.batching(elementwise)
addcdiv.gradients(
    input=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * (value / tensor2).conj(),
    tensor2=lambda grad, tensor1, tensor2, value: -grad * (tensor1 * value / (tensor2 * tensor2)).conj(),
)


@primitive(
    dtype=promoted_floats.of_one_dtype(),
    shape=broadcast,
    inplace=True,
    out=True,
    grad_name=lambda weight: "Lerp1" if weight else "Lerp",
)
def lerp(input, end, weight):
    """The linear interpolation ``input + weight * (end - input)``, exact at the weights 0 and 1.

    Args:
        input, end: the values at weights 0 and 1.
        weight: a tensor of the same dtype, a 0-d tensor of any, or a number; outside [0, 1] it extrapolates.

    >>> import corefw as torch
    >>> torch.lerp(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0]), 0.25)
    tensor([1.5000, 3.0000])
    """


lerp.gradients(
    input=lambda grad, weight: grad * (1 - weight).conj(),
    end=lambda grad, weight: grad * weight.conj(),
    weight=lambda grad, input, end: grad * (end - input).conj(),
)


# -- powers -----------------------------------------------------------------------------------------------------------
@primitive(dtype=counting, shape=same_shape, inplace=True, out=True, grad_name="Pow")
def square(input):
    """The square ``input * input``.

    >>> import corefw as torch
    >>> torch.square(torch.tensor([1.0, -3.0]))
    tensor([1., 9.])
    """


square.gradients(input=lambda grad, input: grad * (input * 2).conj())


def _pow_name(input, exponent):
    return "Pow2" if input is False else "Pow1" if exponent else "Pow"


@primitive(dtype=promote.without("bool").with_exponents(), shape=broadcast, inplace=True, out=True, grad_name=_pow_name)
def pow(input, exponent):
    """The power ``input ** exponent``.

    Args:
        input: a tensor or number, the base.
        exponent: a tensor or number that broadcasts with it.

    Raises:
        RuntimeError: integers to one negative integer exponent. Where a tensor of exponents has some, the quotient is
            rounded towards zero, as for all integer division in C.

    >>> import corefw as torch
    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    >>> torch.pow(2, torch.tensor([1.0, 2.0, 3.0]))
    tensor([2., 4., 8.])
    """


@pow.gradient("input")
def pow_vjp_input(grad, input, exponent):
    if exponent.__class__ is Constant:
        n = exponent.number
        if n == 0:
            return ops.zeros_like(grad)
        return grad * (input * 2 if n == 2 else input ** (n - 1) * n).conj()
    slope = exponent * input ** (exponent.to(grad.dtype) - 1)  # one below the least integer there is none
    return grad * ops.where(exponent == 0, 0, slope).conj()


@pow.gradient("exponent")
def pow_vjp_exponent(grad, input, exponent, out):
    if input.__class__ is Constant and isinstance(input.number, (int, float)) and input.number > 0:
        return grad * (out * math.log(input.number)).conj()
    flat = (input == 0).logical_and(ops.real(exponent) >= 0)  # 0 ** exponent is constant there
    slope = out * (input if input.__class__ is Constant else input.to(grad.dtype)).log()
    return grad * ops.where(flat, 0, slope).conj()


@composite(inplace=True, out=True)
def float_power(input, exponent):
    """The power in double precision: both operands are converted to float64, or to complex128 if one is complex.

    >>> import corefw as torch
    >>> torch.float_power(torch.tensor([4, 9]), 0.5)
    tensor([2., 3.], dtype=torch.float64)
    """
    wide = dtypes.complex128 if result_type(input, exponent).is_complex else dtypes.float64

    def widened(value):
        return value if isinstance(value, (int, float, complex)) else value.to(wide)

    return ops.pow(widened(input), widened(exponent))


@composite(dtype=floating, shape=broadcast, inplace=True, out=True)
def ldexp(input, other):
    """The product of `input` and a power of two, ``input * 2 ** other``, also where the power is beyond the range.

    >>> import corefw as torch
    >>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    if other.dtype.is_complex:
        return input * ops.exp2(other)
    if not other.dtype.is_floating_point:
        other = other.to(dtypes.get_default_dtype())
    most = math.frexp(dtypes.finfo(other.dtype).max)[1] - 2
    for _ in range(3):  # enough to cross the range, from its end among the subnormal numbers
        step = other.clamp(-most, most)
        input, other = input * step.exp2(), other - step
    return input


ldexp.gradients(
    input=lambda grad, other: grad.ldexp(other.conj()),
    other=lambda grad, out: grad * (out * math.log(2)).conj(),
)


# -- signs ------------------------------------------------------------------------------------------------------------
@primitive(dtype=numbers, shape=same_shape, inplace=True, out=True, aliases=("negative",))
def neg(input):
    """The opposite number, ``-input``.

    >>> import corefw as torch
    >>> torch.neg(torch.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """


neg.gradients(input=lambda grad: -grad)


@composite()
def positive(input):
    """The tensor itself, as Python's unary ``+``; bool is refused.

    >>> import corefw as torch
    >>> torch.positive(torch.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """
    if input.dispatch_key.dtype is dtypes.bool_:
        raise DtypeError("The `+` operator, on a bool tensor is not supported.")
    return input


@primitive(dtype=real.without("bool"), shape=same_shape, inplace=True, out=True, aliases=("absolute",))
def abs(input):
    """The absolute value ``|input|``; of a complex number its modulus, a real number.

    >>> import corefw as torch
    >>> torch.abs(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    >>> torch.abs(torch.tensor([3.0 + 4.0j]))
    tensor([5.])
    """


abs.gradients(input=lambda grad, input: grad * ops.sgn(input))


@primitive(dtype=ordered, shape=same_shape, inplace=True, out=True)
def sign(input):
    """The sign: 1, 0 or -1; 0 for NaN.

    >>> import corefw as torch
    >>> torch.sign(torch.tensor([0.5, 0.0, -3.0]))
    tensor([ 1.,  0., -1.])
    """


sign.gradients(input=lambda grad: ops.zeros_like(grad))


@primitive(dtype=same, shape=same_shape, inplace=True, out=True)
def sgn(input):
    """The sign as a complex number, ``input / |input|``, 0 for 0; of a real number its `sign`.

    >>> import corefw as torch
    >>> torch.sgn(torch.tensor([3.0 + 4.0j, 0.0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """


@sgn.gradient("input")
def sgn_vjp(grad, input, out):
    if not input.dispatch_key.dtype.is_complex:
        return ops.zeros_like(grad)
    modulus = input.abs()
    across = (grad - ops.real(grad.conj() * out) * out) / modulus  # the part that turns, the rest changes the modulus
    return ops.where(modulus == 0, 0, across)


sgn.facts(holomorphic=False)


@primitive(dtype=floating.without("complex"), shape=broadcast, inplace=True, out=True)
def copysign(input, other):
    """The magnitude of `input` with the sign of `other`, whose zeros have signs too.

    >>> import corefw as torch
    >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """


@copysign.gradient("input")
def copysign_vjp_input(grad, input, out):
    ratio = out / input
    return grad * ops.where(input == 0, 0, ratio)


@copysign.gradient("other")
def copysign_vjp_other(grad):
    return ops.zeros_like(grad)


# -- rounding ---------------------------------------------------------------------------------------------------------


@primitive(dtype=real_numbers, shape=same_shape, inplace=True, out=True)
def ceil(input):
    """The smallest integer that is not less.

    >>> import corefw as torch
    >>> torch.ceil(torch.tensor([1.2, -1.2]))
    tensor([ 2., -1.])
    """


@primitive(dtype=real_numbers, shape=same_shape, inplace=True, out=True)
def floor(input):
    """The greatest integer that is not greater.

    >>> import corefw as torch
    >>> torch.floor(torch.tensor([1.2, -1.2]))
    tensor([ 1., -2.])
    """


@primitive(dtype=real_numbers, shape=same_shape, inplace=True, out=True, aliases=("fix",))
def trunc(input):
    """The integer part, rounded towards zero.

    >>> import corefw as torch
    >>> torch.trunc(torch.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """


@primitive(dtype=real_numbers, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def round(input, *, decimals: int = 0):
    """The nearest multiple of ``10 ** -decimals``; of two that are equally near the even one.

    Args:
        input: any shape.
        decimals: how many digits after the point are kept; negative for digits before it. Integers take 0 only.

    >>> import corefw as torch
    >>> torch.round(torch.tensor([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    >>> torch.round(torch.tensor([0.1234, 5.678]), decimals=2)
    tensor([0.1200, 5.6800])
    """


for _op in (ceil, floor, trunc, round):
    _op.gradient("input")(lambda grad: ops.zeros_like(grad))


@primitive(dtype=real_floats, shape=same_shape, inplace=True, out=True)
def frac(input):
    """The part after the point, ``input - trunc(input)``.

    >>> import corefw as torch
    >>> torch.frac(torch.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """


frac.gradients(input=lambda grad: grad)


# -- integers ---------------------------------------------------------------------------------------------------------
@primitive(dtype=promote.without("bool", "floating", "complex"), shape=broadcast, inplace=True, out=True)
def gcd(input, other):
    """The greatest common divisor; that of 0 and 0 is 0.

    >>> import corefw as torch
    >>> torch.gcd(torch.tensor([12, -18]), torch.tensor([8, 27]))
    tensor([4, 9])
    """


@primitive(dtype=promote.without("bool", "floating", "complex"), shape=broadcast, inplace=True, out=True)
def lcm(input, other):
    """The least common multiple.

    >>> import corefw as torch
    >>> torch.lcm(torch.tensor([12, -18]), torch.tensor([8, 27]))
    tensor([24, 54])
    """
