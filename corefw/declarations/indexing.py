"""Reading and writing parts of tensors: ``x[key]``, masks, fills and copies."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, overload

import numpy as np

from corefw import dtypes
from corefw.declarations._shared.batching import example_dims, full
from corefw.declarations._shared.index_batching import index_batching, index_put_batching, is_for_all_places, is_mask
from corefw.declarations._shared.keys import is_basic, is_forward, part_of
from corefw.dispatch.batching.calls import aligned
from corefw.dispatch.constants import assigned_operand, element_operand
from corefw.dispatch.declare import Index, Indices, composite, ops, primitive
from corefw.dispatch.promotion import check_same_shape
from corefw.dispatch.rules import first, promote, same
from corefw.errors import PositionError, ShapeError
from corefw.graph.grad_mode import mode as grad_mode
from corefw.shapes import broadcast
from corefw.tensor import Tensor
from corefw.tracebacks import hide_internal_frames, warn


# -- index tensors ----------------------------------------------------------------------------------------------------
def _index_shape(input, indices):
    """The shape of ``input[indices]``; masks, whose number of elements only the data tell, are checked and refused."""
    sizes: list[int] = []  # of the dimensions taken whole
    shapes, starts = [], []
    at = 0
    masked = False
    for item in indices:
        if item is None:
            sizes += input[at : at + 1]
            at += 1
            continue
        starts.append(len(sizes))
        if item.dtype in (np.bool_, np.uint8):
            for i, size in enumerate(item.shape):
                if input[at + i : at + i + 1] != (size,):
                    raise PositionError(
                        f"The shape of the mask {list(item.shape)} at index {i} does not match the shape of the "
                        f"indexed tensor {list(input)} at index {at + i}"
                    )
            masked = True
            at += len(item.shape)
        else:
            shapes.append(item.shape)
            at += 1
    if at > len(input):
        raise PositionError(f"too many indices for tensor of dimension {len(input)} (got {at})")
    if masked:
        raise TypeError("how many elements a mask selects is known only from its data")
    try:
        found = broadcast(*shapes)
    except ShapeError:
        listed = ", ".join(str(list(shape)) for shape in shapes)
        raise PositionError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None
    start = starts[0] if starts and starts[0] == starts[-1] else 0
    return (*sizes[:start], *found, *sizes[start:], *input[at:])


@primitive(dtype=same, shape=_index_shape, public="")
def index(input, indices: Indices):
    """The elements of `input` at the positions that `indices` give together.

    Args:
        input: any shape.
        indices: for each dimension, in order, a tensor of positions, or None to take it whole; a mask stands for as
            many dimensions as it has. They broadcast, and their common shape replaces the dimensions they index: in
            place where these are neighbours, else in front.
    """


index.batching(index_batching)
index.gradients(input=lambda grad, input_shape, indices: grad.new_zeros(input_shape).index_put_(indices, grad, True))
index.linear("input")


@primitive(
    dtype=same, shape=lambda input, indices, values, accumulate: _put_shape(input, indices, values), inplace=True
)
def index_put(input, indices: Indices, values, accumulate: bool = False):
    """`input` with `values` at the positions that `indices` give together.

    Args:
        input: any shape.
        indices: a tuple of tensors, positions or masks, one for each of the first dimensions.
        values: of the dtype of `input`; broadcasts with ``input[indices]``.
        accumulate: whether the values are added to those there (equal positions add up) instead of replacing them.

    >>> import corefw as torch
    >>> torch.zeros(3).index_put((torch.tensor([0, 2, 2]),), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    tensor([1., 0., 5.])
    """


def _put_shape(input, indices, values):
    try:
        found = _index_shape(input, indices)
    except TypeError:
        return input  # a mask: whether the values fit is seen when they are written
    more = len(values) - len(found)
    if any(n not in (1, size) for n, size in zip(values, (1,) * more + found[max(-more, 0) :], strict=True)):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(values)} cannot be broadcast to indexing result of shape "
            f"{list(found)}"
        )
    return input


index_put.batching(index_put_batching)
index_put.gradients(
    input=lambda grad, indices, accumulate: grad if accumulate else grad.index_put(indices, grad.new_zeros(())),
    values=lambda grad, indices, values_shape: _put_values(grad, indices, values_shape),
)
index_put.linear("input values")


def _put_values(grad, indices, shape):
    """The gradient of what was put: that of its places, whose sum is taken for what went to all places of a mask."""
    if not is_mask(indices):
        return index(grad, indices)
    at, mask = next((i, one) for i, one in enumerate(indices) if one is not None)
    behind = at + mask.ndim
    if not mask.ndim or not is_for_all_places(shape, grad.ndim - behind):
        return index(grad, indices)
    mask = mask.to(dtypes.bool_).reshape(tuple(mask.shape) + (1,) * (grad.ndim - behind))
    return _choose(mask, grad, 0).sum(tuple(range(at, behind)), keepdim=True).flatten(at, behind - 1)


_index = index.op.function


# -- x[key] -----------------------------------------------------------------------------------------------------------
_NUMBERS = frozenset({bool, int, float})


def getitem(self: Tensor, key: Any) -> Tensor:
    """``self[key]``: a view for integers, slices, None and Ellipsis; a copy where tensors, lists or masks take part.

    Integers, also as 0-d tensors, select first; what the other index tensors mean together is said at `index`. A slice
    with a negative step copies, because no view runs backward.

    Raises:
        PositionError: an index is out of range, or `key` has more entries than `self` has dimensions.
        ValueError: a slice's step is zero.
    """
    kind = key.__class__
    try:
        if kind is int:
            return ops.integer_index(self, (key,))
        if kind is slice and (key.step is None or is_forward(key)):
            return ops.slice_index(self, (key,))
        if kind is tuple and is_basic(key):
            return ops.basic_index(self, key)
        if key is None:
            return ops.unsqueeze(self, 0)
        part, indices, backward = part_of(self, key)
        if backward:
            part = part.flip(backward)
        return part if indices is None else _index(part, indices)
    except Exception as error:
        hide_internal_frames(error)
        raise


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value`` for a number, or a tensor that broadcasts with ``self[key]``.

    Raises:
        ShapeError: the value does not broadcast.
        TypeError: the value is neither tensor nor number.
    """
    kind = key.__class__
    try:
        if kind is int or (kind is slice and key.step is None):
            shown = ops.integer_index if kind is int else ops.slice_index
            if not _overwritten(self, shown, (key,), value):
                _write(shown(self, (key,)), None, value)
        elif kind is bool:
            if key:
                _write(self, None, value)
        elif kind is not Tensor or not _masked(self, key, value):
            part, indices, backward = part_of(self, key)
            turned = part.flip(backward) if backward else part
            _write(turned, indices, value)
            if backward:
                part.copy_(turned.flip(backward))
    except Exception as error:
        hide_internal_frames(error)
        raise


def _overwritten(self: Tensor, part: Any, key: tuple, value: Any) -> bool:
    """Write `value` to what the view op `part` shows, by the kernels alone, if nothing has a history; False if anything
    is unusual, which the ops themselves then do, or refuse."""
    if self.node is not None or self.view_info is not None:
        return False
    dispatch_key = self.dispatch_key
    try:
        if value.__class__ is Tensor:
            if value.node is not None or value.view_info is not None or value.version is self.version:
                return False
            write = copy
        elif value.__class__ in _NUMBERS:
            value, write = assigned_operand(value, dispatch_key), fill
        else:
            return False
        array = part.op.table[dispatch_key][0](self.array, key)
        if value.dispatch_key is not dispatch_key or value.array.ndim > array.ndim or 0 in array.strides:
            return False
        write.op.inplace_table[dispatch_key](array, value.array, out=array)
    except Exception:
        return False
    self.version[0] += 1
    return True


def _masked(self: Tensor, mask: Tensor, value: Any) -> bool:
    """As `_overwritten`, for a number and a mask of all elements."""
    if self.node is not None or self.view_info is not None or value.__class__ not in _NUMBERS:
        return False
    dispatch_key, array = self.dispatch_key, self.array
    if mask.dispatch_key is not dispatch_key.with_dtype(dtypes.bool_) or mask.version is self.version:
        return False
    try:
        number = assigned_operand(value, dispatch_key)
        if number.dispatch_key is not dispatch_key or mask.array.shape != array.shape or 0 in array.strides:
            return False
        masked_fill.op.inplace_table[dispatch_key](array, mask.array, number.array, out=array)
    except Exception:
        return False
    self.version[0] += 1
    return True


def _write(part: Tensor, indices: list | None, value: Any) -> None:
    """Write `value` into a view, or into the places of it that `indices` give."""
    if isinstance(value, Tensor):
        shape = value.array.shape
        if shape and shape[0] == 1 and (indices is not None or len(shape) > part.array.ndim):
            # further dimensions in front do no harm if their size is 1
            ones = next((i for i, size in enumerate(shape) if size != 1), len(shape))
            value = value.reshape(shape[ones:])
        if value.version is part.version and value.array.shape != part.array.shape:
            value = value.clone()  # a part that is spread over the whole is read before it is written
        if indices is None:
            part.copy_(value)
        else:
            if value.dispatch_key is not part.dispatch_key and prod(shape) == 1 and is_mask(indices):
                value = _as_element(value, part)
            part.index_put_(indices, value)
    elif isinstance(value, (int, float, complex, np.generic)):
        if indices is None:
            part.fill_(assigned_operand(value, part.dispatch_key))
        else:
            part.index_put_(indices, assigned_operand(value, part.dispatch_key))
    else:
        raise TypeError(f"can't assign a {type(value).__name__} to a torch.{part.dispatch_key.dtype.title}Tensor")


def _as_element(value: Tensor, part: Tensor) -> Tensor:
    """A value of one element as an element of `part`, of whatever dtype it is: masks are filled with it."""
    element = element_operand(value.item(), part.dispatch_key)
    return value.to(part.dispatch_key.dtype) if value.requires_grad else element


# -- copies and fills -------------------------------------------------------------------------------------------------
@primitive(dtype=replace(first, bounds=False), shape=broadcast, inplace=True, public="", grad_name="CopyBackwards")
def copy(input, src):
    """`src`, broadcast to the shape of `input` and converted to its dtype."""


copy.gradients(
    input=lambda grad: ops.zeros_like(grad),
    src=lambda grad: grad,
)
copy.tangent(lambda tangent_src: tangent_src)


@composite(public="Tensor")
def copy_(input, src, non_blocking: bool = False):
    """Write the elements of `src` into `input`, converted to its dtype and device.

    Args:
        input: the tensor that is changed.
        src: a tensor that broadcasts with `input`, or a number.
        non_blocking: whether a copy between devices may go on in the background.

    >>> import corefw as torch
    >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if isinstance(src, Tensor):
        if src.array.ndim > input.array.ndim:  # NumPy would drop leading dimensions of size 1
            check_same_shape(broadcast(src.array.shape, input.array.shape), input.array.shape)
        if src.dispatch_key.device is not input.dispatch_key.device:
            src = src.to(input.dispatch_key.device, non_blocking=non_blocking)
    return copy.op.inplace_function(input, src)


def _fill_shape(input, value):
    if value:
        raise ShapeError(f"fill_ only supports 0-dimension value tensor but got tensor with {len(value)} dimensions.")
    return input


@primitive(
    dtype=first,
    shape=_fill_shape,
    inplace=True,
    overlapping=("input", "value"),
    public="corefw Tensor.fill_",
    grad_name=lambda value: "Fill1" if value else "Fill",
)
def fill(input, value):
    """A tensor like `input` with `value` everywhere.

    Args:
        input: any shape.
        value: a number or 0-d tensor, converted to the dtype of `input`.

    >>> import corefw as torch
    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """


@fill.batching
def fill_batching(call, examples, input, value):
    if value.shape[0] == 1:
        return call(full(input, examples), value[0])
    return value.to(input.dtype).reshape(-1, *(1,) * example_dims(input)).expand(examples, *input.shape[1:]).clone()


fill.gradients(
    input=lambda grad: ops.zeros_like(grad),
    value=lambda grad: grad,
)
fill.linear("input value")


_elements = element_operand.made[int]  # type: ignore[attr-defined]


@composite(public="corefw Tensor")
def zero_(input):
    """Set every element of `input` to zero.

    >>> import corefw as torch
    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    if input.view_info is None and (input.node is None or not grad_mode.recording):
        dispatch_key, array = input.dispatch_key, input.array
        try:
            fill.op.inplace_table[dispatch_key](array, _elements[dispatch_key][0].array, out=array)
        except Exception:
            return input.fill_(0)  # which explains what is wrong
        input.version[0] += 1
        return input
    return input.fill_(0)


@composite(public="Tensor")
def fill_diagonal_(input, fill_value: float, wrap: bool = False):
    """Set the elements of the main diagonal, whose positions are equal in all dimensions.

    Args:
        input: a matrix, or a tensor of more dimensions of equal size.
        fill_value: what they become.
        wrap: whether, in a matrix of more rows than columns, the diagonal begins again below a row left alone.

    >>> import corefw as torch
    >>> torch.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    shape = input.shape
    if len(shape) < 2:
        raise ShapeError("fill_diagonal_: expected a tensor of at least 2 dimensions: dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError("fill_diagonal_: all dimensions of input must be of equal length")
    if not input.numel():
        input.fill_(fill_value)
    elif len(shape) == 2:
        height = shape[1] + 1
        for start in range(0, shape[0] if wrap else 1, height):
            input[start : start + height].diagonal().fill_(fill_value)
    else:
        input.as_strided((shape[0],), (sum(input.stride()),), input.storage_offset()).fill_(fill_value)
    return input


# -- masks ------------------------------------------------------------------------------------------------------------
@primitive(dtype=promote.bounded().rounding(), shape=broadcast, out=True, public="", grad_name="Where")
def choose(condition: Index, input, other):
    """`input` where `condition` is true, else `other`."""


choose.gradients(
    input=lambda grad, condition: choose(condition, grad, 0),
    other=lambda grad, condition: grad.masked_fill(condition, 0),
)


_choose = choose.op.function


@overload
def where(condition) -> tuple[Tensor, ...]: ...
@overload
def where(condition, input: Tensor | complex, other: Tensor | complex, *, out=None) -> Tensor: ...
@composite()
def where(condition, input=None, other=None, *, out=None):
    """`input` where `condition` is true, else `other`; of a condition alone, the positions of its nonzero elements.

    Args:
        condition: a bool tensor; it broadcasts with the others.
        input, other: tensors or numbers, brought to their common dtype.

    Returns:
        A tensor, or for one argument a tuple of index tensors, as ``nonzero(condition, as_tuple=True)``.

    >>> import corefw as torch
    >>> torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0)
    tensor([1., 0.])
    >>> torch.where(torch.tensor([0, 5, 0, 7]))
    (tensor([1, 3]),)
    """
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where() takes a condition alone, or a condition, input and other")
    if isinstance(condition, Tensor) and condition.dispatch_key.dtype is dtypes.uint8:
        warn("where received a uint8 condition tensor. This behavior is deprecated: use a bool tensor.")
        condition = condition.to(dtypes.bool_)
    return _choose(condition, input, other, out=out)


def where_method(self: Tensor, condition: Tensor, other: Tensor | complex) -> Tensor:
    """`self` where `condition` is true, else `other`: ``torch.where(condition, self, other)``."""
    return where(condition, self, other)


def _masked_fill_shape(input, mask, value):
    if value:
        raise ShapeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {len(value)} dimension(s)."
        )
    return broadcast(input, mask)


@primitive(
    dtype=first,
    shape=_masked_fill_shape,
    inplace=True,
    overlapping=("value",),
    grad_name=lambda value: "MaskedFill1" if value else "MaskedFill",
)
def masked_fill(input, mask: Index, value):
    """`input` with `value` where `mask` is true.

    Args:
        input: any shape.
        mask: a bool tensor that broadcasts with `input`.
        value: a number or 0-d tensor, converted to the dtype of `input`.

    >>> import corefw as torch
    >>> torch.masked_fill(torch.tensor([1.0, 2.0]), torch.tensor([False, True]), 0)
    tensor([1., 0.])
    """


@masked_fill.batching
def masked_fill_batching(call, examples, input, mask, value):
    if value.shape[0] == 1:
        return call(*aligned(input, mask), value[0])
    input, mask, value = aligned(input, mask, value.to(input.dtype))
    return _choose(mask, value, input)


masked_fill.gradients(
    input=lambda grad, mask: grad.masked_fill(mask, 0),
    value=lambda grad, mask: _choose(mask, grad, 0),
)
masked_fill.linear("input value")


@primitive(dtype=same, shape=None, out=True)
def masked_select(input, mask: Index):
    """The elements of `input` where `mask` is true, in order, as one dimension.

    Args:
        input: any shape.
        mask: a bool tensor that broadcasts with `input`.

    >>> import corefw as torch
    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """


@masked_select.gradient("input")
def masked_select_vjp(grad, input_shape, mask):
    return grad.new_zeros(broadcast(input_shape, mask.array.shape)).masked_scatter_(mask, grad)


masked_select.linear("input")


@primitive(dtype=same, shape=lambda input, mask, source: broadcast(input, mask), inplace=True)
def masked_scatter(input, mask: Index, source):
    """`input` with the elements of `source`, in order, where `mask` is true.

    Args:
        input: any shape.
        mask: a bool tensor that broadcasts with `input`.
        source: at least as many elements as `mask` has true ones.

    >>> import corefw as torch
    >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([5.0, 6.0]))
    tensor([5., 0., 6.])
    """


@masked_scatter.gradient("input")
def masked_scatter_vjp_input(grad, mask):
    return grad.masked_fill(mask, 0)


@masked_scatter.gradient("source")
def masked_scatter_vjp_source(grad, mask, source_shape):
    taken = grad.masked_select(mask)
    result = grad.new_zeros(source_shape)
    result.reshape(-1)[: taken.numel()].copy_(taken)
    return result


masked_scatter.linear("input source")
