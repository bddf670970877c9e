"""The gamma function's logarithm and its derivatives, Hurwitz' zeta function and the incomplete gamma functions."""

from __future__ import annotations

import math

from corefw.declarations._shared.special import real
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import promoted_real_floats
from corefw.dtypes import BOOL
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Tensor


@primitive(dtype=real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special.gammaln")
def lgamma(input):
    """The logarithm of the gamma function's absolute value; inf at 0, at the negative integers and at infinities.

    >>> import corefw as torch
    >>> torch.lgamma(torch.tensor([0.5, 1.0, 10.0]))
    tensor([ 0.5724,  0.0000, 12.8018])
    """


lgamma.gradients(input=lambda grad, input: grad * input.digamma())


@primitive(dtype=real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special special.psi")
def digamma(input):
    """The derivative of the gamma function's logarithm; -inf at 0, inf at -0, NaN at the negative integers.

    Source: DLMF 5.2.2, computed by 5.5.2, 5.5.4 and 5.11.2.

    >>> import corefw as torch
    >>> torch.digamma(torch.tensor([1.0, 0.5, 0.0]))
    tensor([-0.5772, -1.9635,    -inf])
    """


digamma.gradients(input=lambda grad, input: grad * input.polygamma(1))


@composite(inplace=True, public="Tensor")
def polygamma(input, n: int):
    """`special.polygamma` of `input`, as a method.

    >>> import corefw as torch
    >>> torch.tensor([1.0, 0.5]).polygamma(1)
    tensor([1.6449, 4.9348])
    """
    if not isinstance(n, int):
        raise TypeError(f"polygamma(): argument 'n' must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}.")
    if n == 0:
        return ops.digamma(input)
    factorial = math.gamma(n + 1) if n < 171 else math.inf
    return ops.special_zeta(n + 1, input) * (factorial if n % 2 else -factorial)


@composite(out=True, public="corefw.polygamma special.polygamma")
def special_polygamma(n: int, input):
    """The derivative of order `n` of `digamma`, ``(-1)**(n + 1) * n! * zeta(n + 1, input)``.

    Args:
        n: the order; 0 is `digamma` itself. RuntimeError if it is negative.
        input: any shape.

    Source: DLMF 5.15.1 and 25.11.12.

    >>> import corefw as torch
    >>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    return ops.polygamma(input, n)


@composite(inplace=True, out=True, public="corefw Tensor special.multigammaln")
def mvlgamma(input, p: int):
    """The logarithm of the multivariate gamma function of dimension `p`,
    ``p * (p - 1) / 4 * log(pi)`` plus the sum of ``lgamma(input - i / 2)`` for i from 0 to p - 1.

    Args:
        input: any shape; the function is defined where all elements are greater than ``(p - 1) / 2``.
        p: the dimension, at least 1; RuntimeError otherwise, and for bool tensors.

    Source: DLMF 35.3.4.

    >>> import corefw as torch
    >>> torch.mvlgamma(torch.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    if isinstance(input, Tensor) and input.dtype.category == BOOL:
        raise RuntimeError("mvlgamma: the input tensor may not be a boolean tensor; convert it first")
    result = p * (p - 1) / 4 * math.log(math.pi)
    for halves in range(1 - p, 1):
        result = ops.lgamma(input + halves / 2) + result
    return result


@primitive(dtype=real, shape=broadcast, out=True)
def special_zeta(input, other):
    """Hurwitz' zeta function, the sum of ``(other + k) ** -input`` for k from 0 on.

    It is inf for an `input` of 1, NaN below; where `other` is 0 or a negative integer it is inf, at other negative
    numbers it is NaN unless `input` is an integer.

    Args:
        input: the exponents.
        other: where the sum begins; it broadcasts with `input`.

    Source: DLMF 25.11.1, computed by 2.10.1.

    >>> import corefw as torch
    >>> torch.special.zeta(torch.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823])
    """


@special_zeta.gradient("input")
def special_zeta_vjp_input(grad):
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


@special_zeta.gradient("other")
def special_zeta_vjp_other(grad, input, other):
    return grad * (-input * ops.special_zeta(input + 1, other))


def _density(a, x):
    """The derivative of the lower function, that of the gamma distribution."""
    return (ops.xlogy(a - 1, x) - x - a.lgamma()).exp()


@primitive(dtype=promoted_real_floats, shape=broadcast, inplace=True, out=True, public="corefw Tensor special.gammainc")
def igamma(input, other):
    """The regularised lower incomplete gamma function, the integral of ``t ** (a - 1) * exp(-t) / gamma(a)`` from 0 to
    `other`, where a is `input`; NaN for negative arguments.

    The gradient with respect to `input` is not implemented.

    Args:
        input: a, any shape.
        other: the upper end of the integral; it broadcasts with `input`.

    Source: DLMF 8.2.4, computed by 8.11.4, 8.9.2 and 8.12.3.

    >>> import corefw as torch
    >>> torch.igamma(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 4.0]))
    tensor([0.6321, 0.5665])
    """


@igamma.gradient("input")
def igamma_vjp_input(grad):
    raise NotImplementedError("the derivative for 'igamma: input' is not implemented.")


@igamma.gradient("other")
def igamma_vjp_other(grad, input, other):
    return grad * _density(input, other)


@primitive(
    dtype=promoted_real_floats, shape=broadcast, inplace=True, out=True, public="corefw Tensor special.gammaincc"
)
def igammac(input, other):
    """The regularised upper incomplete gamma function, ``1 - igamma(input, other)``, accurate where that is small.

    The gradient with respect to `input` is not implemented.

    Args:
        input: a, any shape.
        other: the lower end of the integral; it broadcasts with `input`.

    Source: DLMF 8.2.4, computed by 8.7.3, 8.9.2 and 8.12.4.

    >>> import corefw as torch
    >>> torch.igammac(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 40.0]))
    tensor([3.6788e-01, 4.8889e-14])
    """


@igammac.gradient("input")
def igammac_vjp_input(grad):
    raise NotImplementedError("the derivative for 'igammac: input' is not implemented.")


@igammac.gradient("other")
def igammac_vjp_other(grad, input, other):
    return -grad * _density(input, other)
