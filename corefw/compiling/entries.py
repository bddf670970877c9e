"""Entries: one recording of a compiled function, with what must hold for it to be replayed, and its replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from corefw.compiling.arguments import OTHER
from corefw.compiling.environment import choices
from corefw.compiling.guards import Held, Option
from corefw.compiling.nodes import CompiledBackward, attach
from corefw.dispatch.plan import Plan
from corefw.dispatch.random_generator import Generator
from corefw.dispatch.registry import registry
from corefw.dispatch.straight import Run
from corefw.graph.views import node_of
from corefw.tensor import Tensor, new
from corefw.utils._pytree import TreeSpec


def _not_yet(args: tuple, kwargs: dict) -> Any:
    return OTHER


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


@dataclass
class Entry:
    """A recording that can be replayed.

    Attributes:
        plan: the calls; ``run`` makes them.
        held: what it depends on; ``groups`` the ids of the options of optimizers.
        rates: options of optimizers that are given to each run; ``truths`` of some whether they are not 0.
        schedulers: those that make a step after each run.
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
        enter: replays it, given arguments (see `entering.py`).
        others: the arguments that count by identity.
    """

    plan: Plan
    run: Run
    held: Held
    groups: set[int]
    rates: list[Option]
    truths: list[tuple[int, bool]]
    schedulers: list[Any]
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
    enter: Callable[[tuple, dict], Any] = _not_yet
    others: list = field(default_factory=list)
    runs: int = 0

    @property
    def inference(self) -> bool:
        """Whether it was recorded in inference mode."""
        return self.environment[1]

    def chooses_as_before(self) -> bool:
        """Whether the same kernels would be chosen, though those that had been found were dropped."""
        if self.choices != choices():
            return False
        self.epoch = registry.epoch
        return True

    def attach(self, arrays: Sequence[Any], tensors: Sequence[Tensor], leaves: list) -> None:
        """Give the leaves of the result their history, if the forward's run has returned `arrays`."""
        backward = self.backward
        assert backward is not None
        node = new(CompiledBackward)
        node.inputs = tuple(node_of(tensors[i]) if i.__class__ is int else i for i in backward.inputs)
        node.saved = [*(arrays[i] for i in backward.saved), *(tensors[i].array for i in backward.given)]
        changeable = [*(tensors[i] for i in backward.given), *backward.held]
        node.versions = [(tensor, tensor.version[0]) for tensor in changeable]
        node.run, node.outputs_like, node.keys = backward.run, backward.outputs_like, backward.keys
        attach(node, [leaves[i] for i in backward.outputs])
