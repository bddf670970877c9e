"""The engine: runs recorded nodes backwards, newest first, without recursion."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from sys import getrefcount

from corefw.dispatch.declare import ops
from corefw.dispatch.record import mode, node_of
from corefw.errors import GradientError
from corefw.tensor import Accumulate, Node, Output, Tensor

# A fresh gradient that only the engine holds: its name in `accumulate`, the argument, the caller's stack.
_OWN_REFERENCES = 4


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


def fit(gradient: Tensor, node: Node) -> Tensor:
    """Bring a gradient to the shape and dtype of the output of `node`: sums over what was broadcast."""
    shape = node.shape
    if gradient.array.shape != shape:
        try:
            gradient = gradient.sum_to_size(shape)
        except RuntimeError:
            raise GradientError(
                f"Function {node.name()} returned an invalid gradient: got {list(gradient.array.shape)} but expected shape "
                f"compatible with {list(shape)}"
            ) from None
    if gradient.place is not node.place:
        if gradient.place.dtype.is_complex and not node.place.dtype.is_complex:
            gradient = gradient.real
        gradient = gradient.to(device=node.place.device, dtype=node.place.dtype)
    return gradient


def accumulate(node: Accumulate, gradient: Tensor, create_graph: bool) -> None:
    """Add a gradient to the leaf's ``.grad``; a gradient nobody else holds is kept without a copy."""
    leaf = node.leaf()
    if leaf is None:
        return
    present = leaf._grad
    if present is None:
        if create_graph:
            leaf._grad = gradient.clone()
        elif (
            gradient.node is None
            and gradient.view is None
            and getrefcount(gradient) <= _OWN_REFERENCES
            and getrefcount(gradient.array) <= 2
        ):
            leaf._grad = gradient
        else:
            leaf._grad = gradient.detach().clone()
    elif create_graph:
        leaf._grad = present + gradient
    else:
        present.add_(gradient)
    if node.hooks is not None:
        for hook in tuple(node.hooks.post_accumulate.values()):
            hook(leaf)


def _apply_tensor_hooks(node: Node, gradient: Tensor) -> Tensor:
    hooks = node.hooks
    for hook in tuple(hooks.tensor.values()):
        changed = hook(gradient)
        if changed is not None:
            gradient = changed
    if hooks.retain is not None:
        tensor = hooks.retain()
        if tensor is not None:
            tensor._grad = gradient if tensor._grad is None else tensor._grad + gradient
    return gradient


def _needed(targets: set[Node], roots: Sequence[Node]) -> set[Node]:
    """The nodes on a path from `roots` to one of `targets`."""
    needed = set(targets)
    order: list[Node] = []
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        stack.extend(n for n in node.inputs if n is not None)
    for node in sorted(order, key=lambda n: n.sequence):  # inputs come before what was computed from them
        if any(n in needed for n in node.inputs):
            needed.add(node)
    return needed


def run(
    roots: Sequence[tuple[Node, Tensor]],
    *,
    retain_graph: bool,
    create_graph: bool,
    targets: dict[Node, int] | None = None,
    into_leaves: bool = True,
) -> dict[Node, Tensor]:
    """Propagate gradients from `roots`, pairs of a node and the gradient of its output.

    Args:
        retain_graph: keep saved tensors for another run.
        create_graph: record the gradients' computation.
        targets: if given, only nodes on paths to these run, and their gradients are returned.
        into_leaves: whether leaves (all, or those among the targets) get their ``.grad``.
    """
    found: dict[Node, Tensor] = {}
    needed = None if targets is None else _needed(set(targets), [node for node, _ in roots])
    pending: dict[Node, Tensor] = {}  # gradients that have arrived; a list of them for a node with several outputs
    queue: list[tuple[int, Node]] = []
    before, mode.recording = mode.recording, (mode.recording or True) if create_graph else False
    try:
        for node, gradient in roots:
            if needed is not None and node not in needed:
                continue
            if node in pending:
                pending[node] = ops.add(pending[node], gradient)
            else:
                pending[node] = gradient
                heappush(queue, (-node.sequence, node))
        node = gradient = None
        while queue:
            node = heappop(queue)[1]
            gradient = pending.pop(node)
            hooks = node.hooks
            if hooks is not None and gradient.__class__ is not list:
                gradient = _apply_tensor_hooks(node, gradient)
            if targets is not None and node in targets:
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
                received[node.index] = gradient
                continue
            if kind is Accumulate:
                if into_leaves and (targets is None or node in targets):
                    accumulate(node, gradient, create_graph)
                gradient = None
                continue
            if hooks is not None:
                gradient = _apply_prehooks(hooks, gradient)
            gradients = node.backward(gradient)
            if hooks is not None and hooks.after:
                gradients = _apply_posthooks(hooks, gradients, gradient)
            gradient = None
            if not retain_graph:
                node.release()
            for following, g in zip(node.inputs, gradients):
                if following is None or g is None or (needed is not None and following not in needed):
                    continue
                if g.place is not following.place or g.array.shape != following.shape:
                    g = fit(g, following)
                present = pending.get(following)
                if present is None:
                    pending[following] = g
                    heappush(queue, (-following.sequence, following))
                else:
                    pending[following] = ops.add(present, g)
            gradients = g = present = None
    finally:
        mode.recording = before
    return found


def _apply_prehooks(hooks: Hooks, gradient):
    gradients = tuple(gradient) if gradient.__class__ is list else (gradient,)
    for hook in tuple(hooks.before.values()):
        changed = hook(gradients)
        if changed is not None:
            gradients = changed if isinstance(changed, tuple) else (changed,)
    return list(gradients) if gradient.__class__ is list else gradients[0]


def _apply_posthooks(hooks: Hooks, gradients, gradient):
    outputs = tuple(gradient) if gradient.__class__ is list else (gradient,)
    for hook in tuple(hooks.after.values()):
        changed = hook(tuple(gradients), outputs)
        if changed is not None:
            gradients = changed if isinstance(changed, tuple) else (changed,)
    return gradients


def _first_gradient(tensor: Tensor, gradient: Tensor | None) -> Tensor:
    """The gradient to start from: given, or one for a scalar."""
    if gradient is None:
        if tensor.array.shape != () and tensor.numel() != 1:
            raise GradientError("grad can be implicitly created only for scalar outputs")
        if not tensor.place.dtype.is_floating_point:
            raise GradientError(f"grad can be implicitly created only for real scalar outputs but got {tensor.place.dtype!r}")
        return ops.ones_like(tensor)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if gradient.array.shape != tensor.array.shape:
        raise GradientError(
            f"Mismatch in shape: grad_output has a shape of {gradient.shape} and output has a shape of {tensor.shape}."
        )
    return gradient


def roots_of(tensors: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> list[tuple[Node, Tensor]]:
    """Nodes and first gradients of the tensors to differentiate; GradientError for one without a history."""
    roots = []
    for i, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        node = node_of(tensor)
        if node is None:
            raise GradientError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        first = _first_gradient(tensor, gradient)
        roots.append((node, first if first.place is node.place else fit(first, node)))
    return roots
