"""Batched tensors in the graph: how tensors enter and leave a batch, and what becomes of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.arrays import (
    BatchedArray,
    BatchedDevice,
    at_depths,
    base_of,
    depths,
    joined,
    levels,
    lift,
)
from corefw.dispatch.registry import dispatch_key_of
from corefw.graph.grad_mode import mode
from corefw.graph.views import node_of
from corefw.tensor import Constant, Node, Tensor, new, next_sequence, wrap


class _Passage(Node):
    """A node between a tensor and what it is on another device of the same elements; `back` brings gradients back."""

    __slots__ = ("back",)
    back: Callable[[Tensor], Tensor]

    def backward(self, gradient):
        return (self.back(gradient),)

    def name(self) -> str:
        return "VmapBackward0"


def _passed(tensor: Tensor, array: Any, dispatch_key: DispatchKey, back: Callable[[Tensor], Tensor]) -> Tensor:
    """A tensor over `array`, as a computation of `tensor`."""
    result = wrap(array, dispatch_key)
    result.version = tensor.version
    before = node_of(tensor) if mode.recording else None
    if before is not None:
        result.node = node = new(_Passage)
        node.inputs, node.saved, node.hooks = (before,), (), None
        node.shape, node.dispatch_key, node.back = tuple(array.shape), dispatch_key, back
        node.sequence = next_sequence()
        if mode.recording is not True:
            mode.recording(node)  # type: ignore[operator]
    return result


def is_batched(value: Any) -> bool:
    """Whether a value is a batched tensor."""
    return isinstance(value, Tensor) and value.dispatch_key.device.__class__ is BatchedDevice


def enter(tensor: Tensor, depth: int) -> Tensor:
    """The examples along the first dimension of a tensor, as one."""
    key = tensor.dispatch_key
    if key.device.__class__ is BatchedDevice and key.device.depth > depth:  # deeper ones are further out
        return enter(enter(leave(tensor).movedim(1, 0), depth), key.device.depth)
    level = BatchedDevice(key.device, depth, tensor.array.shape[0], key.runtime)
    array = BatchedArray(tensor.array, level)
    return _passed(tensor, array, dispatch_key_of(level, key.dtype), lambda gradient: leave(gradient, depth))


def leave(tensor: Tensor, depth: int | None = None) -> Tensor:
    """The examples along the first dimension: those of the batch at `depth`, or of the deepest that a tensor belongs
    to."""
    level = tensor.dispatch_key.device
    if depth is not None and level.depth > depth:
        return enter(leave(leave(tensor), depth).movedim(1, 0), level.depth)
    inner = dispatch_key_of(level.inner, tensor.dispatch_key.dtype)
    values = wrap(tensor.array.values, inner)
    if values.array.shape[0] != level.examples:
        values = values.expand(level.examples, *values.array.shape[1:])
    return _passed(tensor, values.array, inner, lambda gradient: enter(gradient, level.depth))


def all_examples(tensor: Tensor) -> Tensor:
    """A tensor with the examples of all batches that it belongs to, without a history: what checks look at elements
    of."""
    tensor = tensor.detach()
    while is_batched(tensor):
        tensor = leave(tensor)
    return tensor


def into(tensor: Tensor, to: device) -> Tensor:
    """A tensor as one of a device that belongs to more depths: the same for all examples there."""
    key = tensor.dispatch_key
    if key.device is to:
        return tensor
    where = key.device
    array = _full(lift(tensor.array, key.dtype, where, to), key.dtype, to)
    return _passed(tensor, array, dispatch_key_of(to, key.dtype), lambda gradient: fitted(gradient, where))


def _full(array: Any, dtype: Any, where: device) -> Any:
    """An array of which every level has all its examples."""
    if not isinstance(where, BatchedDevice):
        return array
    key = dispatch_key_of(where.inner, dtype)
    values = wrap(_full(array.values, dtype, where.inner), key)
    if values.array.shape[0] != where.examples:
        values = values.expand(where.examples, *values.array.shape[1:])
    return BatchedArray(values.array, where)


def summed(tensor: Tensor, to: device) -> Tensor:
    """The sums over the examples at the depths to which `to` does not belong."""
    key = tensor.dispatch_key
    if key.device is to:
        return tensor
    where = key.device
    array = _without(tensor.array, key.dtype, where, to)
    return _passed(tensor, array, dispatch_key_of(to, key.dtype), lambda gradient: into(gradient, where))


def _without(array: Any, dtype: Any, where: device, to: device) -> Any:
    if where is to:
        return array
    assert isinstance(where, BatchedDevice)
    if isinstance(to, BatchedDevice) and to.depth == where.depth:
        return BatchedArray(_without(array.values, dtype, where.inner, to.inner), to)
    total = wrap(array.values, dispatch_key_of(where.inner, dtype)).sum(0)
    return _without(total.array, dtype, where.inner, to)


def fitted(gradient: Tensor, to: device) -> Tensor:
    """A gradient for a tensor of `to`: summed over the batches that neither that tensor nor the backward belongs to."""
    where = gradient.dispatch_key.device
    wanted, dtype = depths(to), gradient.dispatch_key.dtype
    kept = {d: n for d, n in depths(where).items() if d in wanted or d in levels.running}
    gradient = summed(gradient, at_depths(base_of(where), kept, dtype))
    return into(gradient, at_depths(base_of(where), wanted | kept, dtype))


def together(values: Any) -> Any:
    """The arguments of a call whose tensors belong to different batches, all in all of them; None if they do not
    differ."""
    tensors = [t for t in _tensors_in(values) if t.__class__ is not Constant]
    if not any(map(is_batched, tensors)):
        return None
    to = joined(t.dispatch_key for t in tensors)
    if all(t.dispatch_key.device is to for t in tensors):
        return None
    return _moved(values, to)


def _tensors_in(values) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors_in(value)
    return found


def _moved(value: Any, to: device) -> Any:
    if isinstance(value, Tensor):
        if value.__class__ is Constant:
            return value.number
        return into(value, at_depths(to, {}, value.dispatch_key.dtype))
    return type(value)(_moved(one, to) for one in value) if value.__class__ in (list, tuple) else value


def lifted_operand(tensor: Tensor, to: device) -> Tensor:
    """An operand as a kernel of a deeper device takes it, without a history; numbers remain numbers."""
    key = tensor.dispatch_key
    if key.device is to:
        return tensor
    result = new(Constant) if tensor.__class__ is Constant else new(Tensor)
    if tensor.__class__ is Constant:
        result.number = tensor.number
    base = base_of(to)
    array = tensor.array
    if base_of(key.device) is not base:  # a 0-d tensor of the CPU
        runtime = dispatch_key_of(base, key.dtype).runtime
        array, where = runtime.upload(key.runtime.download(array), base.index), base
    else:
        where = key.device
    result.array = lift(array, key.dtype, where, to)
    result.dispatch_key = dispatch_key_of(to, key.dtype)
    result.node = result.view_info = None
    result.version = tensor.version
    return result
