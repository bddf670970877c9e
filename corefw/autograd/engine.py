"""The engine: runs recorded nodes backwards, newest first, without recursion."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from math import prod
from operator import le
from sys import getrefcount
from typing import Any

from corefw.dispatch.batching.arrays import LevelDevice
from corefw.dispatch.batching.tensors import begun, ended, fitted, settled
from corefw.dispatch.declare import ops
from corefw.dispatch.out import refuse_read_only
from corefw.dispatch.registry import registry
from corefw.dispatch.sparse.keys import LayoutKey
from corefw.dispatch.sparse.tensors import SparseTensor, is_sparse
from corefw.dispatch.tables import run_into
from corefw.errors import GradientError, LayoutError, ShapeError
from corefw.graph.grad_mode import Run, mode
from corefw.tensor import AccumulateGrad, Node, Output, Tensor, ViewInfo, new, wrap

_add = registry.declared["add"]


class Hooks:
    """The hooks of one node: functions of the gradient before the node runs, and around it."""

    __slots__ = ("after", "before", "post_accumulate", "retain", "tensor")

    def __init__(self):
        self.tensor: dict = {}  # Tensor.register_hook: may replace the gradient
        self.before: dict = {}  # Node.register_prehook: may replace the gradients of the outputs
        self.after: dict = {}  # Node.register_hook: may replace the gradients of the inputs
        self.post_accumulate: dict = {}  # Tensor.register_post_accumulate_grad_hook
        self.retain = None  # Tensor.retain_grad: a weak reference to the tensor


def hooks_of(node: Node) -> Hooks:
    """The node's hooks, made when first asked for."""
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


def fit(gradient: Tensor, following: Node, node: Node, gradients: Sequence[Tensor | None]) -> Tensor:
    """Bring a gradient, one of the `gradients` that `node` returned, to the shape and dispatch key of the output of
    `following`.

    What was broadcast is summed over; a complex gradient of a real value loses its imaginary part.
    """
    shape = following.shape
    if SparseTensor.made and (is_sparse(gradient) or following.dispatch_key.__class__ is LayoutKey):
        return _fit_sparse(gradient, following, node)
    if gradient.array.shape != shape:
        try:
            gradient = ops.sum_to_size(gradient, shape)
        except ShapeError:
            index = next(i for i, g in enumerate(gradients) if g is gradient)
            raise GradientError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got "
                f"{list(gradient.array.shape)} but expected shape compatible with {list(shape)}"
            ) from None
    dispatch_key = following.dispatch_key
    if gradient.dispatch_key is not dispatch_key:
        if gradient.dispatch_key.dtype.is_complex and not dispatch_key.dtype.is_complex:
            gradient = gradient.real
        if LevelDevice.made and gradient.dispatch_key.device is not dispatch_key.device:
            gradient = fitted(gradient, dispatch_key.device)
            if gradient.dispatch_key.dtype is dispatch_key.dtype:
                return gradient
        gradient = gradient.to(device=dispatch_key.device, dtype=dispatch_key.dtype)
    return gradient


def _fit_sparse(gradient: Tensor, following: Node, node: Node) -> Tensor:
    """As `fit`, where the gradient or the tensor is sparse: the layouts may differ, the shapes may not."""
    if tuple(gradient.array.shape) != tuple(following.shape):
        raise GradientError(
            f"Function {node.name()} returned an invalid gradient - got {list(gradient.array.shape)} but expected "
            f"shape {list(following.shape)}"
        )
    return gradient.to(device=following.dispatch_key.device, dtype=following.dispatch_key.dtype)


def _holders(gradient: Tensor) -> tuple[int, int]:
    """How many references there are to a gradient and to its array."""
    array = gradient.array
    return getrefcount(gradient), getrefcount(array)


def _own_holders() -> tuple[int, int]:
    """What `_holders` finds when only the engine, three calls deep as here, holds the gradient."""

    def accumulate(gradient):
        return _holders(gradient)

    gradient = wrap(object(), None)
    return accumulate(gradient)


_OWN_HOLDERS = _own_holders()


def _is_ours(gradient: Tensor) -> bool:
    """Whether nobody else holds the gradient or its memory, so that it may become a leaf's ``.grad`` as it is."""
    array = gradient.array
    if gradient.node is not None or getrefcount(gradient) > _OWN_HOLDERS[0]:
        return False
    if getrefcount(array) > _OWN_HOLDERS[1]:
        return False
    if gradient.view_info is not None:
        return _is_all_of_ours(gradient.view_info, array)
    base = getattr(array, "base", None)  # who owns the memory, where that is another object
    return base is None or (getrefcount(base) <= _OWN_HOLDERS[1] and _is_owner(base) and 0 not in array.strides)


def _is_owner(base) -> bool:
    """Whether what an array shows is an array with memory of its own, and not what another library lends."""
    return getattr(base, "base", base) is None


def _is_all_of_ours(view: ViewInfo, array) -> bool:
    """Whether an array shows all of a base that only its `view` holds; further views would hold the base too."""
    memory = getattr(array, "base", None)
    return (
        view.base.array is memory
        and view.base.view_info is None
        and view.base.node is None
        and prod(array.shape) == prod(memory.shape)
        and 0 not in array.strides
        and getattr(memory, "base", None) is None
        and all(map(le, _base_holders(view, memory), _OWN_BASE_HOLDERS))
    )


def _base_holders(view: ViewInfo, memory) -> tuple[int, int]:
    """How many references there are to the base of a view and to its array."""
    return getrefcount(view.base), getrefcount(memory)


def _own_base_holders() -> tuple[int, int]:
    """What `_base_holders` finds when only the view holds its base, and the array shown and `memory` the base's."""
    memory = object()
    view, shown = new(ViewInfo), [memory]
    view.base = wrap(memory, None)
    return _base_holders(view, shown[0])


_OWN_BASE_HOLDERS = _own_base_holders()


def accumulate(node: AccumulateGrad, gradient: Tensor, create_graph: bool) -> None:
    """Add a gradient to the leaf's ``.grad``; a gradient nobody else holds is kept without a copy."""
    leaf = node.leaf()
    if leaf is None or leaf.node is None:  # it is gone, or wants no gradient any more
        return
    if LevelDevice.made and gradient.dispatch_key.device is not leaf.dispatch_key.device and not create_graph:
        gradient = settled(gradient)
    present = leaf._grad
    if present is None:
        if create_graph:
            leaf._grad = gradient.clone()
        elif _is_ours(gradient):
            gradient.view_info = None
            leaf._grad = gradient
        else:
            leaf._grad = gradient.detach().clone()
    elif create_graph:
        leaf._grad = present + gradient
    elif present.dispatch_key is gradient.dispatch_key and present.view_info is None:
        try:
            run_into(_add.inplace_table[present.dispatch_key], (present.array, gradient.array), present.array)
        except ValueError:
            refuse_read_only("backward", present)
            raise
        except LayoutError:
            leaf._grad = present + gradient
            return
        present.version[0] += 1
    elif is_sparse(present):
        leaf._grad = gradient + present
    else:
        present.add_(gradient)


def _are_alike(present: Tensor, gradient: Tensor) -> bool:
    """Whether both gradients are plain arrays of one device and dtype."""
    dispatch_key = present.dispatch_key
    return (
        dispatch_key is gradient.dispatch_key
        and dispatch_key.__class__ is not LayoutKey
        and not isinstance(dispatch_key.device, LevelDevice)
    )


def _was_added(target, gradient: Tensor) -> bool:
    """Whether a gradient was added to the array `target` in place, which is of its device and dtype."""
    try:
        run_into(_add.inplace_table[gradient.dispatch_key], (target, gradient.array), target)
    except (LayoutError, ValueError):
        return False
    return True


def _added(node: Node, part_of: Mapping, gradient: Tensor, present: Tensor) -> bool:
    """Whether the gradient of a view that shows a part was added to what is `present` of its input's, in place."""
    if not _are_alike(present, gradient) or not _is_ours(present):
        return False
    part = part_of[present.dispatch_key][0](present.array, *node.saved[1:])  # saved are the shape and the attributes
    return _was_added(part, gradient)


def _summed(present: Tensor, gradient: Tensor, create_graph: bool) -> Tensor:
    """The sum of two gradients of one tensor, in the memory of what is `present` if only the engine holds that."""
    if not create_graph and _are_alike(present, gradient) and _is_ours(present) and _was_added(present.array, gradient):
        return present
    return ops.add(present, gradient)


def _run_tensor_hooks(hooks: Hooks, gradient: Tensor) -> Tensor:
    for hook in tuple(hooks.tensor.values()):
        changed = hook(gradient)
        if changed is not None:
            if not isinstance(changed, Tensor):
                raise TypeError(f"expected a tensor hook to return None or a Tensor, but got {type(changed).__name__}")
            if changed.array.shape != gradient.array.shape:
                raise GradientError(
                    f"hook {getattr(hook, '__name__', hook)!r} has changed the size of the gradient from "
                    f"{list(gradient.array.shape)} to {list(changed.array.shape)}"
                )
            gradient = changed
    if hooks.retain is not None:
        tensor = hooks.retain()
        if tensor is not None:
            tensor._grad = gradient.clone() if tensor._grad is None else tensor._grad + gradient
    return gradient


def _as_tuple(gradient) -> tuple:
    return tuple(gradient) if gradient.__class__ is list else (gradient,)


def _changed(gradients: tuple, returned) -> tuple:
    """What a hook made of `gradients`; PyTorch's hooks on nodes return None, or as many gradients as they were
    given."""
    if returned is None:
        return gradients
    returned = returned if isinstance(returned, tuple) else (returned,)
    if len(returned) != len(gradients):
        raise GradientError(f"a hook of a node returned {len(returned)} gradients, but was given {len(gradients)}")
    return returned


def _run_before(hooks: Hooks, gradient):
    gradients = _as_tuple(gradient)
    for hook in tuple(hooks.before.values()):
        gradients = _changed(gradients, hook(gradients))
    return list(gradients) if gradient.__class__ is list else gradients[0]


def _run_after(hooks: Hooks, gradients, gradient):
    gradients, outputs = tuple(gradients), _as_tuple(gradient)
    for hook in tuple(hooks.after.values()):
        gradients = _changed(gradients, hook(gradients, outputs))
    return gradients


def _run_accumulate_hooks(node: AccumulateGrad, gradient: Tensor, create_graph: bool) -> None:
    hooks = node.hooks
    if hooks.before:
        gradient = _run_before(hooks, gradient)
    accumulate(node, gradient, create_graph)
    leaf = node.leaf()
    if leaf is not None and leaf.node is not None:
        for hook in tuple(hooks.post_accumulate.values()):
            hook(leaf)
    for hook in tuple(hooks.after.values()):
        hook((), (gradient,))


def _needed(targets: set[Node], roots: Sequence[Node]) -> tuple[set[Node], set[Node]]:
    """The nodes on a path from `roots` to one of `targets`, and among them the last ones, whose inputs nobody needs.

    A node is newer than its inputs, so nothing older than the oldest target can lead to one.
    """
    needed = set(targets)
    oldest = min(node.sequence for node in needed)
    found = {node for node in roots if node.sequence >= oldest}
    stack = list(found)
    while stack:
        for node in stack.pop().inputs:
            if node is not None and node not in found and node.sequence >= oldest:
                found.add(node)
                stack.append(node)
    for node in sorted(found, key=_sequence):
        if not needed.isdisjoint(node.inputs):
            needed.add(node)
    return needed, {node for node in targets if needed.isdisjoint(node.inputs)}


def _sequence(node: Node) -> int:
    return node.sequence


def _without(node: Node, needed: set[Node]) -> Node:
    """A node whose backward computes nothing for inputs that are not needed: this one if there are none, or a copy."""
    if not node.by_formulas or needed.issuperset(node.inputs):
        return node
    made = new(node.__class__)
    made.saved, made.shape, made.dispatch_key, made.hooks = node.saved, node.shape, node.dispatch_key, node.hooks
    made.sequence, made.inputs = node.sequence, tuple([i if i in needed else None for i in node.inputs])
    return made


def run(
    roots: Sequence[tuple[Node, Tensor]],
    *,
    retain_graph: bool,
    create_graph: bool,
    targets: Collection[Node] | None = None,
    into_leaves: bool = True,
) -> dict[Node, Tensor]:
    """Propagate gradients from `roots`, pairs of a node and the gradient of its output.

    Args:
        retain_graph: keep saved tensors for another run.
        create_graph: record the gradients' computation.
        targets: if given, only nodes on paths to these run, and their gradients are returned unless they go into
            leaves.
        into_leaves: whether leaves (all, or those among the targets) get their ``.grad``.
    """
    found: dict[Node, Tensor] = {}
    needed = last = None
    if targets is not None:
        targets = set(targets)
        needed, last = _needed(targets, [node for node, _ in roots])
    pending: dict[Node, Any] = {}  # gradients that have arrived; a list of them for a node with several outputs
    queue: list[tuple[int, Any]] = []
    node: Any
    gradient: Any
    call_node = mode.call_node
    before, mode.recording = mode.recording, mode.recorder if create_graph else False
    outer = begun(roots) if LevelDevice.made else None
    inside, mode.running, mode.run = (mode.running, mode.run), True, new(Run)
    mode.run.roots, mode.run.needed = roots, needed
    try:
        for node, gradient in roots:
            if needed is not None and node not in needed:
                continue
            if node in pending:
                pending[node] = ops.add(pending[node], gradient)
            else:
                pending[node] = gradient
                heappush(queue, (-node.sequence, node))
        only = carried = None  # the one node whose gradient has come while no other waits: a chain needs no queue
        while only is not None or queue:
            if only is not None:
                node, gradient, only, carried = only, carried, None, None
            else:
                node = heappop(queue)[1]
                gradient = pending.pop(node)
            hooks = node.hooks
            if hooks is not None and gradient.__class__ is not list:
                gradient = _run_tensor_hooks(hooks, gradient)
            if targets is not None and not into_leaves and node in targets:
                found[node] = gradient
            kind = node.__class__
            if kind is Output:
                parent = node.inputs[0]
                if needed is not None and parent not in needed:
                    continue
                received = pending.get(parent)
                if received is None:
                    received = pending[parent] = [None] * parent.outputs
                    heappush(queue, (-parent.sequence, parent))
                present, received[node.index] = received[node.index], None  # so that it is not held there
                received[node.index] = gradient if present is None else _summed(present, gradient, create_graph)
                received = present = None
                continue
            if kind is AccumulateGrad:
                if into_leaves and (targets is None or node in targets):
                    if hooks is None:
                        accumulate(node, gradient, create_graph)
                    else:
                        _run_accumulate_hooks(node, gradient, create_graph)
                gradient = None
                continue
            if last is not None and node in last:
                continue
            if hooks is not None and hooks.before:
                gradient = _run_before(hooks, gradient)
            if kind.part is not None and hooks is None and not create_graph and call_node is None:
                following = node.inputs[0]
                present = pending.pop(following, None)  # so that it is not held there
                if present is not None:
                    added = _added(node, kind.part, gradient, present)
                    pending[following], present = present, None
                    if added:
                        gradient = None
                        continue
            if call_node is not None:
                gradients = call_node(node, gradient)
            else:
                gradients = (node if needed is None else _without(node, needed)).backward(gradient)
            if hooks is not None and hooks.after:
                gradients = _run_after(hooks, gradients, gradient)
            gradient = None
            if not retain_graph:
                node.release()
            for following, g in zip(node.inputs, gradients):
                if following is None or g is None or (needed is not None and following not in needed):
                    continue
                if g.dispatch_key is not following.dispatch_key or g.array.shape != following.shape:
                    g = fit(g, following, node, gradients)
                if only is None and not queue:
                    only, carried = following, g
                    continue
                if only is not None:
                    pending[only] = carried
                    heappush(queue, (-only.sequence, only))
                    only = carried = None
                present = pending.pop(following, None)
                if present is None:
                    pending[following] = g
                    heappush(queue, (-following.sequence, following))
                else:
                    pending[following] = _summed(present, g, create_graph)
                    present = None
            gradients = g = present = None
    finally:
        mode.running, mode.run = inside
        mode.recording = before
        if outer is not None:
            ended(outer)
    return found
