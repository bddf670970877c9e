"""Special functions of statistics, elementwise; `corefw.special` offers them, and those of gamma.py, bessel.py and
polynomials.py."""

from __future__ import annotations

import math

from corefw.declarations._shared.special import real
from corefw.dispatch.declare import composite, ops, primitive
from corefw.shapes import broadcast, same_shape


@composite(dtype=real, shape=same_shape, out=True)
def special_entr(input):
    """The entropy of a probability, ``-input * log(input)``; 0 at 0, -inf below it.

    >>> import corefw as torch
    >>> torch.special.entr(torch.tensor([0.0, 0.5, -1.0]))
    tensor([0.0000, 0.3466,   -inf])
    """
    return ops.where(input < 0, -math.inf, 0 - ops.xlogy(input, input))


special_entr.gradients(input=lambda grad, input: grad * (-1 - input.log()))


@composite(dtype=real, shape=broadcast, out=True)
def special_xlog1py(input, other):
    """The product ``input * log(1 + other)``, which is 0 where `input` is 0, and NaN where `other` is.

    >>> import corefw as torch
    >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1e-8]))
    tensor([0.0000e+00, 2.0000e-08])
    """
    return ops.where((input == 0).logical_and(other == other), 0, input * other.log1p())


@special_xlog1py.gradient("input")
def special_xlog1py_vjp_input(grad, input, other):
    return ops.special_xlog1py(grad, other).masked_fill((input == 0).logical_and(other <= -1), 0)


@special_xlog1py.gradient("other")
def special_xlog1py_vjp_other(grad, input, other):
    return grad * (input / (other + 1))


@primitive(dtype=real, shape=same_shape, out=True)
def special_erfcx(input):
    """The scaled complement of the error function, ``exp(input**2) * erfc(input)``.

    >>> import corefw as torch
    >>> torch.special.erfcx(torch.tensor([0.0, 100.0]))
    tensor([1.0000, 0.0056])
    """


special_erfcx.gradients(input=lambda grad, input, out: grad * (input * out * 2 - 2 / math.sqrt(math.pi)))


@primitive(dtype=real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def erfinv(input):
    """The inverse of the error function; infinite at -1 and 1, NaN outside them.

    >>> import corefw as torch
    >>> torch.erfinv(torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.4769,    inf])
    """


erfinv.gradients(input=lambda grad, out: grad * ((out * out).exp() * (math.sqrt(math.pi) / 2)))


@composite(dtype=real, shape=same_shape, out=True)
def special_ndtr(input):
    """The distribution function of the standard normal distribution, ``erfc(-input / sqrt(2)) / 2``.

    >>> import corefw as torch
    >>> torch.special.ndtr(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    return (input * -math.sqrt(0.5)).erfc() * 0.5


special_ndtr.gradients(input=lambda grad, input: grad * ((input * input * -0.5).exp() / math.sqrt(2 * math.pi)))


@composite(dtype=real, shape=same_shape, out=True)
def special_log_ndtr(input):
    """The logarithm of `special.ndtr`, accurate in the lower tail too, where it is ``log(erfcx(t) / 2) - t**2`` with
    ``t = -input / sqrt(2)``.

    >>> import corefw as torch
    >>> torch.special.log_ndtr(torch.tensor([-100.0, 0.0]))
    tensor([-5.0055e+03, -6.9315e-01])
    """
    t = input * -math.sqrt(0.5)
    tail = (ops.special_erfcx(t) * 0.5).log() - t * t
    return ops.where(t > math.sqrt(0.5), tail, ((-t).erfc() * -0.5).log1p())


special_log_ndtr.gradients(
    input=lambda grad, input: grad * (math.sqrt(2 / math.pi) / ops.special_erfcx(input * -math.sqrt(0.5))),
)


@composite(dtype=real, shape=same_shape, out=True)
def special_ndtri(input):
    """The inverse of `special.ndtr`: the quantile of the standard normal distribution; NaN outside [0, 1].

    In the tails it solves ``log_ndtr(x) = log(input)`` by Newton's method.

    >>> import corefw as torch
    >>> torch.special.ndtri(torch.tensor([0.5, 0.975, 1e-30]))
    tensor([  0.0000,   1.9600, -11.4640])
    """
    input = input * 1.0  # floating
    p = ops.minimum(input, 1 - input)
    log_p = p.log()
    x = -(log_p * -2).sqrt()  # from below, where each step of a concave function stays
    for _ in range(5):
        erfcx = ops.special_erfcx(x * -math.sqrt(0.5))
        x = x + (log_p - (erfcx * 0.5).log() + x * x * 0.5) * erfcx * math.sqrt(math.pi / 2)
    centre = (input * 2.0 - 1).erfinv() * math.sqrt(2)
    return ops.where((p > 0).logical_and(p < 0.1), ops.where(input < 0.5, x, -x), centre)


special_ndtri.gradients(input=lambda grad, out: grad * ((out * out * 0.5).exp() * math.sqrt(2 * math.pi)))
