"""Tensors made in the image of another: in its shape, dtype and device."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.declarations._shared import factories
from corefw.declarations._shared.factories import (
    Ints,
    checked_strides,
    factory,
    filled,
    new_strided,
    number_argument,
    order_like,
    require_grad,
    size_argument,
    target_like,
)
from corefw.declarations._shared.families import family
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.numbers import Number, fitting_number


# -- in shape ---------------------------------------------------------------------------------------------------------
def _new_like(
    name: str, like, dtype, layout, device, pin_memory, memory_format, fill: Number | None, requires_grad: bool
):
    dispatch_key = target_like(name, like, dtype, device, layout, pin_memory)
    shape = tuple(like.array.shape)
    strides = order_like(like, memory_format)
    if strides is not None:
        result = new_strided(dispatch_key, shape, strides)
        if fill is not None:
            number = dispatch_key.runtime.constant(
                fitting_number(fill, dispatch_key.dtype), dispatch_key.dtype, dispatch_key.device.index
            )
            dispatch_key.runtime.copy(result.array, number)
    elif fill is None:
        result = factories.new_tensor(dispatch_key, shape)
    elif fill == 0:
        result = ops.zeros_at(dispatch_key, shape, dispatch_key.dtype.numpy)
    else:
        number = fill if fill == 1 else fitting_number(fill, dispatch_key.dtype)
        result = ops.full_at(dispatch_key, shape, number, dispatch_key.dtype.numpy)
    return require_grad(result) if requires_grad else result


@family(public="corefw")
def _filled_like(name: str, fill: Number | None):
    """Functions whose result is full of `fill`; None for arbitrary content."""

    @factory
    def function(input, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
        return _new_like(name, input, dtype, layout, device, pin_memory, memory_format, fill, requires_grad)

    return function


@_filled_like(0)
def zeros_like():
    """Zeros in the shape, dtype, device and memory order of `input`.

    Args:
        input: any tensor.
        dtype, device: instead of those of `input`.
        memory_format: the order of the dimensions in memory, instead of that of `input`.

    >>> import corefw as torch
    >>> torch.zeros_like(torch.tensor([1, 2]))
    tensor([0, 0])
    """


@_filled_like(1)
def ones_like():
    """Ones in the shape, dtype, device and memory order of `input`. Arguments as for `zeros_like`.

    >>> import corefw as torch
    >>> torch.ones_like(torch.tensor([1, 2]))
    tensor([1, 1])
    """


@_filled_like(None)
def empty_like():
    """A tensor with arbitrary content in the shape, dtype, device and memory order of `input`. Arguments as for
    `zeros_like`.

    >>> import corefw as torch
    >>> torch.empty_like(torch.tensor([1, 2])).dtype
    torch.int64
    """


@composite(public="corefw")
@factory
def full_like(input, fill_value: Number, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
    """`fill_value` in the shape, dtype, device and memory order of `input`. Arguments as for `zeros_like`.

    >>> import corefw as torch
    >>> torch.full_like(torch.tensor([1, 2]), 7)
    tensor([7, 7])
    """
    value = number_argument("full_like", "fill_value", fill_value, 2)
    return _new_like("full_like", input, dtype, layout, device, pin_memory, memory_format, value, requires_grad)


# -- methods that make tensors of the same dtype and device -----------------------------------------------------------
@family(public="Tensor")
def _filled_new(name: str, fill: Number | None):
    """Methods whose result is full of `fill`; None for arbitrary content."""

    @factory
    def method(input, *size: Ints, dtype, layout, device, requires_grad, pin_memory, **named):
        dispatch_key = target_like(name, input, dtype, device, layout, pin_memory)
        shape = size_argument(name, size, named)
        if fill is None:
            result = factories.new_tensor(dispatch_key, shape)
        elif fill == 0:
            result = ops.zeros_at(dispatch_key, shape, dispatch_key.dtype.numpy)
        else:
            result = ops.full_at(dispatch_key, shape, fill, dispatch_key.dtype.numpy)
        return require_grad(result) if requires_grad else result

    return method


@_filled_new(0)
def new_zeros():
    """Zeros of shape `size`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """


@_filled_new(1)
def new_ones():
    """Ones of shape `size`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_ones(2)
    tensor([1, 1])
    """


@_filled_new(None)
def new_empty():
    """A tensor of shape `size` with arbitrary content, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_empty(2).shape
    torch.Size([2])
    """


@composite(public="Tensor")
def new_empty_strided(
    input, size: Sequence[int], stride: Sequence[int], dtype=None, layout=None, device=None,
    requires_grad: bool = False, pin_memory: bool = False,
):  # fmt: skip
    """As `empty_strided`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    dispatch_key = target_like("new_empty_strided", input, dtype, device, layout, pin_memory)
    shape = size_argument("new_empty_strided", (size,))
    result = new_strided(dispatch_key, shape, checked_strides(shape, tuple(stride)))
    return require_grad(result) if requires_grad else result


@composite(public="Tensor")
@factory
def new_full(input, size: Sequence[int], fill_value: Number, *, dtype, layout, device, requires_grad, pin_memory):
    """`fill_value` in a tensor of shape `size`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_full((2,), 3)
    tensor([3, 3])
    """
    value = number_argument("new_full", "fill_value", fill_value, 2)
    dispatch_key = target_like("new_full", input, dtype, device, layout, pin_memory)
    result = filled(dispatch_key, size_argument("new_full", (size,)), value)
    return require_grad(result) if requires_grad else result
