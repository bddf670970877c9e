"""A level of differentiation: what a transform differentiates with respect to, and what it hands back.

Each transform of this package runs a function once under the tape of autograd, on inputs of its own. Inputs that have a
history outside keep it, so that transforms nest, in each other and in ``backward``; what does not lead out of the level
is handed back without a history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from corefw.autograd.differentiate import recorded_gradients
from corefw.autograd.grad_mode import enable_grad
from corefw.dispatch.batching.arrays import depths, levels
from corefw.dispatch.batching.tensors import enter, leave
from corefw.dispatch.declare import ops
from corefw.func.trees import flatten, unflatten
from corefw.graph.grad_mode import mode
from corefw.graph.views import node_of
from corefw.tensor import AccumulateGrad, Node, Tensor, next_sequence


class Level(enable_grad):
    """A with-block that records gradients, and the inputs that belong to it.

    Attributes: ``start`` the number in the order of nodes before its first one; ``recorded`` whether gradients were
    recorded around it; ``active`` whether the block is running.
    """

    def __init__(self):
        self.start = next_sequence()
        self.recorded = mode.recording is not False
        self.active = False

    def __enter__(self):
        super().__enter__()
        self.active = True
        return self

    def __exit__(self, *exception):
        self.active = False
        super().__exit__(*exception)

    def input(self, tensor: Any) -> Tensor:
        """The tensor as an input of the level, to differentiate with respect to."""
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
        if self.recorded and tensor.requires_grad:
            return tensor.view_as(tensor)
        return self.leaf(tensor)

    def leaf(self, tensor: Tensor) -> Tensor:
        """The elements of a tensor as a leaf of the level, without the history they have outside."""
        leaf = tensor.detach().requires_grad_()
        leaf.node.level = self
        return leaf

    def leads_out(self, tensors: Iterable[Tensor]) -> bool:
        """Whether one of the tensors comes from a leaf that is not the level's: one of the program, or of a level
        around it. Leaves of levels that ended in between are nobody's any more."""
        ends = (node for node in _nodes(tensors) if node.__class__ is AccumulateGrad)
        levels_of_ends = (getattr(node, "level", None) for node in ends)
        return any(level is None or (level is not self and level.active) for level in levels_of_ends)

    def leave(self, tree: Any) -> Any:
        """The tensors of a tree as they are seen outside: with a history if it leads out, else without."""
        leaves, structure = flatten(tree)
        return unflatten([self._left(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves], structure)

    def _left(self, tensor: Tensor) -> Tensor:
        node = node_of(tensor)
        if node is None or node.sequence < self.start or (self.recorded and self.leads_out([tensor])):
            return tensor
        return tensor.detach()


def vector_jacobian(outputs, inputs, vectors, create_graph: bool) -> list[Tensor]:
    """The gradients of `outputs` with respect to `inputs`, one vector for each output; zeros where nothing depends."""
    taken = _taken_depth(outputs) if levels.running else None
    if taken is not None:
        return _at_another_depth(taken, outputs, inputs, vectors, create_graph)
    found = recorded_gradients(outputs, inputs, vectors, create_graph)
    return [ops.zeros_like(one) if gradient is None else gradient for one, gradient in zip(inputs, found)]


def _nodes(tensors: Iterable[Tensor]) -> Iterator[Node]:
    """The nodes of the graph behind some tensors."""
    waiting = [node for node in map(node_of, tensors) if node is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for following in node.inputs:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def _depths_of(node: Node) -> set[int]:
    keys = node.dispatch_key if isinstance(node.dispatch_key, tuple) else (node.dispatch_key,)
    return {depth for key in keys for depth in depths(key.device)}


def _taken_depth(outputs) -> int | None:
    """The depth of a running `vmap` at which the graph of `outputs` has another one, that ended before."""
    for node in _nodes(outputs):
        for depth in _depths_of(node):
            if depth in levels.running and node.sequence < levels.running[depth].start:
                return depth
    return None


def _at_another_depth(taken: int, outputs, inputs, vectors, create_graph: bool) -> list[Tensor]:
    """`vector_jacobian` with the batch at the depth `taken` seen at one that the graph does not have."""

    def moved(tensors, source: int, target: int) -> list[Tensor]:
        inside = [source in depths(t.dispatch_key.device) for t in tensors]
        return [enter(leave(t, source), target) if i else t for t, i in zip(tensors, inside, strict=True)]

    free = 1 + max({*levels.running}.union(*map(_depths_of, _nodes(outputs))))
    before = levels.running
    levels.running = {depth: level for depth, level in before.items() if depth != taken} | {free: before[taken]}
    try:
        found = vector_jacobian(outputs, inputs, moved(vectors, taken, free), create_graph)
        return moved(found, free, taken)
    finally:
        levels.running = before
