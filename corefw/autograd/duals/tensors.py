"""Dual tensors in the graph: how tensors get a tangent and lose it, and what becomes of their gradients.

A backward that begins at a tangent sends the gradient g into the duals as g + 0e, one that begins at a primal as
0 + ge; what arrives as a + be at a tensor and its tangent gives b to the tensor and a to the tangent. A backward that
begins at a dual tensor itself, inside of the differentiation, gives dual gradients.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from corefw.autograd.duals.arrays import TIMELESS, DualArray, DualRuntime, Scope, below, zero
from corefw.autograd.duals.calls import MEANINGS, ForwardError, entry, how
from corefw.autograd.duals.custom import apply
from corefw.devices import device
from corefw.dispatch.batching.arrays import LevelDevice, at_depths, base_of, depths, joined, levels, lift
from corefw.dispatch.batching.tensors import fitted, into, settled
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import FLOATING
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
        return tensor if scope.alive or scope is TIMELESS else _primal(tensor, self.depth)

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
class _Taken(threading.local):
    """The thread's scopes that something still refers to, by their depths."""

    def __init__(self):
        self.scopes: WeakValueDictionary[float, Scope] = WeakValueDictionary()


_taken = _Taken()


def begin() -> Scope:
    """Begin a forward differentiation, inside of all levels that run.

    Its depth lies between that of a `vmap` in its place and the next, and is that of no scope that ended and may be
    revived by a backward.
    """
    position = levels.next_depth()
    depth = next(d for d in (position + 1 - 1 / k for k in count(2)) if d not in _taken.scopes)
    scope = _taken.scopes[depth] = levels.running[depth] = Scope(depth)
    return scope


def end(scope: Scope) -> None:
    """End the innermost level, a forward differentiation."""
    assert levels.innermost() is scope
    del levels.running[scope.depth]
    scope.alive = False


def make(primal: Tensor, tangent: Tensor | None, scope: Scope) -> Tensor:
    """A tensor with a tangent, over the memory of both; None for zeros.

    Raises:
        ValueError: for a dtype of integers.
        ForwardError: the tensor has a tangent in the same differentiation.
    """
    if primal.dispatch_key.dtype.category < FLOATING:
        raise ValueError(f"Expected primal to be floating point or complex, but got: {primal.dispatch_key.dtype!r}")
    if tangent is not None and any(n > 1 and not step for n, step in zip(primal.array.shape, primal.array.strides)):
        primal = primal.clone()  # an element that is shown several times may have several tangents
    given = [primal] if tangent is None else [primal, tangent]
    d = primal.dispatch_key.dtype
    to = joined(one.dispatch_key for one in given)
    if scope.depth in depths(to):
        raise ForwardError(
            "jvp: a gradient with a tangent meets a tangent of the same forward differentiation: nest func.jvp to "
            "differentiate forward twice"
        )
    inside = all(depth < scope.depth for depth in depths(to))
    move = _beside if inside else into  # where a `vmap` runs inside, each example has its pair
    given = [move(one.to(d), at_depths(to, {}, d)) for one in given]
    level = at_depths(base_of(to), {**depths(to), scope.depth: _SAMPLE}, d)
    array = _pair([one.array for one in given], level, scope)

    def back(gradient: Tensor) -> tuple[Tensor | None, ...]:
        if scope.depth in levels.roots:
            return (gradient, None)[: len(given)]
        return (_tangent(gradient, scope.depth), _primal(gradient, scope.depth))[: len(given)]

    return _passed(array, dispatch_key_of(level, d), tuple(given), back)


def _pair(arrays: list, level: Any, scope: Scope) -> Any:
    """The dual array of one or two arrays; under the levels that are deeper than its own."""
    if level.depth == scope.depth:
        return DualArray(arrays[0], arrays[1] if len(arrays) == 2 else None, level, scope)
    below_it = iter(arrays[1:])
    return arrays[0].mapped(
        lambda first: _pair([first, *(other.values for other in below_it)], level.inner, scope), level
    )


def _beside(tensor: Tensor, to: device) -> Tensor:
    """A tensor as one of a device of more levels, the same for all examples there, of which it is stored once."""
    where, d = tensor.dispatch_key.device, tensor.dispatch_key.dtype
    if where is to:
        return tensor
    array = lift(tensor.array, d, where, to)
    return _passed(array, dispatch_key_of(to, d), (tensor,), lambda gradient: (fitted(gradient, where),))


def _dual_at(tensor: Tensor, depth: float) -> DualArray | None:
    """The dual array at a depth in a tensor's array."""
    where, array = tensor.dispatch_key.device, tensor.array
    while isinstance(where, LevelDevice):
        if where.depth == depth:
            return array
        where, array = where.inner, array.primal if array.__class__ is DualArray else array.values
    return None


def _is_of(tensor: Tensor, scope: Scope) -> bool:
    found = _dual_at(tensor, scope.depth)
    return found is not None and found.scope is scope


def primal_of(tensor: Tensor, scope: Scope) -> Tensor:
    """A tensor without what a differentiation made of it."""
    return _primal(tensor, scope.depth) if _is_of(tensor, scope) else tensor


def tangent_of(tensor: Tensor, scope: Scope) -> Tensor | None:
    """The tangent that a tensor has in a differentiation; None for zeros."""
    return _tangent(tensor, scope.depth) if _is_of(tensor, scope) else None


def tangents_of(tensors: Sequence[Tensor], scope: Scope) -> list[Tensor]:
    """The tangents of tensors, zeros for those that have none."""
    found = [(one, tangent_of(one, scope)) for one in tensors]
    return [ops.zeros_like(primal_of(one, scope)) if tangent is None else tangent for one, tangent in found]


def _primal(tensor: Tensor, depth: float) -> Tensor:
    return _part(tensor, depth, lambda array: array.primal, lambda g, scope: make(_zeros(g), g, scope))


def _tangent(tensor: Tensor, depth: float) -> Tensor | None:
    found = _dual_at(tensor, depth)
    if found is None or found.tangent is None:
        return None
    return _part(tensor, depth, lambda array: array.varying(), lambda g, scope: make(g, None, scope))


def _part(tensor: Tensor, depth: float, pick: Callable[[DualArray], Any], again: Callable) -> Tensor:
    """One of the two parts of a tensor; gradients go back as what `again` makes of them."""
    where, d = tensor.dispatch_key.device, tensor.dispatch_key.dtype
    found = _dual_at(tensor, depth)
    assert found is not None
    scope = found.scope
    to = at_depths(base_of(where), {at: level for at, level in depths(where).items() if at != depth}, d)

    def picked(array: Any, where: Any, to: Any) -> Any:
        if where.depth == depth:
            return pick(array)
        return array.mapped(lambda inside: picked(inside, where.inner, to.inner), to)

    def back(gradient: Tensor) -> tuple[Tensor]:
        scope.revive()
        return (again(gradient, scope),)

    return _passed(picked(tensor.array, where, to), dispatch_key_of(to, d), (tensor,), back)


def _zeros(tensor: Tensor) -> Tensor:
    with no_recording():
        return ops.zeros_like(tensor)


class _Sample:
    """Stands for the device of a scope, where one is made."""

    @staticmethod
    def over(base: device, depth: float, runtime: Any) -> DualDevice:
        return DualDevice(base, depth, 1, runtime)


_SAMPLE = _Sample()
