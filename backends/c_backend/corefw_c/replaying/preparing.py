"""The first run of a plan: every call is made as ever, while what it calls in C is noted, placed and proved."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corefw.dispatch.plan import DEEDS, Call, Cell, Deed, Offset, Plan, Rate, Seed
from corefw_c import allocator
from corefw_c.arrays import like, thread
from corefw_c.replaying.kinds import kind_of
from corefw_c.replaying.places import Memory, Place, Span, address_of, placed
from corefw_c.replaying.recording import REALS, Note, Operand, Recording, StepStruct, owner_of
from corefw_c.replaying.trying import Changed, Scratch, Trial, Unproved
from corefw_c.replaying.words import Functions, Words

_MOST = 1 << 64  # seeds and offsets


class Numbers(NamedTuple):
    """What is another number in each run: (seed, offset) of each generator, and rates."""

    draws: Sequence[tuple[int, int]]
    rates: Sequence[float]

    def others(self) -> Numbers:
        """Other ones."""
        draws = [((seed + 1) % _MOST, (offset + 1) % _MOST) for seed, offset in self.draws]
        return Numbers(draws, [rate * 1.5 + 0.25 for rate in self.rates])


@dataclass
class Step:
    """What runs for a call of the plan: the noted calls in C, or the kernel in Python and the reason for that."""

    notes: list[Note]
    reason: str = ""

    @cached_property
    def operands(self) -> list[Operand]:
        """The arrays among the arguments of the noted calls."""
        return [operand for note in self.notes for operand in note.operands()]


class Twins:
    """Kernels that do the same as those of the backend, and whose calls in C are noted.

    Args:
        functions: the functions of the level.
        kernels: the backend's.
        table: makes the kernels over a library.
    """

    def __init__(self, functions: Functions, kernels: Iterable, table: Callable[[Any], Iterable]):
        self.functions = functions
        self.lock = threading.Lock()  # held while a plan's first run listens to the twins
        self.recording = Recording(functions.lib, functions.ffi)
        self._twins = {
            kernel.function: (twin.function, kernel.looks_at)
            for kernel, twin in zip(kernels, table(self.recording), strict=True)
        }
        self.handler = allocator.handler_at(functions.lib.marking_handler())
        self.proved: set[Any] = set()  # kinds of calls (see `kinds.py`)
        self.scratch = Scratch()

    def of(self, call: Call, constant: Callable[[Cell], bool]) -> Callable:
        """The twin of a call's kernel; Unproved if there is none, or its calls may be others in the next run."""
        if isinstance(call.op, Deed):
            if call.op.name in ("copy", "clone", "cast") and call.dispatch_key.runtime.array_type is np.ndarray:
                return getattr(self, f"_{call.op.name}")
            raise Unproved("not a kernel")
        if hasattr(call.kernel, "over"):  # of a fusion
            return call.kernel.over(self.recording)
        try:
            twin, looks_at = self._twins[call.kernel]
        except (KeyError, TypeError):
            raise Unproved(f"a kernel of {call.who}") from None
        for p, argument in zip(call.op.kernel_parameters, call.arguments, strict=False):
            if p.name in looks_at and argument.__class__ is Cell and not constant(argument):
                raise Unproved(f"the elements of {p.name} choose what it does")
        return twin

    def has_kinds(self, call: Call) -> bool:
        """Whether calls of a kernel can be of one kind: not if it looks at elements, or is of one fusion alone."""
        return not hasattr(call.kernel, "over") and not self._twins.get(call.kernel, (None, ()))[1]

    def _copy(self, target, array):
        if self.recording.copy(id(array), id(target)):
            raise Unproved("copied by NumPy")

    def _clone(self, array):
        result = like(array)
        self._copy(result, array)
        return result

    def _cast(self, array, dtype):
        result = like(array, dtype.numpy)
        self._copy(result, array)
        return result


class FirstRun:
    """The first run of a plan.

    Attributes:
        places: where the arrays of cells lie.
        steps: what runs for each call; None if nothing does, for views and fresh memory.
        refusal: why runs cannot be prepared at all; "" if they can.
    """

    def __init__(self, plan: Plan, twins: Twins):
        self.plan, self.twins = plan, twins
        self.places: dict[Cell, Place] = {}
        self.steps: list[Step | None] = []
        self.refusal = ""
        self._arrays: dict[Cell, np.ndarray] = {}
        self._spans: dict[Cell, Span] = {}
        self._placing: Call | None = None  # the call of which `_by_id` has the arrays
        self._by_id: dict[int, Cell] = {}
        self._changed = {cell.memory for call in plan.calls for cell in call.changed()}

    def __call__(self, given: Sequence[np.ndarray], numbers: Numbers) -> list[np.ndarray]:
        """Run the plan."""
        for cell, array in zip(self.plan.given, given, strict=True):
            self._put(cell, array, placed(array, Memory("given", cell)))
        for cell in self.plan.cells():
            if cell.kind == "held":
                self._put(cell, cell.array, placed(cell.array, Memory("held", cell)))
        gone: dict[int, list[Cell]] = {}
        for cell, i in self.plan.last_uses().items():
            gone.setdefault(i, []).append(cell)
        for i, call in enumerate(self.plan.calls):
            if i in self.plan.releases:
                self.plan.releases[i]()
            self.steps.append(self._run(call, numbers))
            self._use(i, call)
            for cell in gone.get(i, ()):
                del self._arrays[cell]
        if len(self.plan.calls) in self.plan.releases:
            self.plan.releases[len(self.plan.calls)]()
        results = [self._arrays[cell] for cell in self.plan.returned]
        self._arrays.clear()
        self._spans.clear()
        self.twins.scratch.release()
        return results

    def _put(self, cell: Cell, array: np.ndarray, place: Place) -> None:
        self._arrays[cell], self.places[cell] = array, place

    def _span(self, cell: Cell) -> Span:
        found = self._spans.get(cell)
        if found is None:
            found = self._spans[cell] = Span.of(self._arrays[cell])
        return found

    def _put_all(self, call: Call, results: list[np.ndarray], places: list[Place]) -> None:
        for cell, array, place in zip(call.results, results, places, strict=True):
            self._put(cell, array, place)

    def _use(self, i: int, call: Call) -> None:
        """Tell the memory that a call uses it."""
        step = self.steps[i]
        for cell in call.results if step is None else (*call.cells(), *call.results):
            self.places[cell].memory.use(i)
        for operand in step.operands if step else ():
            if operand.place is not None:
                operand.place.memory.use(i)

    # -- one call -----------------------------------------------------------------------------------------------------
    def _run(self, call: Call, numbers: Numbers) -> Step | None:
        """Make a call, and find what runs for it from now on."""
        arguments = [filled(argument, self._arrays, numbers) for argument in call.arguments]
        options = {} if call.out is None else {"out": self._arrays[call.out]}
        if call.op.view or call.op is DEEDS["empty"]:
            results = results_of(call, call.kernel(*arguments, **options))
            return self._shown(call, results)
        if call.op.name == "cat" and (joint := self._side_by_side(call)) is not None:
            self._put_all(call, results_of(call, call.kernel(*arguments)), [joint])
            return None
        try:
            twin = self.twins.of(call, self._is_constant)
        except Unproved as reason:
            return self._in_python(call, arguments, options, str(reason))
        spans = _joined(map(self._span, call.changed()))
        before = {span: span.content() for span in spans}
        try:
            results = results_of(call, self._noted(call, twin, arguments, options))
            if [(a.shape, a.strides, a.dtype) for a in results] != [
                (cell.shape, cell.strides, cell.dtype) for cell in call.results
            ]:
                raise Unproved("its result lies otherwise in C")
        except Exception as reason:  # what is wrong the kernel itself will say
            for span, content in before.items():
                span.restore(content)
            return self._in_python(call, arguments, options, str(reason))
        step = Step(self.twins.recording.notes)
        try:
            places = self._proved(call, numbers, step, results, before)
        except Unproved as reason:
            return self._made(call, results, str(reason))
        self._put_all(call, results, places)
        return step

    def _noted(self, call: Call, twin: Callable, arguments: list, options: dict) -> Any:
        recording = self.twins.recording
        recording.begin([self._arrays[cell] for cell in call.cells()])
        thread.lib = recording
        try:
            with allocator.use(self.twins.handler):
                return twin(*arguments, **options)
        finally:
            thread.lib = None
            recording.end()

    def _in_python(self, call: Call, arguments: list, options: dict, reason: str) -> Step | None:
        return self._made(call, results_of(call, call.kernel(*arguments, **options)), reason)

    def _made(self, call: Call, results: list, reason: str) -> Step | None:
        """The step of a call that stays Python's; none if its results show memory of its arguments."""
        places = [*filter(None, (self._place_of_view(call, array) for array in results))]
        if results and not any(call.changed()) and len(places) == len(results):
            self._put_all(call, results, places)
            return None
        self._put_all(call, results, [placed(a, Memory("made", cell)) for cell, a in zip(call.results, results)])
        return Step([], reason)

    def _place_of_view(self, call: Call, array: np.ndarray) -> Place | None:
        """Where a result lies that shows memory of a call's arguments; None if it shows other memory."""
        try:
            return self._place(call, array)
        except Unproved as refusal:
            self.refusal = f"{call.op.name}: {refusal}"
            return None

    def _shown(self, call: Call, results: list) -> Step | None:
        """What runs for a view, or for memory that nobody has written to: nothing."""
        places = []
        for array in results:
            place = self._place_of_view(call, array)
            if place is None and (call.op is DEEDS["empty"] or not array.size):
                owner = owner_of(array)
                place = placed(array, Memory("block", size=owner.nbytes), address_of(array) - address_of(owner))
            if place is None:
                return self._made(call, results, "a view that is a copy")
            places.append(place)
        self._put_all(call, results, places)
        return None

    def _side_by_side(self, call: Call) -> Place | None:
        """The place of a result of `cat` whose operands lie already as they would there, and which nobody changes."""
        (result,), (parts, _) = call.results, call.arguments
        seen = self._changed | {cell.memory for cell in self.plan.returned}
        if not seen.isdisjoint(cell.memory for cell in (*parts, result)):
            return None
        places = [self.places[cell] for cell in parts]
        memory, begin = places[0].memory, places[0].offset
        joint = Place(memory, begin, result.shape, result.strides, result.dtype, True)
        dim = next((d for d, n in enumerate(result.shape) if n != parts[0].shape[d]), None)
        if memory.kind != "block" or dim is None:
            return None
        for place in places:
            if (place.memory, place.offset, place.strides, place.dtype) != (memory, begin, *joint[3:5]):
                return None
            begin += place.shape[dim] * place.strides[dim]
        return joint

    def _is_constant(self, cell: Cell) -> bool:
        return cell.kind == "held" and cell.name == "constant" and cell.memory not in self._changed

    # -- places and proofs --------------------------------------------------------------------------------------------
    def _place(self, call: Call, array: np.ndarray) -> Place | None:
        """Where an array lies that shows memory of a call's arguments; None if it shows other memory."""
        if call is not self._placing:
            self._placing, self._by_id = call, {id(self._arrays[cell]): cell for cell in reversed([*call.cells()])}
        if id(array) in self._by_id:
            return self.places[self._by_id[id(array)]]
        if not array.size:
            return None
        span, found = Span.of(array), {}
        for cell in self._by_id.values():
            if self._span(cell).contains(span):
                place = self.places[cell]
                distance = address_of(array) - address_of(self._arrays[cell])
                found[place.memory] = placed(array, place.memory, place.offset + distance)
        if len(found) > 1 and any(memory.kind != "held" for memory in found):
            raise Unproved("arguments that share memory")
        return next(iter(found.values()), None)

    def _proved(
        self, call: Call, numbers: Numbers, step: Step, results: list, before: dict[Span, np.ndarray]
    ) -> list[Place]:
        """The places of a call's results, and of all operands, if its notes alone lead to the same; else Unproved."""
        recording, notes = self.twins.recording, step.notes
        if recording.refusal:
            raise Unproved(recording.refusal)
        if not notes:
            raise Unproved("computed by NumPy")
        blocks: dict[int, Memory] = {}
        made: list[np.ndarray] = []

        def place_of(array: np.ndarray) -> Place | None:
            owner = owner_of(array)
            if not recording.unwritten.get(id(owner), (None, False))[1]:
                return self._place(call, array)
            if id(owner) not in blocks:
                blocks[id(owner)] = Memory("block", size=owner.nbytes)
                made.append(owner)
            return placed(array, blocks[id(owner)], 0 if array is owner else address_of(array) - address_of(owner))

        for operand in step.operands:
            operand.place = place_of(operand.array)
        places = [*filter(None, map(place_of, results))]
        if len(places) < len(results):
            raise Unproved("NumPy makes its result")
        self._mark_rates(call, notes, numbers)
        has_kind = self.twins.has_kinds(call)
        kind = kind_of(call, self.places.__getitem__, notes, places) if has_kind else None
        if kind in self.twins.proved:
            Changed(before).check(operand.array for operand in step.operands)
        else:
            self._try(call, numbers, notes, results, before, made)
            self.twins.proved.update([kind] if kind is not None else [])
        self._let_go(step)
        return places

    def _try(
        self, call: Call, numbers: Numbers, notes: list[Note], results: list, before: dict[Span, np.ndarray],
        made: list[np.ndarray],
    ) -> None:  # fmt: skip
        """Make noted calls on other memory, also in place of what they have `made`; Unproved unless they lead to the
        same."""
        self.twins.scratch.begin()
        trial, functions = Trial(before, self.twins.scratch), self.twins.functions
        for owner in made:
            trial.replace(owner)
        words = Words(functions, notes, lambda operand: trial.of(operand.array))
        trial.run(functions, words, results, [*results, *(span.array() for span in before)])
        given = [a for a in call.arguments if isinstance(a, Seed | Rate)]
        if given:
            if len(words.varied) < len(given):
                raise Unproved("it computes with numbers that are others in each run")
            other = numbers.others()
            for target, i, what in words.varied:
                target[i] = filled(what, {}, other)
            trial.begin()
            trial.run(functions, words, results, self._expected(call, other, before))

    def _mark_rates(self, call: Call, notes: list[Note], numbers: Numbers) -> None:
        """Tell the structs of optimizers which of their numbers are others in each run."""
        steps = [argument for note in notes for argument in note.arguments if argument.__class__ is StepStruct]
        parameters: Sequence[Any] = call.op.kernel_parameters
        for p, argument in zip(parameters, call.arguments, strict=False):
            for step in steps if argument.__class__ is Rate else ():
                step.rates[REALS[p.name]] = filled(argument, {}, numbers)

    def _expected(self, call: Call, numbers: Numbers, before: dict[Span, np.ndarray]) -> list[np.ndarray]:
        """The results, and what is changed, of a call with other numbers on copies of what it changes."""
        copies = Trial(before, self.twins.scratch)
        arrays = {cell: copies.of(self._arrays[cell]) for cell in call.cells()}
        arguments = [filled(argument, arrays, numbers) for argument in call.arguments]
        options = {} if call.out is None else {"out": arrays[call.out]}
        try:
            results = results_of(call, call.kernel(*arguments, **options))
        except Exception as reason:  # a momentum of 0 has no buffers, with which others would need one
            raise Unproved(f"it takes no other numbers: {reason}") from None
        return [*results, *copies.contents()]

    def _let_go(self, step: Step) -> None:
        """Keep of the operands' arrays those that are the same in each run: held ones, and what others keep."""
        self.twins.recording.unwritten.clear()
        constants = []
        for operand in step.operands:
            if operand.place is None and operand.array.size:
                constants.append((operand, weakref.ref(operand.array)))
            if operand.place.memory.kind != "held" if operand.place else operand.array.size:
                operand.array = None
        for operand, found in constants:
            operand.array = found()
            if operand.array is None:
                raise Unproved("NumPy makes an array for it")


def filled(argument: Any, arrays: dict[Cell, np.ndarray], numbers: Numbers) -> Any:
    """An argument of a call, with arrays in place of cells, and numbers as they are in a run."""
    kind = argument.__class__
    if kind is Cell:
        return arrays[argument]
    if kind in (list, tuple):
        return kind([filled(item, arrays, numbers) for item in argument])
    if kind is Seed:
        return Seed(numbers.draws[argument.source][0], argument.source)
    if kind is Offset:
        start = numbers.draws[argument.source][1]
        return Offset((start + argument - argument.start) % _MOST, argument.source, start)
    if kind is Rate:
        return Rate(numbers.rates[argument.source], argument.source)
    return argument


def results_of(call: Call, value: Any) -> list[np.ndarray]:
    """What a kernel returned as the arrays of a call's results."""
    if not call.results:
        return []
    runtime = call.dispatch_key.runtime
    return [a if a.__class__ is runtime.array_type else runtime.wrap(a) for a in (value if call.several else (value,))]


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans, those that overlap as one."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and joined[-1].overlaps(span):
            joined[-1] = Span(joined[-1].begin, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined
