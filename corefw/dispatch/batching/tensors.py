"""Batched tensors in the graph: how tensors enter and leave a batch, and what becomes of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any

from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.arrays import (
    BatchedArray,
    BatchedDevice,
    Level,
    LevelDevice,
    at_depths,
    base_of,
    depths,
    joined,
    levels,
    lift,
)
from corefw.dispatch.registry import dispatch_key_of
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.views import node_of
from corefw.tensor import Constant, Node, Tensor, new, next_sequence, replay, wrap


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


def batch_of(value: Any) -> BatchedDevice | None:
    """The deepest batch that a value belongs to; None if it is no batched tensor."""
    where: device | None = level_of(value)
    while isinstance(where, LevelDevice):
        if isinstance(where, BatchedDevice):
            return where
        where = where.inner
    return None


def is_batched(value: Any) -> bool:
    """Whether a value is a batched tensor."""
    return batch_of(value) is not None


def enter(tensor: Tensor, depth: float) -> Tensor:
    """The examples along the first dimension of a tensor, as one."""
    key = tensor.dispatch_key
    where = key.device
    if isinstance(where, LevelDevice) and where.depth > depth:  # deeper ones are further out
        if where.__class__ is BatchedDevice:
            return enter(enter(leave(tensor).movedim(1, 0), depth), where.depth)
        wanted = depths(where) | {depth: Level(tensor.array.shape[0], "", 0)}
        return _beneath(tensor, wanted, lambda part: enter(part, depth), lambda gradient: leave(gradient, depth))
    level = BatchedDevice(key.device, depth, tensor.array.shape[0], key.runtime)
    array = BatchedArray(tensor.array, level)
    return _passed(tensor, array, dispatch_key_of(level, key.dtype), lambda gradient: leave(gradient, depth))


def leave(tensor: Tensor, depth: float | None = None) -> Tensor:
    """The examples along the first dimension: those of the batch at `depth`, or of the deepest that a tensor belongs
    to."""
    level = tensor.dispatch_key.device
    if level.__class__ is not BatchedDevice:
        at = batch_of(tensor).depth if depth is None else depth  # type: ignore[union-attr]
        wanted = {other: device for other, device in depths(level).items() if other != at}
        return _beneath(tensor, wanted, lambda part: leave(part, at), lambda gradient: enter(gradient, at))
    if depth is not None and level.depth > depth:
        return enter(leave(leave(tensor), depth).movedim(1, 0), level.depth)
    inner = dispatch_key_of(level.inner, tensor.dispatch_key.dtype)
    values = wrap(tensor.array.values, inner)
    if values.array.shape[0] != level.examples:
        values = values.expand(level.examples, *values.array.shape[1:])
    return _passed(tensor, values.array, inner, lambda gradient: enter(gradient, level.depth))


def _beneath(tensor: Tensor, wanted: dict[float, Any], change: Callable, back: Callable) -> Tensor:
    """A tensor of the levels `wanted`, by what `change` makes of its parts below its outermost level, which is no
    batch."""
    key = tensor.dispatch_key
    inner = dispatch_key_of(key.device.inner, key.dtype)
    to = at_depths(base_of(key.device), wanted, key.dtype)
    with no_recording():
        array = tensor.array.mapped(lambda part: change(wrap(part, inner)).array, to)
    return _passed(tensor, array, dispatch_key_of(to, key.dtype), back)


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
    if not isinstance(where, LevelDevice):
        return array
    array = array.mapped(lambda part: _full(part, dtype, where.inner), where)
    if where.__class__ is not BatchedDevice:
        return array
    values = wrap(array.values, dispatch_key_of(where.inner, dtype))
    if values.array.shape[0] != where.examples:
        values = values.expand(where.examples, *values.array.shape[1:])
    return BatchedArray(values.array, where)


def summed(tensor: Tensor, to: device) -> Tensor:
    """The sums over the examples at the depths to which `to` does not belong, or the tangents there."""
    key = tensor.dispatch_key
    if key.device is to:
        return tensor
    where = key.device
    array = _without(tensor.array, key.dtype, where, to)
    return _passed(tensor, array, dispatch_key_of(to, key.dtype), lambda gradient: into(gradient, where))


def _without(array: Any, dtype: Any, where: device, to: device) -> Any:
    if where is to:
        return array
    assert isinstance(where, LevelDevice)
    if isinstance(to, LevelDevice) and to.depth == where.depth:
        return array.mapped(lambda part: _without(part, dtype, where.inner, to.inner), to)
    if where.__class__ is not BatchedDevice:
        return _without(where.paired(array), dtype, where.inner, to)
    total = wrap(array.values, dispatch_key_of(where.inner, dtype)).sum(0)
    return _without(total.array, dtype, where.inner, to)


def fitted(gradient: Tensor, to: device) -> Tensor:
    """A gradient for a tensor of `to`: summed over the batches that neither that tensor nor the backward belongs to; of
    a dual one the tangent, where the backward began outside of the forward differentiation."""
    where = gradient.dispatch_key.device
    wanted, dtype = depths(to), gradient.dispatch_key.dtype
    kept = {depth: level for depth, level in depths(where).items() if depth in wanted or level.keeps(depth)}
    gradient = summed(gradient, at_depths(base_of(where), kept, dtype))
    return into(gradient, at_depths(base_of(where), wanted | kept, dtype))


def current_root(tensor: Tensor) -> Tensor:
    """As `current`, of a tensor that is differentiated backward."""
    before, mode.recording = mode.recording, mode.recorder
    try:
        return _current(tensor)
    finally:
        mode.recording = before


def begun(roots: Sequence[tuple[Node, Tensor]]) -> tuple[frozenset[float], int]:
    """Note what a backward differentiates; returns what to give to `ended` behind it."""
    outer = levels.roots, len(levels.revived)
    levels.roots = frozenset(depth for _, gradient in roots for depth in depths(gradient.dispatch_key.device))
    return outer


def ended(outer: tuple[frozenset[float], int]) -> None:
    """Forget what was noted of a backward, and the levels that it has revived."""
    levels.roots, revived = outer
    while len(levels.revived) > revived:
        levels.revived.pop().alive = False


def settled(gradient: Tensor) -> Tensor:
    """A gradient as a leaf keeps it that belongs to fewer levels."""
    where = gradient.dispatch_key.device
    return where.settled(gradient) if isinstance(where, LevelDevice) else gradient


def together(values: Any) -> Any:
    """The arguments of a call whose tensors belong to different batches, all in all of them; None if they do not
    differ."""
    tensors = [t for t in _tensors_in(values) if t.__class__ is not Constant]
    if not any(isinstance(t.dispatch_key.device, LevelDevice) for t in tensors):
        return None
    to = joined(t.dispatch_key for t in tensors)
    if all(t.dispatch_key.device is to for t in tensors):
        return None
    return _moved(values, to)


def current(values: Any) -> Any:
    """The arguments of a call without what levels that ended left in them; None if there is nothing of that."""
    found = [_current(value) for value in values]
    if not any(map(is_not, found, values)):
        return None
    return [value.number if value.__class__ is Constant else value for value in found]


def level_of(value: Any) -> LevelDevice | None:
    """The innermost level that a tensor belongs to; None for other values."""
    where = value.dispatch_key.device if isinstance(value, Tensor) else None
    return where if isinstance(where, LevelDevice) else None


def admit(target: Tensor, to: device, name: str) -> None:
    """Make a tensor that the op `name` changes in place, and the one that it shows, one of the levels of `to`."""
    present = depths(target.dispatch_key.device)
    for depth, level in depths(to).items():
        if depth not in present:
            level.check_admission(name)
    base, d = target, target.dispatch_key.dtype
    while base.view_info is not None:
        base = base.view_info.base
    where = base.dispatch_key.device
    wanted = at_depths(base_of(to), depths(where) | depths(to), base.dispatch_key.dtype)
    base.array = lift(base.array, base.dispatch_key.dtype, where, wanted)
    base.dispatch_key = dispatch_key_of(wanted, base.dispatch_key.dtype)
    if base is not target:
        with no_recording():
            target.array = replay(target.view_info.steps(), base).array
        target.dispatch_key = dispatch_key_of(wanted, d)


def become_current(target: Tensor) -> None:
    """As `current`, of a tensor that is changed in place."""
    found = _current(target)
    if found is not target:
        target.array, target.dispatch_key, target.node = found.array, found.dispatch_key, found.node
        target.view_info = None


def _current(value: Any) -> Any:
    if isinstance(value, Tensor):
        where = value.dispatch_key.device
        return where.current(value) if isinstance(where, LevelDevice) else value
    if value.__class__ in (list, tuple):
        changed = current(value)
        return value if changed is None else changed
    return value


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
