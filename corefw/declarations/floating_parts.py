"""The parts of floating-point numbers."""

from __future__ import annotations

import math

from corefw import dtypes
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import exponents, real_floats, same
from corefw.shapes import values_and_indices

_BITS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}  # integers of as many bytes


@composite(
    dtype=real_floats.giving(same, exponents), shape=values_and_indices, outputs=("mantissa", "exponent"), out=True
)
def frexp(input):
    """The mantissa, of magnitude from 0.5 to 1, and the exponent of each number: ``input = mantissa * 2 ** exponent``.

    Args:
        input: any shape, floating.

    Returns:
        A named tuple ``(mantissa, exponent)``, the exponent in int32. Of 0, infinities and NaN the mantissa is the
        number itself, the exponent 0.

    >>> import corefw as torch
    >>> torch.frexp(torch.tensor([1.0, -12.0]))
    torch.return_types.frexp(
    mantissa=tensor([ 0.5000, -0.7500]),
    exponent=tensor([1, 4], dtype=torch.int32))
    """
    d, limits = input.dtype, dtypes.finfo(input.dtype)
    # A number's bits: the sign, the exponent, and as many digits behind the binary point.
    digits = 1 - math.frexp(limits.eps)[1]
    half = 1 - math.frexp(limits.smallest_normal)[1]  # how the exponent of 0.5 is stored
    subnormal = input.abs() < limits.smallest_normal
    bits = ops.where(subnormal, input * 2**digits, input).view(_BITS[d.itemsize])
    stored = (bits >> digits) & (2 * half + 3)
    mantissa = (bits - ((stored - half) << digits)).view(d)
    exponent = stored - half - ops.where(subnormal, digits, 0)
    plain = (input == 0) | ~input.isfinite()
    return ops.where(plain, input, mantissa), exponent.masked_fill(plain, 0).to(dtypes.int32)


@frexp.gradient("input")
def frexp_vjp(grad_mantissa, exponent):
    return None if grad_mantissa is None else grad_mantissa.ldexp(-exponent)


frexp.tangent(lambda tangent_input, exponent: (tangent_input.ldexp(-exponent), None))
