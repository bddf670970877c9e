"""Recording: a call of a function that runs as ever, while its kernels are written down, and what it did besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from corefw.autograd.autocasting.state import state as autocast
from corefw.autograd.engine import run as run_backward
from corefw.compiling.entries import Draw, Entry, Gradients, Returned
from corefw.compiling.environment import choices, environment
from corefw.compiling.executing import run_of
from corefw.compiling.frames import Watching
from corefw.compiling.guards import Option, spelled
from corefw.compiling.passes import improved
from corefw.compiling.passes.hoisting import renewing
from corefw.compiling.replacing import Replacing
from corefw.compiling.schedules import Given, Stepping
from corefw.compiling.surroundings import Surroundings
from corefw.compiling.tape import Tape
from corefw.dispatch.batching.arrays import LevelDevice
from corefw.dispatch.declare import ops
from corefw.dispatch.plan import Cell, Plan, Rate
from corefw.dispatch.registry import registry
from corefw.dispatch.runtime import Runtime
from corefw.dispatch.sparse.tensors import is_sparse
from corefw.graph.views import node_of
from corefw.tensor import AccumulateGrad, Tensor
from corefw.utils._pytree import tree_flatten


class Refusal(Exception):
    """A call cannot be replayed, for the reason that the message tells.

    Attributes: ``for_now`` whether another call may be.
    """

    def __init__(self, reason: str, for_now: bool = False):
        super().__init__(reason)
        self.for_now = for_now


@dataclass
class Recorded:
    """What a recorded call returned, the functions that ran in it, the schedulers that made a step and the options they
    changed, what became of the recording, and how many calls of kernels it had before the passes."""

    result: Any
    functions: dict
    stepping: Stepping
    entry: Entry | None
    refusal: Refusal | None
    calls: int


def record(
    function: Callable, args: tuple, kwargs: dict, tensors: Sequence[Tensor], surroundings: Surroundings,
    passes: Sequence[str] | None = None, rates: Sequence[Option] = (),
) -> Recorded:  # fmt: skip
    """Call a function once, and make an entry of what it does if that can be replayed.

    Args:
        tensors: those among the arguments, in order.
        surroundings: what it depends on, as far as former calls have told.
        passes: the names of the passes that improve the plan; None for all.
        rates: numbers that are others in each run.
    """
    surroundings.rates = {(id(option.group), option.key) for option in rates}
    recording = _Recording(tensors, surroundings, rates)
    result = recording.call(function, args, kwargs)
    calls, functions = len(recording.tape.plan.calls), recording.watching.functions
    try:
        return Recorded(result, functions, recording.stepping, recording.entry(result, passes), None, calls)
    except Refusal as refusal:
        return Recorded(result, functions, recording.stepping, None, refusal, calls)
    finally:
        recording.end()


class _Recording:
    """One call: the state before, the tape, and the comparison of both."""

    def __init__(self, tensors: Sequence[Tensor], surroundings: Surroundings, rates: Sequence[Option]):
        self.tensors, self.surroundings, self.rates = tensors, surroundings, rates
        self.tape, self.watching, self.options = Tape(), Watching(), Given(rates)
        self.stepping = Stepping(self.options, self.tape.plan)
        self.before = surroundings.held()
        leaves = {id(t): t for t in (*surroundings.leaves(), *tensors) if t.node.__class__ is AccumulateGrad}
        self.leaves = list(leaves.values())
        places = {id(t): i for i, t in reversed([*enumerate(tensors)]) if id(t) not in surroundings.tensors}
        self.sources = [places.get(id(leaf), leaf) for leaf in self.leaves]
        self.gradients = [leaf._grad for leaf in self.leaves]
        self.replacing = Replacing(self.leaves, self.tape.plan)
        self.tape.noticing = self.replacing.notice
        self.known = {id(tensor.array): tensor for tensor, _ in surroundings.tensors.values()}
        watched = [*tensors, *self.known.values(), *(g for g in self.gradients if g is not None)]
        self.versions = {id(t.version): (t, t.version[0]) for t in watched}
        given = {id(tensor.array) for tensor in tensors} | self.known.keys()
        self.given_gradients = [
            (source, gradient)
            for source, gradient in zip(self.sources, self.gradients)
            if gradient is not None and not is_sparse(gradient) and id(gradient.array) not in given
        ]
        self.pinned = [(i, t.array) for i, t in enumerate(tensors) if id(t.array) in self.known]
        self.environment = environment()

    def call(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """Call it, written down."""
        cache, autocast.cache = autocast.cache, {}  # casts of weights are made in each run
        Rate.used, Rate.asked = False, set()
        self.truths = [bool(option.get()) for option in self.rates]
        self.options.begin()
        try:
            with self.tape, self.stepping, self.watching:
                for i, tensor in enumerate(self.tensors):
                    self.tape.given(tensor.array, f"argument {i}")
                for _, gradient in self.given_gradients:
                    self.tape.given(gradient.array, "a gradient")
                return function(*args, **kwargs)
        finally:
            autocast.cache = cache
            self.options.end()

    def end(self) -> None:
        """Let go of what was needed to compare."""
        self.tape.finished()

    # -- what it did --------------------------------------------------------------------------------------------------
    def entry(self, result: Any, passes: Sequence[str] | None) -> Entry:
        """The entry; Refusal if there is none."""
        self._refuse_unseen()
        self._copy_constants(self.tape)
        leaves, structure = tree_flatten(result)
        counted = self._counted()
        new_gradients, gradient_counts = self._new_gradients()
        returned = [self._returned(leaf) for leaf in leaves]
        self._share_versions(returned)
        histories = [i for i, r in enumerate(returned) if r.kind == "new" and node_of(leaves[i]) is not None]
        backward = None
        if histories and not self.tape.ran_backward:
            backward = self._backward([leaves[i] for i in histories], histories, passes)
        for i in histories:
            returned[i].spent = self.tape.ran_backward
        self.replacing.end()
        plan = self._improved(self.tape.plan, passes)
        used = {cell for call in plan.calls for cell in call.cells()}
        gradients = [
            (source, gradient)
            for (source, gradient), cell in zip(self.given_gradients, plan.given[len(self.tensors) :])
            if cell in used
        ]
        plan.given = plan.given[: len(self.tensors)] + [c for c in plan.given[len(self.tensors) :] if c in used]
        plan.releases = self.replacing.releases(plan, [source for source, _, _ in new_gradients])
        return Entry(
            plan=plan,
            run=renewing(plan, run_of(plan)),
            held=self.before,
            groups=self.surroundings.groups(),
            rates=list(self.rates),
            truths=[(i, self.truths[i]) for i in sorted(Rate.asked)],
            schedulers=self.stepping.steps,
            environment=self.environment,
            choices=choices(),
            epoch=registry.epoch,
            pinned=self.pinned,
            leaves=[
                (source, gradient is not None)
                for source, gradient in zip(self.sources, self.gradients)
                if source.__class__ is int
            ],
            gradients_given=[source for source, _ in gradients],
            gradients_like=[_like(gradient) for _, gradient in gradients],
            gradient_counts=gradient_counts,
            draws=[Draw(generator, generator.get_offset() - start) for generator, _, start in self.tape.generators],
            counted=counted,
            new_gradients=new_gradients,
            returned=returned,
            structure=structure,
            backward=backward,
        )

    def _refuse_unseen(self) -> None:
        """Refuse what a replay would not do, or do wrong."""
        surroundings, tape = self.surroundings, self.tape
        if surroundings.add_functions(self.watching.functions):
            raise Refusal("functions ran that had not been seen", for_now=True)
        changed = self.before.difference()
        if changed:
            raise Refusal(f"it changes {changed}, which is done by Python", for_now=True)
        if tape.refusal:
            raise Refusal(tape.refusal)
        self._refuse_options()
        if surroundings.opaque:
            raise Refusal(f"it uses the iterator {spelled(surroundings.opaque[0])}")
        cells = tape.plan.cells()
        if surroundings.arrays and any(cell in tape.constants and cell.shape for cell in cells):
            raise Refusal(f"it makes tensors of NumPy arrays ({spelled(surroundings.arrays[0])} is one)")
        for tensor in self.tensors:
            if isinstance(tensor.dispatch_key.device, LevelDevice) or tensor.dispatch_key.device.type == "meta":
                raise Refusal(f"an argument lies on {tensor.dispatch_key.device}, seen from inside of a transform")
        shown = {id(tensor.array): id(tensor.version) for tensor in self.tensors}
        if len({*shown.values()}) < len(shown) and any(
            cell.memory.kind == "given" for call in tape.plan.calls for cell in call.changed()
        ):
            raise Refusal("it changes in place an argument whose memory another one shows too")
        for cell in cells:
            if cell.kind == "held" and cell not in tape.constants and id(cell.array) not in self.known:
                call = next(call for call in tape.plan.calls if cell in call.cells())
                raise Refusal(f"it uses a tensor, {cell.type}, that was made before and is in none of the variables "
                              f"and attributes that its functions name ({call.where})")  # fmt: skip

    def _refuse_options(self) -> None:
        """Refuse what would be the same in each replay though options of optimizers and schedulers are not."""
        stepping, known = self.stepping, self.surroundings.schedulers
        if self.rates and Rate.used:
            raise Refusal(f"Python computes with {self.rates[0].key!r} of an optimizer, which is another in each call")
        if self.options.changed:
            raise Refusal(f"it sets {self.options.changed!r} of an optimizer", for_now=True)
        if known.issuperset(map(id, stepping.steps)) and self.surroundings.rates.issuperset(stepping.options):
            if reason := stepping.refuse():
                raise Refusal(reason)
            for scheduler, name in stepping.looks.items():
                if scheduler in known:
                    raise Refusal(f"it asks {name!r} of a scheduler, which is another in each call")
        else:
            raise Refusal("a scheduler made a step that had made none", for_now=True)

    def _counted(self) -> list[tuple[Any, int]]:
        """What was changed in place, how often: places of arguments, or other tensors."""
        places = {id(tensor.version): i for i, tensor in reversed([*enumerate(self.tensors)])}
        gradients = {id(g.version) for g in self.gradients if g is not None}
        return [
            (places.get(id(tensor.version), tensor), tensor.version[0] - before)
            for key, (tensor, before) in self.versions.items()
            if tensor.version[0] != before and key not in gradients
        ]

    def _new_gradients(self) -> tuple[list, list]:
        """What became of the leaves' gradients: the new ones, and how often old ones were changed in place."""
        found, counts = [], []
        for leaf, source, before in zip(self.leaves, self.sources, self.gradients):
            now = leaf._grad
            if now is before:
                if now is not None and now.version[0] != self.versions[id(now.version)][1]:
                    counts.append((source, now.version[0] - self.versions[id(now.version)][1]))
            elif now is None:
                found.append((source, -1, None))
            elif type(now) is not Tensor or now.node is not None:
                raise Refusal(f"it leaves a gradient that is {type(now).__name__} or has a history")
            elif self.tape.cell(now.array).memory.kind != "result":
                raise Refusal("it makes a tensor that was there before a gradient")
            else:
                found.append((source, self.tape.returned(now.array), now.dispatch_key))
        return found, counts

    def _returned(self, leaf: Any) -> Returned:
        if isinstance(leaf, Rate):
            raise Refusal(f"it returns {self.rates[leaf.source].key!r} of an optimizer, which is another in each call")
        if not isinstance(leaf, Tensor):
            return Returned("constant", value=leaf)
        for i, tensor in enumerate(self.tensors):
            if leaf is tensor:
                return Returned("given", i)
        if id(leaf) in self.surroundings.tensors:
            return Returned("constant", value=leaf)
        if type(leaf) is not Tensor:
            raise Refusal(f"it returns a {type(leaf).__name__}")
        cell = self.tape.cell(leaf.array)
        if cell.memory in self.tape.constants:
            if cell.memory is not cell or not any(cell in call.cells() for call in self.tape.plan.calls):
                raise Refusal("it returns a tensor that Python makes")
            cell = self.tape.copied(cell)
        if cell.memory.kind != "result":
            raise Refusal("it returns a view of a tensor that was there before")
        return Returned("new", self.tape.returned(leaf.array), dispatch_key=leaf.dispatch_key)

    def _share_versions(self, returned: list[Returned]) -> None:
        """Results that show one memory have one version."""
        first: dict[Cell, int] = {}
        for i, r in enumerate(returned):
            if r.kind == "new":
                memory = self.tape.plan.returned[r.place].memory
                r.version_of = first.setdefault(memory, -1)
                if r.version_of < 0:
                    first[memory] = i

    def _copy_constants(self, tape: Tape) -> None:
        """Tensors that Python made and calls change are copied first."""
        written = {cell.memory for call in tape.plan.calls for cell in call.changed()}
        for cell in written & tape.constants:
            tape.copied(cell)

    def _improved(self, plan: Plan, passes: Sequence[str] | None) -> Plan:
        """A plan after its passes, which are told what counts the changes of tensors."""
        for cell in plan.cells():
            tensor = self.known.get(id(cell.array)) if cell.kind == "held" else None
            if tensor is not None and not _has_other_processes(tensor):
                cell.version = tensor.version
        return improved(plan, passes)

    # -- gradients ----------------------------------------------------------------------------------------------------
    def _backward(self, outputs: list[Tensor], places: list[int], passes: Sequence[str] | None) -> Gradients:
        """Write down the backward of the outputs, with gradients that come from outside."""
        targets: list[Any] = [i for i, tensor in enumerate(self.tensors) if node_of(tensor) is not None]
        nodes: list[Any] = [node_of(self.tensors[i]) for i in targets]
        own = {*map(id, nodes)}
        for leaf in self.leaves:
            if id(leaf.node) not in own:
                targets.append(leaf.node)
                nodes.append(leaf.node)
        firsts = [ops.ones_like(output).detach().contiguous() for output in outputs]
        tape = Tape()
        with tape:
            for i, first in enumerate(firsts):
                tape.given(first.array, f"gradient {i}")
            roots: Any = [(node_of(output), first) for output, first in zip(outputs, firsts)]
            hooks = [node.hooks for node in nodes]
            for node in nodes:  # whose hooks run where the gradients arrive
                node.hooks = None
            try:
                found = run_backward(roots, retain_graph=True, create_graph=False, targets=nodes, into_leaves=False)
            finally:
                for node, own in zip(nodes, hooks):
                    node.hooks = own
            gradients = [found.get(node) for node in nodes]
            for gradient in gradients:
                if gradient is not None:
                    tape.returned(gradient.array)
        changed = self.before.difference()
        if tape.refusal or changed:
            raise Refusal(tape.refusal or f"its backward changes {changed}, which is done by Python")
        return self._gradients(tape, outputs, places, firsts, targets, gradients, passes)

    def _gradients(self, tape, outputs, places, firsts, targets, gradients, passes) -> Gradients:
        forward, plan = self.tape, tape.plan
        saved, given, held = [], [], []
        of_result: list[Cell] = []
        of_given: list[Cell] = []
        arguments = {id(tensor.array): i for i, tensor in enumerate(self.tensors)}
        for cell in [cell for cell in plan.cells() if cell.kind == "held" and cell not in tape.constants]:
            array = cell.array
            known = forward.knows(array)
            if known is None or (known.kind == "held" and known not in forward.constants):
                if id(array) not in self.known:
                    raise Refusal(f"its backward uses a tensor, {cell.type}, that is found nowhere")
                held.append(self.known[id(array)])
            elif known.kind == "given":
                if id(array) not in arguments:
                    raise Refusal("its backward uses a former gradient")
                cell.kind = "given"
                given.append(arguments[id(array)])
                of_given.append(cell)
            elif known.kind == "result":
                cell.kind = "given"
                saved.append(forward.returned(array))
                of_result.append(cell)
        plan.given += of_result + of_given
        places_of = [-1 if g is None else plan.returned.index(tape.cell(g.array)) for g in gradients]
        keep = [i for i, place in enumerate(places_of) if place >= 0]
        self._copy_constants(tape)
        improved_plan = self._improved(plan, passes)
        run, order = renewing(improved_plan, run_of(improved_plan)), [places_of[i] for i in keep]

        def in_order(arrays: Sequence[Any]) -> list:
            found = run(arrays, (), ())
            return [found[place] for place in order]

        tape.finished()
        return Gradients(
            plan=improved_plan,
            run=in_order,
            outputs=places,
            outputs_like=[
                (tuple(first.array.shape), tuple(first.array.strides), first.dispatch_key) for first in firsts
            ],
            inputs=[targets[i] for i in keep],
            saved=saved,
            given=given,
            held=held,
            keys=[gradients[i].dispatch_key for i in keep],
        )


def _has_other_processes(tensor: Tensor) -> bool:
    """Whether its memory is of those that other processes change too, who count for themselves."""
    runtime = tensor.dispatch_key.runtime
    return type(runtime).is_shared is not Runtime.is_shared and runtime.is_shared(tensor.array)


def _like(gradient: Tensor) -> tuple:
    return gradient.dispatch_key, gradient.array.shape, gradient.array.strides
