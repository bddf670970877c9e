"""Comparisons and what rests on them: extremes of two, clamping, logic, bits, tests for special values."""

from __future__ import annotations

import math

from corefw import dtypes
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import boolean, promote, promoted_ordered, promoted_real_floats, same
from corefw.errors import ShapeError
from corefw.shapes import broadcast, same_shape

_ordered = boolean.without("complex")
_bits = promote.without("floating", "complex")


# -- comparisons ------------------------------------------------------------------------------------------------------
@primitive(dtype=boolean, shape=broadcast, inplace=True, out=True)
def eq(input, other):
    """Where ``input == other``.

    >>> import corefw as torch
    >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([ True, False])
    """


@primitive(dtype=boolean, shape=broadcast, inplace=True, out=True, aliases=("not_equal",))
def ne(input, other):
    """Where ``input != other``.

    >>> import corefw as torch
    >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([False,  True])
    """


@primitive(dtype=_ordered, shape=broadcast, inplace=True, out=True, aliases=("less",))
def lt(input, other):
    """Where ``input < other``.

    >>> import corefw as torch
    >>> torch.lt(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """


@primitive(dtype=_ordered, shape=broadcast, inplace=True, out=True, aliases=("less_equal",))
def le(input, other):
    """Where ``input <= other``.

    >>> import corefw as torch
    >>> torch.le(torch.tensor([1, 2]), 2)
    tensor([True, True])
    """


@primitive(dtype=_ordered, shape=broadcast, inplace=True, out=True, aliases=("greater",))
def gt(input, other):
    """Where ``input > other``.

    >>> import corefw as torch
    >>> torch.gt(torch.tensor([1, 2]), 1)
    tensor([False,  True])
    """


@primitive(dtype=_ordered, shape=broadcast, inplace=True, out=True, aliases=("greater_equal",))
def ge(input, other):
    """Where ``input >= other``.

    >>> import corefw as torch
    >>> torch.ge(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """


@composite()
def equal(input, other) -> bool:
    """Whether two tensors have the same shape and elements, as a Python bool; NaN equals nothing.

    >>> import corefw as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    return tuple(input.array.shape) == tuple(other.array.shape) and bool((input == other).all().item())


@composite(dtype=boolean, shape=broadcast)
def isclose(input, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
    """Where two tensors are nearly equal: ``|input - other| <= atol + rtol * |other|``.

    Args:
        input, other: shapes that broadcast; infinities are close to themselves only.
        rtol, atol: the relative and the absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    >>> import corefw as torch
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"isclose: rtol and atol must be at least 0, but got rtol={rtol}, atol={atol}")
    close = input == other
    if equal_nan:
        close = close | (input.isnan() & other.isnan())
    if rtol == 0 and atol == 0:
        return close
    if input.dispatch_key.dtype.category <= dtypes.INTEGER:  # differences of integers overflow
        input, other = input.to(dtypes.float64), other.to(dtypes.float64)
    distance = (input - other).abs()
    return close | (distance.isfinite() & (distance <= (other * rtol).abs() + atol))


@composite()
def allclose(input, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two tensors are nearly equal everywhere, as a Python bool; arguments as for `isclose`.

    >>> import corefw as torch
    >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0 + 1e-9, 2.1]))
    False
    """
    return bool(ops.isclose(input, other, rtol, atol, equal_nan).all().item())


# -- extremes ---------------------------------------------------------------------------------------------------------
@primitive(dtype=promoted_ordered, shape=broadcast, out=True)
def maximum(input, other):
    """The greater of two elements; NaN where either is NaN.

    >>> import corefw as torch
    >>> torch.maximum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0]))
    tensor([3., 5.])
    """


maximum.gradients(
    input=lambda grad, input, other: ops.where(input == other, grad / 2, grad).masked_fill(input < other, 0),
    other=lambda grad, input, other: ops.where(input == other, grad / 2, grad).masked_fill(other < input, 0),
)


@primitive(dtype=promoted_ordered, shape=broadcast, out=True)
def minimum(input, other):
    """The smaller of two elements; NaN where either is NaN.

    >>> import corefw as torch
    >>> torch.minimum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0]))
    tensor([1., 4.])
    """


minimum.gradients(
    input=lambda grad, input, other: ops.where(input == other, grad / 2, grad).masked_fill(input > other, 0),
    other=lambda grad, input, other: ops.where(input == other, grad / 2, grad).masked_fill(other > input, 0),
)


@primitive(dtype=promoted_ordered, shape=broadcast, out=True)
def fmax(input, other):
    """The greater of two elements; the other one where one is NaN.

    >>> import corefw as torch
    >>> torch.fmax(torch.tensor([1.0, torch.nan]), torch.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """


@fmax.gradient("input", "other")
def fmax_vjp(grad, input, other):
    first = (input >= other).logical_or(other.isnan())
    return grad.masked_fill(first.logical_not(), 0), grad.masked_fill(first, 0)


@primitive(dtype=promoted_ordered, shape=broadcast, out=True)
def fmin(input, other):
    """The smaller of two elements; the other one where one is NaN.

    >>> import corefw as torch
    >>> torch.fmin(torch.tensor([1.0, torch.nan]), torch.tensor([3.0, 4.0]))
    tensor([1., 4.])
    """


@fmin.gradient("input", "other")
def fmin_vjp(grad, input, other):
    first = (input <= other).logical_or(other.isnan())
    return grad.masked_fill(first.logical_not(), 0), grad.masked_fill(first, 0)


def _clamped_shape(input, min, max):
    """The shapes of the bounds that are given broadcast with the input's."""
    if min is None and max is None:
        raise ShapeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return broadcast(input, *(bound for bound in (min, max) if bound is not None))


@composite(
    dtype=promoted_ordered.bounded(),
    shape=_clamped_shape,
    inplace=True,
    out=True,
    aliases=("clip",),
    grad_name=lambda min, max: "Clamp" if min or max else "Clamp1",
)
def clamp(input, min=None, max=None):
    """Values below `min` become `min`, those above `max` become `max`; `max` wins where the bounds are crossed.

    Args:
        input: any shape.
        min, max: bounds, numbers or tensors that broadcast; at least one is given.

    >>> import corefw as torch
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    bounded = input if min is None else ops.maximum(input, min)
    return bounded if max is None else ops.minimum(bounded, max)


@clamp.gradient("input")
def clamp_vjp_input(grad, input, min, max):
    if min is None:
        inside = input <= max
    elif max is None:
        inside = input >= min
    else:
        inside = (input >= min).logical_and(input <= max)
    return ops.where(inside, grad, 0)


@clamp.gradient("min")
def clamp_vjp_min(grad, input, min, max):
    below = input < min if max is None else (input < min).logical_and(min < max)
    return ops.where(below, grad, 0)


@clamp.gradient("max")
def clamp_vjp_max(grad, input, min, max):
    above = input > max if min is None else (input > max).logical_or(max < min)
    return ops.where(above, grad, 0)


@primitive(
    dtype=promoted_ordered.bounded(),
    shape=broadcast,
    inplace=True,
    out=True,
    grad_name=lambda min: "ClampMin1" if min else "ClampMin",
)
def clamp_min(input, min):
    """Values below `min` become `min`, a number or tensor.

    >>> import corefw as torch
    >>> torch.clamp_min(torch.tensor([-2.0, 0.5]), 0)
    tensor([0.0000, 0.5000])
    """


clamp_min.gradients(
    input=lambda grad, input, min: ops.where(input >= min, grad, 0),
    min=lambda grad, input, min: ops.where(input < min, grad, 0),
)


@primitive(
    dtype=promoted_ordered.bounded(),
    shape=broadcast,
    inplace=True,
    out=True,
    grad_name=lambda max: "ClampMax1" if max else "ClampMax",
)
def clamp_max(input, max):
    """Values above `max` become `max`, a number or tensor.

    >>> import corefw as torch
    >>> torch.clamp_max(torch.tensor([0.5, 3.0]), 1)
    tensor([0.5000, 1.0000])
    """


clamp_max.gradients(
    input=lambda grad, input, max: ops.where(input <= max, grad, 0),
    max=lambda grad, input, max: ops.where(input > max, grad, 0),
)


@primitive(dtype=same, shape=same_shape, inplace=True, out=True)
def nan_to_num(input, nan: float | None = None, posinf: float | None = None, neginf: float | None = None):
    """NaN and the infinities replaced by numbers.

    Args:
        input: any shape.
        nan: for NaN; None means 0.
        posinf, neginf: for the infinities; None means the greatest and the lowest finite number of the dtype.

    >>> import corefw as torch
    >>> torch.nan_to_num(torch.tensor([torch.nan, torch.inf, 1.0]), posinf=9.0)
    tensor([0., 9., 1.])
    """


@nan_to_num.gradient("input")
def nan_to_num_vjp(grad, input):
    if input.dispatch_key.dtype.is_complex:  # each part counts for itself
        grad, input = ops.view_as_real(grad), ops.view_as_real(input)
        return ops.view_as_complex(grad.masked_fill(input.isfinite().logical_not(), 0))
    return grad.masked_fill(input.isfinite().logical_not(), 0)


@primitive(dtype=promoted_ordered, shape=broadcast, inplace=True, out=True)
def heaviside(input, values):
    """The step function: 0 for negative elements, 1 for positive ones, `values` at 0.

    >>> import corefw as torch
    >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """


@primitive(dtype=promoted_real_floats.rounding(), shape=broadcast, inplace=True, out=True)
def nextafter(input, other):
    """The next floating number after `input` in the direction of `other`.

    >>> import corefw as torch
    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """


nextafter.gradients(
    input=lambda grad, input, other: grad.masked_fill(input == other, 0),
    other=lambda grad: ops.zeros_like(grad),
)


# -- logic ------------------------------------------------------------------------------------------------------------
@primitive(dtype=boolean, shape=broadcast, inplace=True, out=True)
def logical_and(input, other):
    """Where both elements are nonzero.

    >>> import corefw as torch
    >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 4]))
    tensor([False, False,  True])
    """


@primitive(dtype=boolean, shape=broadcast, inplace=True, out=True)
def logical_or(input, other):
    """Where at least one element is nonzero.

    >>> import corefw as torch
    >>> torch.logical_or(torch.tensor([0, 1, 0]), torch.tensor([1, 0, 0]))
    tensor([ True,  True, False])
    """


@primitive(dtype=boolean, shape=broadcast, inplace=True, out=True)
def logical_xor(input, other):
    """Where exactly one element is nonzero.

    >>> import corefw as torch
    >>> torch.logical_xor(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 4]))
    tensor([ True,  True, False])
    """


@primitive(dtype=boolean, shape=same_shape, inplace=True, out=True)
def logical_not(input):
    """Where elements are zero.

    >>> import corefw as torch
    >>> torch.logical_not(torch.tensor([0.0, 1.5]))
    tensor([ True, False])
    """


# -- bits -------------------------------------------------------------------------------------------------------------
@primitive(dtype=_bits, shape=broadcast, inplace=True, out=True)
def bitwise_and(input, other):
    """The bits set in both integers; for bool the logical "and".

    >>> import corefw as torch
    >>> torch.bitwise_and(torch.tensor([12, 10]), 6)
    tensor([4, 2])
    """


@primitive(dtype=_bits, shape=broadcast, inplace=True, out=True)
def bitwise_or(input, other):
    """The bits set in either integer; for bool the logical "or".

    >>> import corefw as torch
    >>> torch.bitwise_or(torch.tensor([12, 10]), 6)
    tensor([14, 14])
    """


@primitive(dtype=_bits, shape=broadcast, inplace=True, out=True)
def bitwise_xor(input, other):
    """The bits set in exactly one integer; for bool the logical "exclusive or".

    >>> import corefw as torch
    >>> torch.bitwise_xor(torch.tensor([12, 10]), 6)
    tensor([10, 12])
    """


@primitive(dtype=_bits, shape=same_shape, inplace=True, out=True)
def bitwise_not(input):
    """All bits inverted; for bool the logical "not".

    >>> import corefw as torch
    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])
    """


@primitive(dtype=_bits.without("bool"), shape=broadcast, inplace=True, out=True)
def bitwise_left_shift(input, other):
    """The bits of `input` moved `other` places to the left; 0 if `other` is negative or at least the number of bits.

    >>> import corefw as torch
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """


@primitive(dtype=_bits.without("bool"), shape=broadcast, inplace=True, out=True)
def bitwise_right_shift(input, other):
    """The bits of `input` moved `other` places to the right, the sign filling in from the left.

    >>> import corefw as torch
    >>> torch.bitwise_right_shift(torch.tensor([4, -8]), 1)
    tensor([ 2, -4])
    """


# -- special values ---------------------------------------------------------------------------------------------------
@primitive(dtype=boolean, shape=same_shape)
def isnan(input):
    """Where elements are NaN.

    >>> import corefw as torch
    >>> torch.isnan(torch.tensor([1.0, torch.nan]))
    tensor([False,  True])
    """


@primitive(dtype=boolean, shape=same_shape)
def isinf(input):
    """Where elements are infinite.

    >>> import corefw as torch
    >>> torch.isinf(torch.tensor([1.0, -torch.inf]))
    tensor([False,  True])
    """


@primitive(dtype=boolean, shape=same_shape)
def isfinite(input):
    """Where elements are neither infinite nor NaN.

    >>> import corefw as torch
    >>> torch.isfinite(torch.tensor([1.0, -torch.inf, torch.nan]))
    tensor([ True, False, False])
    """


@primitive(dtype=_ordered, shape=same_shape, out=True)
def isposinf(input):
    """Where elements are positive infinity.

    >>> import corefw as torch
    >>> torch.isposinf(torch.tensor([torch.inf, -torch.inf]))
    tensor([ True, False])
    """


@primitive(dtype=_ordered, shape=same_shape, out=True)
def isneginf(input):
    """Where elements are negative infinity.

    >>> import corefw as torch
    >>> torch.isneginf(torch.tensor([torch.inf, -torch.inf]))
    tensor([False,  True])
    """


@primitive(dtype=_ordered, shape=same_shape, out=True)
def signbit(input):
    """Where elements are negative, -0.0 included.

    >>> import corefw as torch
    >>> torch.signbit(torch.tensor([1.0, -0.0]))
    tensor([False,  True])
    """


# -- facts of a tensor ------------------------------------------------------------------------------------------------
@composite(public="corefw")
def is_floating_point(input) -> bool:
    """Whether the elements are floating numbers.

    >>> import corefw as torch
    >>> torch.is_floating_point(torch.tensor([1.0]))
    True
    """
    return input.dispatch_key.dtype.is_floating_point


@composite(public="corefw")
def is_signed(input) -> bool:
    """Whether the dtype has negative numbers.

    >>> import corefw as torch
    >>> torch.is_signed(torch.tensor([1.0])), torch.is_signed(torch.tensor([True]))
    (True, False)
    """
    return input.dispatch_key.dtype.is_signed


@composite()
def is_nonzero(input) -> bool:
    """Whether the only element is not zero; RuntimeError unless there is exactly one.

    >>> import corefw as torch
    >>> torch.is_nonzero(torch.tensor([0.0]))
    False
    """
    count = math.prod(input.array.shape)
    if count != 1:
        found = "no values" if count == 0 else "more than one value"
        raise ShapeError(f"Boolean value of Tensor with {found} is ambiguous")
    return bool(input.item())
