"""Ops on a tensor's memory: its order, copies of it, other readings of it, and its separation from a history."""

from __future__ import annotations

from math import prod
from typing import overload

from corefw import dtypes, layouts
from corefw.declarations._shared.batching import full
from corefw.dispatch.declare import Sizes, composite, ops, primitive
from corefw.dispatch.declare import view as view_op
from corefw.dispatch.rules import same
from corefw.errors import GradientError, ShapeError
from corefw.graph.inplace import become
from corefw.graph.views import forget
from corefw.layouts import contiguous_format, preserve_format
from corefw.shapes import as_shape, canonical_dim, contiguous_strides
from corefw.tensor import Tensor, new


# -- memory order -----------------------------------------------------------------------------------------------------
@overload
def stride(input, dim: None = None) -> tuple[int, ...]: ...
@overload
def stride(input, dim: int) -> int: ...
def stride(input, dim: int | None = None):
    """How many elements lie between neighbours along each dimension, or along `dim`.

    >>> import corefw as torch
    >>> torch.zeros(2, 3).stride(), torch.zeros(2, 3).stride(0)
    ((3, 1), 3)
    """
    array = input.array
    itemsize = array.dtype.itemsize
    strides = tuple(s // itemsize for s in array.strides)
    if 0 in array.shape and not any(strides):
        strides = contiguous_strides(array.shape)
    return strides if dim is None else strides[canonical_dim(dim, len(strides))]


def is_contiguous(input, memory_format: layouts.memory_format = contiguous_format) -> bool:
    """Whether the elements lie in memory without gaps in the order of the dimensions (or in that of `memory_format`).

    >>> import corefw as torch
    >>> torch.zeros(2, 3).is_contiguous(), torch.zeros(2, 3).t().is_contiguous()
    (True, False)
    """
    if memory_format is contiguous_format:
        return input.dispatch_key.runtime.is_contiguous(input.array)
    shape, strides, wanted = input.array.shape, stride(input), 1
    if memory_format is preserve_format or input.array.ndim != len(shape):
        raise ShapeError(f"is_contiguous: unsupported memory format option {memory_format!r}")
    try:
        order = memory_format.order(len(shape))
    except RuntimeError:
        return False
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != wanted:
                return False
            wanted *= shape[d]
    return True


@primitive(dtype=same, shape=lambda input: input, rewrites=("memory_format",))
def clone(input, *, memory_format: layouts.memory_format | None = preserve_format):
    """A copy of `input`.

    Args:
        input: any shape.
        memory_format: the order of the copy's elements in memory; `preserve_format`, or None, keeps that of `input`.

    >>> import corefw as torch
    >>> torch.clone(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    return clone_in_order(input, memory_format.order(input.array.ndim)) if memory_format else input.clone()


@clone.batching
def clone_batching(call, examples, input):
    return call(full(input, examples).contiguous() if input.shape[0] != examples else input)


clone.gradients(input=lambda grad: grad)


@primitive(dtype=same, shape=lambda input, order: input, public="", grad_name="Clone")
def clone_in_order(input, order: tuple):
    """A dense copy whose dimensions lie in memory in the given order, the slowest varying first."""


@clone_in_order.batching
def clone_in_order_batching(call, examples, input, order):
    return call(full(input, examples), (0, *(d + 1 for d in order)))


clone_in_order.gradients(input=lambda grad: grad)


@composite(public="Tensor")
def contiguous(input, memory_format: layouts.memory_format = contiguous_format):
    """`input` itself if its elements lie in memory in order, else a copy that does.

    >>> import corefw as torch
    >>> torch.zeros(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if memory_format is contiguous_format and input.dispatch_key.runtime.is_contiguous(input.array):
        return input
    if memory_format is preserve_format:
        raise ShapeError("preserve memory format is unsupported by the contiguous operator")
    if memory_format is not contiguous_format and is_contiguous(input, memory_format):
        return input
    return clone_in_order(input, memory_format.order(input.array.ndim))


# -- strided views ----------------------------------------------------------------------------------------------------
@composite()
def as_strided(input, size: Sizes, stride: Sizes, storage_offset: int | None = None):
    """A view of the memory of `input`: element (i, j) lies ``storage_offset + i * stride[0] + j * stride[1]`` elements
    after its start, and so on for other numbers of dimensions.

    Args:
        input: any shape.
        size, stride: sizes and strides (in elements) of the result.
        storage_offset: the position of its first element; None for that of `input`.

    Raises:
        ShapeError: an element would lie outside the memory.

    >>> import corefw as torch
    >>> torch.as_strided(torch.arange(6), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    array = input.array
    own = input.dispatch_key.runtime.storage_offset(array)
    relative = 0 if storage_offset is None else storage_offset - own
    strides = tuple(s // array.dtype.itemsize for s in array.strides)
    size, stride = as_shape(size), as_shape(stride)
    try:
        return strided_view(input, size, stride, relative, strides)
    except ShapeError:
        strided_view.op.body((array.shape, strides, own), size, stride, relative, strides)  # raises if they do not fit
        raise ShapeError(
            f"as_strided: size {list(size)}, stride {list(stride)} and offset {own + relative} are out of bounds for "
            f"the storage of a tensor of shape {list(array.shape)}"
        ) from None


@view_op(dtype=same, public="", grad_name="AsStrided")
def strided_view(input, size: tuple, stride: tuple, relative_offset: int, input_stride: tuple):
    """As `as_strided`, with the offset counted from the first element of `input`, whose strides are `input_stride`."""
    if len(size) != len(stride):
        raise ShapeError(f"mismatch in length of strides and shape: size {list(size)}, stride {list(stride)}")
    if min(stride, default=0) < 0:
        raise ShapeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if min(size, default=0) < 0:
        raise ShapeError(f"as_strided: sizes must be non-negative, got {list(size)}")
    offset = input[2] + relative_offset
    if offset < 0:
        raise ShapeError(f"Tensor: invalid storage offset {offset}")
    return size, stride, offset


@strided_view.gradient("input")
def strided_view_vjp(grad, input_shape, size, stride, relative_offset, input_stride):
    return strided_view_backward(grad, input_shape, size, stride, relative_offset, input_stride)


@composite(public="")
def strided_view_backward(grad, shape: tuple, size: tuple, stride: tuple, relative_offset: int, input_stride: tuple):
    """The gradient of `strided_view`: each element's gradients are summed where it lies in memory and, if several
    elements of the input lie there, divided by their number."""
    lowest = min(relative_offset, 0)

    def positions(sizes, strides, first):
        found = ops.full((1,) * len(sizes), first, dtype=dtypes.int64, device=grad.device)
        for i, (n, step) in enumerate(zip(sizes, strides, strict=True)):
            along = ops.arange(n, device=grad.device) * step
            found = found + along.reshape((n,) + (1,) * (len(sizes) - 1 - i))
        return found.expand(sizes).reshape(-1)

    def last(sizes, strides, first):
        return first + sum((n - 1) * max(step, 0) for n, step in zip(sizes, strides, strict=True))

    if not prod(shape) or not prod(size):
        return grad.new_zeros(shape)
    read = positions(size, stride, relative_offset - lowest)
    owned = positions(shape, input_stride, -lowest)
    length = 1 + max(last(size, stride, relative_offset - lowest), last(shape, input_stride, -lowest))
    memory = grad.new_zeros(length).index_add(0, read, grad.reshape(-1))
    if any(n > 1 and step == 0 for n, step in zip(shape, input_stride, strict=True)):
        memory = memory / grad.new_zeros(length).index_add(0, owned, grad.new_ones(owned.array.shape)).clamp(min=1)
    return memory.index_select(0, owned).reshape(shape)


def as_strided_(self, size: Sizes, stride: Sizes, storage_offset: int | None = None) -> Tensor:
    """In-place form of `as_strided`: the tensor itself shows its memory so."""
    return become(self, as_strided(self, size, stride, storage_offset))


# -- memory without a history -----------------------------------------------------------------------------------------
@composite(public="")
def view_dtype(input, dtype: dtypes.dtype):
    """The bytes of `input` as elements of another dtype; no gradient flows through."""
    array, dispatch_key = input.array, input.dispatch_key.with_dtype(dtype)
    old, new_size, shape = array.dtype.itemsize, dtype.itemsize, array.shape
    offset = dispatch_key.runtime.storage_offset(array) * old
    if old != new_size:
        purpose = f"to view {input.dispatch_key.dtype!r} as {dtype!r} (different element sizes)"
        if not shape:
            raise ShapeError(f"self.dim() cannot be 0 {purpose}")
        if array.strides[-1] != old and shape[-1] != 1:
            raise ShapeError(f"self.stride(-1) must be 1 {purpose}")
        if shape[-1] * old % new_size:
            raise ShapeError(f"self.size(-1), {shape[-1]}, must be divisible by {new_size // old} {purpose}")
        if offset % new_size or any(stride % new_size for stride in array.strides[:-1]):
            raise ShapeError(f"self.storage_offset() and strides must be divisible by {new_size // old} {purpose}")
        shape = (*shape[:-1], shape[-1] * old // new_size)
    strides = tuple(stride // new_size for stride in array.strides[: None if old == new_size else -1])
    strides = strides if old == new_size else (*strides, 1)
    return _sharing(
        input, dispatch_key.runtime.as_strided(array, shape, strides, offset // new_size, dtype), dispatch_key
    )


def _sharing(input, array, dispatch_key):
    """A tensor over memory of `input`, without its history; changes in place are counted for both."""
    result = new(input._plain)
    result.array = array
    result.dispatch_key = dispatch_key
    result.node = result.view_info = None
    result.version = input.version
    return result


@composite()
def detach(input):
    """`input` without its history: the same memory, no gradient flows back.

    >>> import corefw as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> (x * 2).detach().requires_grad
    False
    """
    return _sharing(input, input.array, input.dispatch_key)


def detach_(self) -> Tensor:
    """Forget the tensor's history: it becomes a leaf that requires no gradient.

    Raises:
        GradientError: the tensor is a view, whose history is that of its base.
    """
    if self.view_info is not None:
        raise GradientError("Can't detach views in-place. Use detach() instead.")
    forget(self)
    return self


for _name, _function in {
    "as_strided_": as_strided_,
    "detach_": detach_,
    "is_contiguous": is_contiguous,
    "stride": stride,
}.items():
    setattr(Tensor, _name, _function)
