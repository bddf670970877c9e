"""Bessel functions of orders 0 and 1, and the Airy function; those of PyTorch that have no gradient there have none."""

from __future__ import annotations

from corefw.declarations._shared.special import real
from corefw.dispatch.declare import composite, ops, primitive
from corefw.shapes import same_shape


# -- modified, of the first kind --------------------------------------------------------------------------------------
@primitive(dtype=real, shape=same_shape, inplace=True, out=True, public="corefw Tensor special")
def i0(input):
    """The modified Bessel function of the first kind and order 0; NaN at infinities.

    Source: DLMF 10.25.2.

    >>> import corefw as torch
    >>> torch.i0(torch.tensor([0.0, 1.0, -5.0]))
    tensor([ 1.0000,  1.2661, 27.2399])
    """


i0.gradients(input=lambda grad, input: grad * ops.special_i1(input))


@primitive(dtype=real, shape=same_shape, out=True)
def special_i0e(input):
    """`i0` scaled by ``exp(-abs(input))``, which does not overflow.

    >>> import corefw as torch
    >>> torch.special.i0e(torch.tensor([0.0, 1.0, 1000.0]))
    tensor([1.0000, 0.4658, 0.0126])
    """


special_i0e.gradients(input=lambda grad, input, out: grad * (ops.special_i1e(input) - input.sgn() * out))


@primitive(dtype=real, shape=same_shape, out=True)
def special_i1(input):
    """The modified Bessel function of the first kind and order 1; NaN at infinities.

    Source: DLMF 10.25.2.

    >>> import corefw as torch
    >>> torch.special.i1(torch.tensor([0.0, 1.0, -5.0]))
    tensor([  0.0000,   0.5652, -24.3356])
    """


def _slope(scaled, input, out):
    """``scaled - out / input``; a half where that is not known, at 0 and, as PyTorch's, at NaN."""
    unknown = (input.abs() > 0).logical_not()
    return (scaled - out / input.masked_fill(unknown, 1)).masked_fill(unknown, 0.5)


special_i1.gradients(input=lambda grad, input, out: grad * _slope(input.i0(), input, out))


@primitive(dtype=real, shape=same_shape, out=True)
def special_i1e(input):
    """`special.i1` scaled by ``exp(-abs(input))``, which does not overflow.

    >>> import corefw as torch
    >>> torch.special.i1e(torch.tensor([0.0, 1.0, 1000.0]))
    tensor([0.0000, 0.2079, 0.0126])
    """


special_i1e.gradients(
    input=lambda grad, input, out: grad * _slope(ops.special_i0e(input) - input.sgn() * out, input, out),
)


@composite(dtype=real, shape=same_shape, out=True)
def special_modified_bessel_i0(input):
    """The modified Bessel function of the first kind and order 0, as `special.i0`.

    >>> import corefw as torch
    >>> torch.special.modified_bessel_i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return ops.i0(input)


@composite(dtype=real, shape=same_shape, out=True)
def special_modified_bessel_i1(input):
    """The modified Bessel function of the first kind and order 1, as `special.i1`.

    >>> import corefw as torch
    >>> torch.special.modified_bessel_i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    return ops.special_i1(input)


# -- modified, of the second kind -------------------------------------------------------------------------------------
@primitive(dtype=real, shape=same_shape, out=True)
def special_modified_bessel_k0(input):
    """The modified Bessel function of the second kind and order 0; inf at 0, NaN below.

    Source: DLMF 10.27.4.

    >>> import corefw as torch
    >>> torch.special.modified_bessel_k0(torch.tensor([0.0, 1.0, 5.0]))
    tensor([   inf, 0.4210, 0.0037])
    """


@primitive(dtype=real, shape=same_shape, out=True)
def special_modified_bessel_k1(input):
    """The modified Bessel function of the second kind and order 1; inf at 0, NaN below.

    Source: DLMF 10.27.4.

    >>> import corefw as torch
    >>> torch.special.modified_bessel_k1(torch.tensor([0.0, 1.0, 5.0]))
    tensor([   inf, 0.6019, 0.0040])
    """


@primitive(dtype=real, shape=same_shape, out=True)
def special_scaled_modified_bessel_k0(input):
    """`special.modified_bessel_k0` scaled by ``exp(input)``, which does not underflow.

    >>> import corefw as torch
    >>> torch.special.scaled_modified_bessel_k0(torch.tensor([0.0, 1.0, 1000.0]))
    tensor([   inf, 1.1445, 0.0396])
    """


@primitive(dtype=real, shape=same_shape, out=True)
def special_scaled_modified_bessel_k1(input):
    """`special.modified_bessel_k1` scaled by ``exp(input)``, which does not underflow.

    >>> import corefw as torch
    >>> torch.special.scaled_modified_bessel_k1(torch.tensor([0.0, 1.0, 1000.0]))
    tensor([   inf, 1.6362, 0.0396])
    """


# -- of the first and second kind -------------------------------------------------------------------------------------
@primitive(dtype=real, shape=same_shape, out=True)
def special_bessel_j0(input):
    """The Bessel function of the first kind and order 0; NaN at infinities.

    Source: DLMF 10.2.2.

    >>> import corefw as torch
    >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0, -5.0]))
    tensor([ 1.0000,  0.7652, -0.1776])
    """


@primitive(dtype=real, shape=same_shape, out=True)
def special_bessel_j1(input):
    """The Bessel function of the first kind and order 1; NaN at infinities.

    Source: DLMF 10.2.2.

    >>> import corefw as torch
    >>> torch.special.bessel_j1(torch.tensor([0.0, 1.0, -5.0]))
    tensor([0.0000, 0.4401, 0.3276])
    """


@primitive(dtype=real, shape=same_shape, out=True)
def special_bessel_y0(input):
    """The Bessel function of the second kind and order 0; -inf at 0, NaN below and at inf.

    Source: DLMF 10.2.3.

    >>> import corefw as torch
    >>> torch.special.bessel_y0(torch.tensor([0.0, 1.0, 5.0]))
    tensor([   -inf,  0.0883, -0.3085])
    """


@primitive(dtype=real, shape=same_shape, out=True)
def special_bessel_y1(input):
    """The Bessel function of the second kind and order 1; -inf at 0, NaN below and at inf.

    Source: DLMF 10.2.3.

    >>> import corefw as torch
    >>> torch.special.bessel_y1(torch.tensor([0.0, 1.0, 5.0]))
    tensor([   -inf, -0.7812,  0.1479])
    """


@composite(dtype=real, shape=same_shape, out=True)
def special_spherical_bessel_j0(input):
    """The spherical Bessel function of the first kind and order 0, ``sin(input) / input``; 1 at 0, 0 at infinities.

    Source: DLMF 10.49.3.

    >>> import corefw as torch
    >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0, -2.0]))
    tensor([1.0000, 0.8415, 0.4546])
    """
    at_zero, infinite = ops.eq(input, 0), ops.isinf(input)
    angle = (input * 1.0).masked_fill(at_zero.logical_or(infinite), 1)
    return (angle.sin() / angle).masked_fill(at_zero, 1).masked_fill(infinite, 0)


@primitive(dtype=real, shape=same_shape, out=True)
def special_airy_ai(input):
    """The Airy function Ai.

    Source: DLMF 9.2.2, computed by 9.4.1, 9.7.5 and 9.7.9.

    >>> import corefw as torch
    >>> torch.special.airy_ai(torch.tensor([-2.0, 0.0, 1.0]))
    tensor([0.2274, 0.3550, 0.1353])
    """
