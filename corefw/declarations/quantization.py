"""What layers with weights of int8 compute."""

from __future__ import annotations

from math import prod

from corefw import dtypes
from corefw.dispatch.declare import Index, Statistic, composite, ops
from corefw.dispatch.rules import real_floats
from corefw.errors import DtypeError, ShapeError

LEVELS = 255  # steps between the least and the greatest of what eight bits tell apart
MIDDLE = 128  # the step that an int8 calls 0


def _linear_shape(input, weight, scale, sums, bias=None):
    if len(weight) != 2 or not input or input[-1] != weight[1]:
        raise ShapeError(
            "quantized_linear: expected an input of shape (..., in) and a weight of shape (out, in), got "
            f"{list(input)} and {list(weight)}"
        )
    for name, shape, allowed in (("scale", scale, ((), weight[:1])), ("sums", sums, (weight[:1],))):
        if shape not in allowed:
            raise ShapeError(f"quantized_linear: expected {name} of shape {list(weight[:1])}, got {list(shape)}")
    if bias is not None and bias != weight[:1]:
        raise ShapeError(f"quantized_linear: expected a bias of shape {list(weight[:1])}, got {list(bias)}")
    return (*input[:-1], weight[0])


@composite(dtype=real_floats, shape=_linear_shape, public="")
def quantized_linear(input, weight: Index, scale: Index, sums: Index, bias: Statistic = None):
    """The linear map by `weight`, of int8, times `scale`: the input is rounded to eight bits for the product.

    The 256 steps reach from the input's least number, or zero, to its greatest one, or zero, so that zero is a step.
    Sums are exact, in int32. It has no gradient.

    Args:
        input: float32 or a half type, shape (..., in).
        weight: int8, shape (out, in).
        scale: float32, one number or shape (out,).
        sums: those of the rows of `weight`, int32, shape (out,).
        bias: float32, shape (out,), or None.

    Returns:
        of the input's dtype, shape (..., out); NaN where the input has a number that is not finite.
    """
    dtypes_given = [tensor.dtype for tensor in (input, weight, scale, sums)]
    if dtypes_given != [dtypes.float32, dtypes.int8, dtypes.float32, dtypes.int32]:
        raise DtypeError(f"quantized_linear: expected float32, int8, float32 and int32, got {dtypes_given}")
    shape = _linear_shape(*(None if x is None else x.shape for x in (input, weight, scale, sums, bias)))
    scale, bias = scale.detach(), None if bias is None else bias.detach()
    rows = input.detach().reshape(prod(input.shape[:-1]), weight.shape[1])
    if rows.numel() == 0:
        out = ops.zeros((rows.shape[0], weight.shape[0]), dtype=dtypes.float32, device=input.device)
        return (out if bias is None else out + bias).reshape(shape)
    low, span = rows.amin().clamp(max=0), rows.amax().clamp(min=0) - rows.amin().clamp(max=0)
    known = span.isfinite()
    step = span / LEVELS
    step = ops.where(known & (step > 0), step, 1.0)
    zero = ops.where(known, (-low / step).round(), 0.0)
    steps = ((rows / step).round().nan_to_num() + zero).clamp(0, LEVELS) - MIDDLE
    products = ops._int_mm(steps.to(dtypes.int8), weight.t()) - (zero - MIDDLE).to(dtypes.int32) * sums
    out = products.to(dtypes.float32) * (step * scale)
    out = ops.where(known, out if bias is None else out + bias, float("nan"))
    return out.reshape(shape)
