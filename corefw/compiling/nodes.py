"""Nodes of compiled functions in the graph: one for a whole forward, and one for what a compiled step has used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.errors import GradientError
from corefw.graph.grad_mode import mode
from corefw.graph.nodes import freed, output_node, stale
from corefw.tensor import Node, Tensor, new, next_sequence, wrap


class CompiledBackward(Node):
    """What a compiled forward left: its backward is a run of the plan of its gradients.

    Slots: ``run`` computes it, of the gradients of the outputs and what was saved; ``outputs_like`` per output its
    (shape, strides, dispatch key); ``keys`` the dispatch keys of the gradients; ``versions`` [(tensor, its version
    then)] of what was saved and may be changed.
    """

    __slots__ = ("keys", "outputs_like", "run", "versions")
    saves_tensors = True
    run: Any
    outputs_like: Sequence[tuple]
    keys: Sequence[Any]
    versions: Sequence[tuple[Tensor, int]]

    def backward(self, gradient):
        """The gradients of what the forward was given and of its parameters."""
        if self.saved is None:
            raise freed(self)
        if mode.recording:
            raise GradientError(
                "the backward of a compiled function is not recorded, so it has no derivative: create_graph=True wants "
                "the function itself, without compile"
            )
        for tensor, version in self.versions:
            if tensor.version[0] != version:
                raise stale(self.name(), tensor.array.shape, tensor.dispatch_key, version, tensor.version[0])
        gradients = gradient if gradient.__class__ is list else [gradient]
        arrays = [_laid_out(g, *like) for g, like in zip(gradients, self.outputs_like)]
        found = self.run([*arrays, *self.saved])
        return tuple(None if a is None else wrap(a, key) for a, key in zip(found, self.keys))


def _laid_out(gradient: Tensor | None, shape: tuple, strides: tuple, dispatch_key: Any) -> Any:
    """The array of a gradient in the strides in which the plan takes it."""
    if gradient is not None and gradient.array.strides == strides:
        return gradient.array
    runtime = dispatch_key.runtime
    laid_out = runtime.empty(shape, dispatch_key.dtype, dispatch_key.device.index)
    source = (
        runtime.constant(0.0, dispatch_key.dtype, dispatch_key.device.index) if gradient is None else gradient.array
    )
    runtime.copy(laid_out, source)
    return laid_out


def attach(node: CompiledBackward, tensors: Sequence[Tensor]) -> None:
    """Make a node the history of the outputs."""
    node.hooks = None
    node.sequence = next_sequence()
    node.outputs = len(tensors)
    first = tensors[0]
    node.shape, node.dispatch_key = first.array.shape, first.dispatch_key
    if len(tensors) == 1:
        first.node = node
        return
    for i, tensor in enumerate(tensors):
        tensor.node = output_node(node, i, tensor.array, tensor.dispatch_key)


class SpentBackward(Node):
    """The history of a tensor whose graph was used within a compiled step."""

    __slots__ = ()

    def backward(self, gradient):
        """There is none."""
        raise GradientError(
            "Trying to backward through the graph of a compiled step a second time: it is not kept. Compile the "
            "forward alone, or call backward inside of the compiled function"
        )


def spend(tensor: Tensor) -> None:
    """Give a tensor a history that is used up."""
    node = new(SpentBackward)
    node.inputs = node.saved = ()
    node.shape, node.dispatch_key, node.hooks = tensor.array.shape, tensor.dispatch_key, None
    node.sequence = next_sequence()
    tensor.node = node
