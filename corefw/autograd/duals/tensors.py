"""Dual tensors in the graph: how tensors get a tangent and lose it, and what becomes of their gradients.

A backward that begins at a tangent sends the gradient g into the duals as g + 0e, one that begins at a primal as
0 + ge; what arrives as a + be at a tensor and its tangent gives b to the tensor and a to the tangent. A backward that
begins at a dual tensor itself, inside of the differentiation, gives dual gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corefw.autograd.duals.arrays import TIMELESS, DualArray, DualRuntime, Scope, below, zero
from corefw.autograd.duals.calls import MEANINGS, ForwardError, entry, how
from corefw.autograd.duals.custom import apply
from corefw.devices import device
from corefw.dispatch.batching.arrays import LevelDevice, at_depths, depths, joined, levels, lift
from corefw.dispatch.batching.tensors import fitted, settled
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.views import node_of
from corefw.tensor import Node, Tensor, new, next_sequence, wrap


class DualDevice(LevelDevice):
    """A device seen from inside of a forward differentiation."""

    __slots__ = ()
    runtime_class = DualRuntime

    def holding(self, array, dtype):
        return DualArray(array, None, self)

    def keeps(self, depth):
        return depth in levels.roots

    def paired(self, array):
        if not array.scope.alive:
            return array.primal
        if array.tangent is not None:
            return array.tangent
        key = below(self, array.dtype)
        zeros = key.runtime.empty(array.shape, key.dtype, self.index)
        key.runtime.copy(zeros, zero(key.runtime, key.dtype, self.index))
        return zeros

    def entry(self, op, dispatch_key, results, geometry):
        return entry(op, dispatch_key, results, geometry)

    def current(self, tensor):
        scope = tensor.array.scope
        return tensor if scope.alive or scope is TIMELESS else _primal(tensor, scope)

    def settled(self, gradient):
        return settled(wrap(gradient.array.primal, below(self, gradient.array.dtype)))

    def apply(self, function, ctx, args, run):
        return apply(self, function, ctx, args, run)

    def said(self, op):
        return [f"tangent: {MEANINGS[how(op)]}"]

    def text(self, tensor):
        array = tensor.array
        key = below(self, array.dtype)
        text = repr(wrap(array.primal, key, node_of(tensor)))
        if array.tangent is None or not array.scope.alive:
            return text
        return f"{text.removesuffix(')')}, tangent={wrap(array.tangent, key)!r})"


class _Passage(Node):
    """A node between tensors and a dual one; `back` brings gradients back."""

    __slots__ = ("back",)
    back: Callable[[Tensor], tuple[Tensor | None, ...]]

    def backward(self, gradient):
        return self.back(gradient)

    def name(self) -> str:
        return "DualBackward0"


def _passed(array: Any, dispatch_key: Any, sources: tuple[Tensor, ...], back: Callable) -> Tensor:
    """A tensor over `array`, as a computation of `sources`."""
    result = wrap(array, dispatch_key)
    result.version = sources[0].version
    nodes = tuple(map(node_of, sources))
    if mode.recording and any(node is not None for node in nodes):
        result.node = node = new(_Passage)
        node.inputs, node.saved, node.hooks = nodes, (), None
        node.shape, node.dispatch_key, node.back = tuple(array.shape), dispatch_key, back
        node.sequence = next_sequence()
        if mode.recording is not True:
            mode.recording(node)
    return result


# -- in and out -------------------------------------------------------------------------------------------------------
def begin() -> Scope:
    """Begin a forward differentiation, inside of all levels that run."""
    scope = Scope(len(levels.running) + 1)
    levels.running.append(scope)
    return scope


def end(scope: Scope) -> None:
    """End the innermost level, a forward differentiation."""
    assert levels.running[-1] is scope
    levels.running.pop()
    scope.alive = False


def make(primal: Tensor, tangent: Tensor | None, scope: Scope) -> Tensor:
    """A tensor with a tangent, over the memory of both; None for zeros."""
    given = [primal] if tangent is None else [primal, tangent]
    d = primal.dispatch_key.dtype
    to = joined(one.dispatch_key for one in given)
    if scope.depth in depths(to):
        raise ForwardError(
            "jvp: a gradient with a tangent meets a tangent of the same forward differentiation: nest func.jvp to "
            "differentiate forward twice"
        )
    given = [_beside(one.to(d), at_depths(to, {}, d)) for one in given]
    key = dispatch_key_of(to, d)
    level = DualDevice(to, scope.depth, 1, key.runtime)
    array = DualArray(given[0].array, given[1].array if len(given) == 2 else None, level, scope)

    def back(gradient: Tensor) -> tuple[Tensor | None, ...]:
        if scope.depth in levels.roots:
            return (gradient, None)[: len(given)]
        return (_tangent(gradient, gradient.array.scope), _primal(gradient, gradient.array.scope))[: len(given)]

    return _passed(array, dispatch_key_of(level, d), tuple(given), back)


def _beside(tensor: Tensor, to: device) -> Tensor:
    """A tensor as one of a device of more levels, the same for all examples there, of which it is stored once."""
    where, d = tensor.dispatch_key.device, tensor.dispatch_key.dtype
    if where is to:
        return tensor
    array = lift(tensor.array, d, where, to)
    return _passed(array, dispatch_key_of(to, d), (tensor,), lambda gradient: (fitted(gradient, where),))


def _is_of(tensor: Tensor, scope: Scope) -> bool:
    where = tensor.dispatch_key.device
    return where.__class__ is DualDevice and where.depth == scope.depth and tensor.array.scope is scope


def primal_of(tensor: Tensor, scope: Scope) -> Tensor:
    """A tensor without what a differentiation made of it."""
    return _primal(tensor, scope) if _is_of(tensor, scope) else tensor


def tangent_of(tensor: Tensor, scope: Scope) -> Tensor | None:
    """The tangent that a tensor has in a differentiation; None for zeros."""
    return _tangent(tensor, scope) if _is_of(tensor, scope) else None


def tangents_of(tensors: Sequence[Tensor], scope: Scope) -> list[Tensor]:
    """The tangents of tensors, zeros for those that have none."""
    found = [(one, tangent_of(one, scope)) for one in tensors]
    return [ops.zeros_like(primal_of(one, scope)) if tangent is None else tangent for one, tangent in found]


def _primal(tensor: Tensor, scope: Scope) -> Tensor:
    key = below(tensor.dispatch_key.device, tensor.array.dtype)

    def back(gradient: Tensor) -> tuple[Tensor]:
        scope.revive()
        return (make(_zeros(gradient), gradient, scope),)

    return _passed(tensor.array.primal, key, (tensor,), back)


def _tangent(tensor: Tensor, scope: Scope) -> Tensor | None:
    if tensor.array.tangent is None:
        return None
    key = below(tensor.dispatch_key.device, tensor.array.dtype)

    def back(gradient: Tensor) -> tuple[Tensor]:
        scope.revive()
        return (make(gradient, None, scope),)

    return _passed(tensor.array.tangent, key, (tensor,), back)


def _zeros(tensor: Tensor) -> Tensor:
    with no_recording():
        return ops.zeros_like(tensor)
