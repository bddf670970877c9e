"""Entries: one recording of a compiled function, with what must hold for it to be replayed, and its replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from corefw.compiling.arguments import Look
from corefw.compiling.environment import choices, environment, hindrance
from corefw.compiling.guards import Held
from corefw.compiling.nodes import CompiledBackward, attach, spend
from corefw.dispatch.plan import Plan
from corefw.dispatch.random_generator import Generator
from corefw.dispatch.registry import registry
from corefw.dispatch.straight import Run
from corefw.graph.views import node_of
from corefw.tensor import Tensor, new, wrap
from corefw.utils._pytree import TreeSpec, tree_unflatten

#: what is returned instead of a result where a recording does not hold
OTHER = object()


@dataclass
class Draw:
    """What a run takes from a generator: `blocks` from where it is, if its seed is of the engine it was."""

    generator: Generator
    blocks: int


@dataclass
class Returned:
    """How one leaf of the result comes about.

    Attributes: ``kind`` "new" (over the array at `place` of what the run returns), "given" (the argument at `place`) or
    "constant" (`value` itself); ``spent`` whether its history is used up; ``version_of`` the place of another new one
    that shows the same memory, or -1.
    """

    kind: str
    place: int = -1
    value: Any = None
    dispatch_key: Any = None
    spent: bool = False
    version_of: int = -1


@dataclass
class Gradients:
    """The backward of a recorded forward.

    Attributes:
        outputs: the places among the leaves of the result of the tensors with a history.
        outputs_like: (shape, strides, dispatch key) of each.
        inputs: where the nodes are that are given gradients: places of arguments, or nodes of parameters.
        saved: the places among what the forward's run returns, of what it saves.
        given: the places of the arrays that were given to the forward and are used again.
        held: the tensors whose arrays are used again, and may not be changed until then.
        keys: the dispatch keys of the gradients; None where there is none.
    """

    plan: Plan
    run: Callable[[Sequence[Any]], list]
    outputs: list[int]
    outputs_like: list[tuple]
    inputs: list[Any]
    saved: list[int]
    given: list[int]
    held: list[Tensor]
    keys: list[Any]


def _look_otherwise(args: tuple, kwargs: dict) -> None:
    """What arguments look like of which nothing is known yet."""


@dataclass
class Entry:
    """A recording that can be replayed.

    Attributes:
        plan: the calls; ``run`` makes them.
        held: what it depends on; ``groups`` the ids of the options of optimizers.
        rates: (dictionary, key) of numbers that are given to each run.
        environment, choices, epoch: what holds in the process (see `environment.py`).
        pinned: (place of an argument, its array), where that is no other than a tensor that is found elsewhere.
        leaves: (place of an argument, whether its gradient was there before).
        gradients_given: those of them whose gradient is given to a run, after the arguments' arrays;
            `gradients_like` what these look like, `gradient_counts` how often they are changed in place.
        draws: what it takes from generators.
        counted: (place of an argument or a tensor, how often it is changed in place).
        new_gradients: (leaf, place of its gradient's array among what a run returns, or -1: none, its dispatch key).
        returned, structure: the result.
        backward: how gradients are computed, where the result has a history.
        look: whether arguments look as they did.
        others: the arguments that count by identity.
    """

    plan: Plan
    run: Run
    held: Held
    groups: set[int]
    rates: list[tuple[dict, str]]
    environment: tuple
    choices: tuple
    epoch: int
    pinned: list[tuple[int, Any]]
    leaves: list[tuple[int, bool]]
    gradients_given: list[Any]
    gradients_like: list[tuple]
    gradient_counts: list[tuple[Any, int]]
    draws: list[Draw]
    counted: list[tuple[Any, int]]
    new_gradients: list[tuple[Any, int, Any]]
    returned: list[Returned]
    structure: TreeSpec
    backward: Gradients | None = None
    look: Look = _look_otherwise
    others: list = field(default_factory=list)
    runs: int = 0

    def __post_init__(self) -> None:
        self.is_leaf = self.structure.is_leaf()
        self.versions_of = [(i, r.version_of) for i, r in enumerate(self.returned) if r.version_of >= 0]

    def enter(self, args: tuple, kwargs: dict) -> Any:
        """What a call with these arguments returns, replayed; OTHER if it would not be what was recorded."""
        found = self.look(args, kwargs)
        if found is None or not self._holds(found[0]):
            return OTHER
        return self._replay(*found)

    def _holds(self, tensors: Sequence[Tensor]) -> bool:
        """Whether everything that the recording depends on, beside what arguments look like, is as it was."""
        if self.environment != environment() or hindrance():
            return False
        if self.epoch != registry.epoch:
            if self.choices != choices():
                return False
            self.epoch = registry.epoch
        for i, array in self.pinned:
            if tensors[i].array is not array:
                return False
        for group, key in self.rates:
            if group.get(key).__class__ is not float:
                return False
        if not self.held.still():
            return False
        for place, there in self.leaves:
            if (tensors[place]._grad is not None) is not there:
                return False
        for leaf, like in zip(self.gradients_given, self.gradients_like):
            gradient = _at(leaf, tensors)._grad
            if (gradient.dispatch_key, gradient.array.shape, gradient.array.strides) != like:
                return False
        return True

    def _replay(self, tensors: list[Tensor], given: list) -> Any:
        """Run the plan with these tensors among the arguments, and do to Python's objects what the calls did."""
        self.runs += 1
        for leaf in self.gradients_given:
            given.append(_at(leaf, tensors)._grad.array)
        draws = [draw.generator.take(draw.blocks) for draw in self.draws] if self.draws else ()
        rates = [group[key] for group, key in self.rates] if self.rates else ()
        arrays = self.run(given, draws, rates)
        for what, times in self.counted:
            (tensors[what] if what.__class__ is int else what).version[0] += times
        for leaf, times in self.gradient_counts:
            _at(leaf, tensors)._grad.version[0] += times
        for leaf, place, key in self.new_gradients:
            gradient = None if place < 0 else wrap(arrays[place], key)
            (tensors[leaf] if leaf.__class__ is int else leaf)._grad = gradient
        leaves = [self._leaf(returned, arrays, tensors) for returned in self.returned]
        for i, of in self.versions_of:
            leaves[i].version = leaves[of].version
        if self.backward is not None:
            self._record(self.backward, arrays, tensors, leaves)
        return leaves[0] if self.is_leaf else tree_unflatten(leaves, self.structure)

    def _leaf(self, returned: Returned, arrays: Sequence[Any], tensors: Sequence[Tensor]) -> Any:
        if returned.kind == "new":
            tensor = wrap(arrays[returned.place], returned.dispatch_key)
            if returned.spent:
                spend(tensor)
            return tensor
        return returned.value if returned.kind == "constant" else tensors[returned.place]

    def _record(self, backward: Gradients, arrays: Sequence[Any], tensors: Sequence[Tensor], leaves: list) -> None:
        node = new(CompiledBackward)
        node.inputs = tuple(node_of(tensors[i]) if i.__class__ is int else i for i in backward.inputs)
        node.saved = [*(arrays[i] for i in backward.saved), *(tensors[i].array for i in backward.given)]
        changeable = [*(tensors[i] for i in backward.given), *backward.held]
        node.versions = [(tensor, tensor.version[0]) for tensor in changeable]
        node.run, node.outputs_like, node.keys = backward.run, backward.outputs_like, backward.keys
        attach(node, [leaves[i] for i in backward.outputs])


def _at(what: Any, tensors: Sequence[Tensor]) -> Tensor:
    """A tensor, or the one at a place among the arguments."""
    return tensors[what] if what.__class__ is int else what
