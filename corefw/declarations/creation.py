"""Tensors made from nothing but arguments: constants, memory without content, and the conversion of element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw import dtypes
from corefw.declarations._shared import factories
from corefw.declarations._shared.batching import from_the_end, sized
from corefw.declarations._shared.factories import (
    Ints,
    checked_strides,
    factory,
    filled,
    given_size,
    into_out,
    new_strided,
    number_argument,
    out_key,
    require_grad,
    size_argument,
    target,
)
from corefw.devices import DispatchKey
from corefw.dispatch.declare import composite, primitive
from corefw.dispatch.numbers import Number
from corefw.dispatch.rules import same
from corefw.errors import ShapeError
from corefw.layouts import contiguous_format
from corefw.shapes import permuted_strides
from corefw.tensor import Tensor


# -- what backends compute --------------------------------------------------------------------------------------------
# `dispatch_key` says where the result lies and is the key of dispatch; kernels get its NumPy dtype as `dtype`.
@primitive(dtype=same, shape=given_size, public="")
def zeros_at(dispatch_key: DispatchKey, size: tuple, dtype: Any):
    """Zeros of shape `size`."""


zeros_at.batching(sized)


@primitive(dtype=same, shape=given_size, public="")
def full_at(dispatch_key: DispatchKey, size: tuple, value: Number, dtype: Any):
    """The number `value`, which `dtype` holds, everywhere in a tensor of shape `size`."""


full_at.batching(sized)


@primitive(dtype=same, shape=lambda input, dtype, copy: input, public="", grad_name="ToCopy")
def cast(dispatch_key: DispatchKey, input, dtype: Any, copy: bool):
    """The elements of `input` as `dtype`, converted as C converts; the memory itself if `copy` is false and it is of
    that dtype already."""


cast.batching(from_the_end)
cast.gradients(input=lambda grad: grad)
cast.linear("input")


# -- by size ----------------------------------------------------------------------------------------------------------
@composite()
@factory
def zeros(*size: Ints, out, dtype, layout, device, requires_grad, pin_memory, **named):
    """Zeros of shape `size`.

    Args:
        size: the shape, as one sequence or separate ints; also ``size=`` by name.
        out: a tensor to write to; its dtype is then the default.
        dtype: the element type; the default floating type if missing.
        layout: `torch.strided`.
        device: where the tensor lies; the default device if missing.
        requires_grad: whether gradients of the result are wanted.
        pin_memory: page-locked memory, from which GPUs copy faster.

    >>> import corefw as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if out is not None:
        shape, dispatch_key = size_argument("zeros", size, named), out_key("zeros", out, dtype, device)
        return into_out("zeros", out, zeros_at(dispatch_key, shape, dispatch_key.dtype.numpy))
    shape, dispatch_key = factories.size_and_target("zeros", size, named, dtype, device, layout, pin_memory)
    result = zeros_at(dispatch_key, shape, dispatch_key.dtype.numpy)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def ones(*size: Ints, out, dtype, layout, device, requires_grad, pin_memory, **named):
    """Ones of shape `size`. Arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.ones(2, dtype=torch.int64)
    tensor([1, 1])
    """
    if out is not None:
        shape, dispatch_key = size_argument("ones", size, named), out_key("ones", out, dtype, device)
        return into_out("ones", out, full_at(dispatch_key, shape, 1, dispatch_key.dtype.numpy))
    shape, dispatch_key = factories.size_and_target("ones", size, named, dtype, device, layout, pin_memory)
    result = full_at(dispatch_key, shape, 1, dispatch_key.dtype.numpy)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def empty(*size: Ints, out, dtype, layout, device, requires_grad, pin_memory, memory_format=contiguous_format, **named):
    """A tensor of shape `size` whose content is arbitrary. Arguments as for `zeros`.

    Args:
        memory_format: the order of the dimensions in memory.

    >>> import corefw as torch
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if out is not None:
        shape, dispatch_key = size_argument("empty", size, named), out_key("empty", out, dtype, device)
        return into_out("empty", out, factories.new_tensor(dispatch_key, shape))
    shape, dispatch_key = factories.size_and_target("empty", size, named, dtype, device, layout, pin_memory)
    if memory_format is contiguous_format or memory_format is None:
        result = factories.new_tensor(dispatch_key, shape)
    else:
        result = new_strided(dispatch_key, shape, permuted_strides(shape, memory_format.order(len(shape))))
    return require_grad(result) if requires_grad else result


@composite()
@factory
def full(size: Sequence[int], fill_value: Number, *, out, dtype, layout, device, requires_grad, pin_memory):
    """`fill_value` everywhere in a tensor of shape `size`.

    Args:
        size: the shape.
        fill_value: a number, whose type decides the dtype if that is missing.

    Other arguments as for `zeros`. Raises RuntimeError if the dtype does not hold the number.

    >>> import corefw as torch
    >>> torch.full((2,), 3.5)
    tensor([3.5000, 3.5000])
    """
    if not isinstance(size, (list, tuple)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = size_argument("full", (size,))
    value = number_argument("full", "fill_value", fill_value, 2)
    if out is not None:
        dispatch_key = out_key("full", out, dtype, device)
        return into_out("full", out, filled(dispatch_key, shape, value))
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Tensor) else dtypes.of_number(value)
    result = filled(target("full", dtype, device, layout, pin_memory), shape, value)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def scalar_tensor(s: Number, *, dtype, layout, device, requires_grad, pin_memory):
    """A 0-d tensor of the number `s`; the default floating type unless `dtype` says otherwise.

    >>> import corefw as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    value = number_argument("scalar_tensor", "s", s, 1)
    result = filled(target("scalar_tensor", dtype, device, layout, pin_memory), (), value)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype, layout, device, requires_grad, pin_memory):
    """A tensor with arbitrary content whose elements lie `stride` elements apart. Other arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, strides = size_argument("empty_strided", (size,)), tuple(stride)
    result = new_strided(
        target("empty_strided", dtype, device, layout, pin_memory), shape, checked_strides(shape, strides)
    )
    return require_grad(result) if requires_grad else result


@composite()
@factory
def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype, layout, device, requires_grad, pin_memory
):
    """A dense tensor with arbitrary content whose dimensions lie in memory in the order `physical_layout`, the slowest
    varying first. Other arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)
    """
    shape, order = size_argument("empty_permuted", (size,)), tuple(physical_layout)
    if len(shape) != len(order):
        raise ShapeError(
            "Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if any(not 0 <= d < len(shape) for d in order):
        raise ShapeError(
            f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {list(order)})"
        )
    if len(set(order)) != len(order):
        raise ShapeError(f"Duplicate dim not allowed: physical_layout {list(order)}")
    dispatch_key = target("empty_permuted", dtype, device, layout, pin_memory)
    result = new_strided(dispatch_key, shape, permuted_strides(shape, order))
    return require_grad(result) if requires_grad else result
