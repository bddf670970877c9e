"""Elementary functions: roots, exponentials, logarithms, trigonometric and hyperbolic functions, elementwise.

Integers and bool are computed in the default floating dtype. Gradients of complex functions are conjugated: a gradient
is the direction of steepest ascent, ``grad * conj(f'(input))``.
"""

from __future__ import annotations

import math

from corefw.dispatch.batching.calls import elementwise
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import floating, promoted_floats, promoted_real_floats
from corefw.shapes import broadcast, same_shape

_real = floating.without("complex")


# -- roots ------------------------------------------------------------------------------------------------------------
@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def sqrt(input):
    """The square root; NaN for negative numbers.

    >>> import corefw as torch
    >>> torch.sqrt(torch.tensor([4.0, 2.0]))
    tensor([2.0000, 1.4142])
    """


sqrt.gradients(input=lambda grad, out: grad / (out * 2).conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def rsqrt(input):
    """The reciprocal of the square root, ``1 / sqrt(input)``.

    >>> import corefw as torch
    >>> torch.rsqrt(torch.tensor([4.0, 0.25]))
    tensor([0.5000, 2.0000])
    """


rsqrt.gradients(input=lambda grad, out: grad * (out * out * out * -0.5).conj())


@primitive(dtype=promoted_real_floats, shape=broadcast, inplace=True, out=True)
def hypot(input, other):
    """The length of a vector in the plane, ``sqrt(input**2 + other**2)``, without overflow on the way.

    >>> import corefw as torch
    >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
    tensor([5.])
    """


hypot.gradients(
    input=lambda grad, input, out: grad * (input / out),
    other=lambda grad, other, out: grad * (other / out),
)


# -- exponentials and logarithms --------------------------------------------------------------------------------------
@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def exp(input):
    """The exponential, ``e ** input``.

    >>> import corefw as torch
    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """


exp.gradients(input=lambda grad, out: grad * out.conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def exp2(input):
    """The power of two, ``2 ** input``.

    >>> import corefw as torch
    >>> torch.exp2(torch.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """


exp2.gradients(input=lambda grad, out: grad * (out * math.log(2)).conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def expm1(input):
    """The exponential minus one, ``e ** input - 1``, exact for small `input` too.

    >>> import corefw as torch
    >>> torch.expm1(torch.tensor([0.0, 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """


expm1.gradients(input=lambda grad, out: grad * (out + 1).conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def log(input):
    """The natural logarithm; -inf for 0, NaN for negative numbers.

    >>> import corefw as torch
    >>> torch.log(torch.tensor([1.0, 2.0, 0.0]))
    tensor([0.0000, 0.6931,   -inf])
    """


log.gradients(input=lambda grad, input: grad / input.conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def log2(input):
    """The logarithm to base 2.

    >>> import corefw as torch
    >>> torch.log2(torch.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """


log2.gradients(input=lambda grad, input: grad / (input * math.log(2)).conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def log10(input):
    """The logarithm to base 10.

    >>> import corefw as torch
    >>> torch.log10(torch.tensor([1.0, 20.0]))
    tensor([0.0000, 1.3010])
    """


log10.gradients(input=lambda grad, input: grad / (input * math.log(10)).conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def log1p(input):
    """The logarithm of one more, ``log(1 + input)``, exact for small `input` too.

    >>> import corefw as torch
    >>> torch.log1p(torch.tensor([0.0, 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])
    """


log1p.gradients(input=lambda grad, input: grad / (input + 1).conj())


@primitive(dtype=promoted_floats, shape=broadcast, out=True)
def logaddexp(input, other):
    """The logarithm of a sum of exponentials, ``log(exp(input) + exp(other))``, without overflow on the way.

    >>> import corefw as torch
    >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """


logaddexp.gradients(
    input=lambda grad, input, other: grad * ops.sigmoid(input - other).conj(),
    other=lambda grad, input, other: grad * ops.sigmoid(other - input).conj(),
)


@primitive(dtype=promoted_real_floats, shape=broadcast, out=True)
def logaddexp2(input, other):
    """The logarithm of a sum of powers of two, ``log2(2**input + 2**other)``, without overflow on the way.

    >>> import corefw as torch
    >>> torch.logaddexp2(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
    tensor([1.0000e+00, 1.0010e+03])
    """


logaddexp2.gradients(
    input=lambda grad, input, other: grad * ops.sigmoid((input - other) * math.log(2)),
    other=lambda grad, input, other: grad * ops.sigmoid((other - input) * math.log(2)),
)


@primitive(dtype=_real, shape=broadcast, inplace=True, out=True, public="corefw Tensor special")
def xlogy(input, other):
    """The product ``input * log(other)``, which is 0 where `input` is 0, and NaN where `other` is.

    >>> import corefw as torch
    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """


xlogy.gradients(
    input=lambda grad, input, other: ops.xlogy(grad, other).masked_fill((input == 0).logical_and(other <= 0), 0),
    other=lambda grad, input, other: grad * input / other,  # (1 / other may overflow)
)


# -- sigmoid ----------------------------------------------------------------------------------------------------------
@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, public="corefw Tensor nn.functional special.expit")
def sigmoid(input):
    """The logistic function, ``1 / (1 + exp(-input))``.

    >>> import corefw as torch
    >>> torch.sigmoid(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.2689, 0.5000, 0.7311])
    """


sigmoid.gradients(input=lambda grad, out: ops.sigmoid_backward(grad, out))


@composite(dtype=promoted_floats, shape=broadcast, public="")
def sigmoid_backward(gradient, output):
    """The gradient of `sigmoid`: ``gradient * conj((1 - output) * output)``."""
    return gradient * ((1 - output) * output).conj()


sigmoid_backward.batching(elementwise)
sigmoid_backward.gradients(
    gradient=lambda grad, output: ops.sigmoid_backward(grad, output.conj()),
    output=lambda grad, gradient, output: grad.conj() * gradient * (1 - output * 2).conj(),
)


@primitive(dtype=_real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def logit(input, eps: float | None = None):
    """The inverse of `sigmoid`, ``log(input / (1 - input))``; NaN outside [0, 1].

    Args:
        input: any shape.
        eps: if given, `input` is first clamped to [eps, 1 - eps].

    >>> import corefw as torch
    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    >>> torch.logit(torch.tensor([0.0, 1.0]), eps=1e-3)
    tensor([-6.9068,  6.9068])
    """


@logit.gradient("input")
def logit_vjp(grad, input, eps):
    slope = grad / (input.abs() * (1 - input))  # positive at -0, too
    low, clamped = (0, math.nan) if eps is None or eps < 0 else (eps, 0)
    return ops.where((input < low).logical_or(input > 1 - low), clamped, slope)


# -- trigonometric functions ------------------------------------------------------------------------------------------
@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def sin(input):
    """The sine of angles in radians.

    >>> import corefw as torch
    >>> torch.sin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """


sin.gradients(input=lambda grad, input: grad * input.cos().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def cos(input):
    """The cosine of angles in radians.

    >>> import corefw as torch
    >>> torch.cos(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """


cos.gradients(input=lambda grad, input: -grad * input.sin().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def tan(input):
    """The tangent of angles in radians.

    >>> import corefw as torch
    >>> torch.tan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """


tan.gradients(input=lambda grad, out: grad * (out * out + 1).conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, aliases=("arcsin",))
def asin(input):
    """The inverse sine in radians; NaN outside [-1, 1].

    >>> import corefw as torch
    >>> torch.asin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """


asin.gradients(input=lambda grad, input: grad * (1 - input * input).rsqrt().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, aliases=("arccos",))
def acos(input):
    """The inverse cosine in radians; NaN outside [-1, 1].

    >>> import corefw as torch
    >>> torch.acos(torch.tensor([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    """


acos.gradients(input=lambda grad, input: -grad * (1 - input * input).rsqrt().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, aliases=("arctan",))
def atan(input):
    """The inverse tangent in radians.

    >>> import corefw as torch
    >>> torch.atan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """


atan.gradients(input=lambda grad, input: grad / (input * input + 1).conj())


@primitive(dtype=_real, shape=broadcast, inplace=True, out=True, aliases=("arctan2",))
def atan2(input, other):
    """The angle in radians, from -pi to pi, of the vector with abscissa `other` and ordinate `input`.

    >>> import corefw as torch
    >>> torch.atan2(torch.tensor([1.0, -1.0]), torch.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """


@atan2.gradient("input", "other")
def atan2_vjp(grad, input, other, needs):
    y, x = input.to(grad.dtype), other.to(grad.dtype)  # squares of integers overflow
    square = y * y + x * x
    scaled = (grad / square).masked_fill(square == 0, 0)
    return scaled * x if needs[0] else None, -scaled * y if needs[1] else None


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def sinc(input):
    """The normalised cardinal sine, ``sin(pi * input) / (pi * input)``, 1 at 0.

    >>> import corefw as torch
    >>> torch.sinc(torch.tensor([0.0, 0.5, 1.0]))
    tensor([ 1.0000e+00,  6.3662e-01, -2.7828e-08])
    """


@sinc.gradient("input")
def sinc_vjp(grad, input):
    angle = input * math.pi
    slope = (angle.cos() - ops.sinc(input)) / input
    return (grad * slope.conj()).masked_fill(input == 0, 0)


@primitive(dtype=_real, shape=same_shape, inplace=True, out=True)
def deg2rad(input):
    """Angles given in degrees, in radians.

    >>> import corefw as torch
    >>> torch.deg2rad(torch.tensor([180.0, -90.0]))
    tensor([ 3.1416, -1.5708])
    """


deg2rad.gradients(input=lambda grad: grad * (math.pi / 180))


@primitive(dtype=_real, shape=same_shape, inplace=True, out=True)
def rad2deg(input):
    """Angles given in radians, in degrees.

    >>> import corefw as torch
    >>> torch.rad2deg(torch.tensor([3.1416, -1.5708]))
    tensor([180.0004, -90.0002])
    """


rad2deg.gradients(input=lambda grad: grad * (180 / math.pi))


# -- hyperbolic functions ---------------------------------------------------------------------------------------------
@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def sinh(input):
    """The hyperbolic sine.

    >>> import corefw as torch
    >>> torch.sinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """


sinh.gradients(input=lambda grad, input: grad * input.cosh().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True)
def cosh(input):
    """The hyperbolic cosine.

    >>> import corefw as torch
    >>> torch.cosh(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """


cosh.gradients(input=lambda grad, input: grad * input.sinh().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, public="corefw Tensor nn.functional")
def tanh(input):
    """The hyperbolic tangent.

    >>> import corefw as torch
    >>> torch.tanh(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7616,  0.0000,  0.7616])
    """


tanh.gradients(input=lambda grad, out: ops.tanh_backward(grad, out))


@composite(dtype=promoted_floats, shape=broadcast, public="")
def tanh_backward(gradient, output):
    """The gradient of `tanh`: ``gradient * conj(1 - output**2)``."""
    return gradient * (1 - output * output).conj()


tanh_backward.batching(elementwise)
tanh_backward.gradients(
    gradient=lambda grad, output: ops.tanh_backward(grad, output.conj()),
    output=lambda grad, gradient, output: grad.conj() * gradient * (output * -2).conj(),
)


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, aliases=("arcsinh",))
def asinh(input):
    """The inverse hyperbolic sine.

    >>> import corefw as torch
    >>> torch.asinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """


asinh.gradients(input=lambda grad, input: grad * (input * input + 1).rsqrt().conj())


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, aliases=("arccosh",))
def acosh(input):
    """The inverse hyperbolic cosine; NaN below 1.

    >>> import corefw as torch
    >>> torch.acosh(torch.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """


@acosh.gradient("input")
def acosh_vjp(grad, input):
    if (
        input.dispatch_key.dtype.is_complex
    ):  # the product of the roots lies on the branch that the root of the product may miss
        return grad * ((input - 1).rsqrt() * (input + 1).rsqrt()).conj()
    return grad * (input * input - 1).rsqrt()


@primitive(dtype=floating, shape=same_shape, inplace=True, out=True, aliases=("arctanh",))
def atanh(input):
    """The inverse hyperbolic tangent; NaN outside [-1, 1].

    >>> import corefw as torch
    >>> torch.atanh(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """


atanh.gradients(input=lambda grad, input: grad / (1 - input * input).conj())


# -- error function ---------------------------------------------------------------------------------------------------
@primitive(dtype=_real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def erf(input):
    """The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `input`.

    >>> import corefw as torch
    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """


erf.gradients(input=lambda grad, input: grad * ((input * input).neg().exp() * (2 / math.sqrt(math.pi))))


@primitive(dtype=_real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def erfc(input):
    """The complement of the error function, ``1 - erf(input)``, exact where that is small too.

    >>> import corefw as torch
    >>> torch.erfc(torch.tensor([0.0, 5.0]))
    tensor([1.0000e+00, 1.5375e-12])
    """


erfc.gradients(input=lambda grad, input: grad * ((input * input).neg().exp() * (-2 / math.sqrt(math.pi))))
