"""Runs of plans: the first one prepares the calls of kernels, the others make them in C, one after the other."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import prod
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.plan import Call, Cell, Offset, Plan, Rate, Seed, cells_in
from corefw.dispatch.straight import Run, straight
from corefw.shapes import contiguous_strides
from corefw_c.replaying import arena
from corefw_c.replaying.places import Memory, Place, address_of, placed
from corefw_c.replaying.preparing import FirstRun, Numbers, Twins, filled, results_of
from corefw_c.replaying.recording import Operand
from corefw_c.replaying.words import Functions, Words
from corefw_c.replaying.writing import Writer, as_before, number, shown

ALIGNED, WRITABLE = 0x100, 0x400  # among NumPy's flags
#: the noted calls that may write to what they read, element by element
_ELEMENTWISE = (["elementwise_apply"], ["fused_run"])


class MemoryUse(NamedTuple):
    """Bytes of a plan's own memory: what it has, what it would need if no two arrays shared any, and the most that is
    in use at once."""

    arena: int
    unshared: int
    least: int


class Replay:
    """A plan's runs. They come one at a time, and so do the first runs of all plans; one that finds another going on,
    in another thread or around itself, makes its calls in Python.

    Attributes:
        run: what runs it now.
        steps: after the first run, what runs for each call of the plan.
        memory: the plan's own memory.
    """

    def __init__(self, plan: Plan, twins: Twins):
        self.plan, self._twins = plan, twins
        self._lock = threading.Lock()
        self.run: Run = self._prepare
        self._aside: Run | None = None
        self._program: Program | None = None
        self.steps: list = []
        self.memory = MemoryUse(0, 0, 0)

    @property
    def bytes_kept(self) -> int:
        """How much memory it keeps between runs."""
        return self.memory.arena

    def measure(self, times: list[float] | None) -> None:
        """Have runs add to `times` the seconds that each call of the plan takes, or to nothing any more."""
        if self._program is not None:
            self.run = self._program.run(self._lock, times)

    def __call__(
        self, given: Sequence[np.ndarray], draws: Sequence[tuple[int, int]], rates: Sequence[float]
    ) -> list[np.ndarray]:
        """Run the plan."""
        return self.run(given, draws, rates)

    def _prepare(
        self, given: Sequence[np.ndarray], draws: Sequence[tuple[int, int]], rates: Sequence[float]
    ) -> list[np.ndarray]:
        """The first run, unless another one is going on."""
        if not self._lock.acquire(blocking=False):
            return self._straight(given, draws, rates)
        try:
            if not self._twins.lock.acquire(blocking=False):
                return self._straight(given, draws, rates)
            try:
                return self._first(given, Numbers(draws, rates))
            finally:
                self._twins.lock.release()
        finally:
            self._lock.release()

    def _straight(
        self, given: Sequence[np.ndarray], draws: Sequence[tuple[int, int]], rates: Sequence[float]
    ) -> list[np.ndarray]:
        """A run of the plan in Python."""
        self._aside = self._aside or straight(self.plan)
        return self._aside(given, draws, rates)

    def _first(self, given: Sequence[np.ndarray], numbers: Numbers) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            first = FirstRun(self.plan, self._twins)
            results = first(given, numbers)
        if first.refusal:
            self.run = self._straight
            return results
        self._program = program = Program(self.plan, first, self._twins.functions, self._straight)
        self.steps, self.memory, self.run = first.steps, program.memory, program.run(self._lock)
        return results


def maker(level: str, kernels: Iterable[Kernel], table: Callable[[Any], Iterable[Kernel]]) -> Callable[[Plan], Run]:
    """What makes runs of plans by the kernels of a level, which `table` makes over a library."""
    twins = Twins(Functions(level), kernels, table)
    return lambda plan: Replay(plan, twins)


class Program:
    """A prepared plan: its memory, its arrays, its calls in C, and the Python function around them."""

    def __init__(self, plan: Plan, first: FirstRun, functions: Functions, otherwise: Run):
        self.plan, self.places, self.steps, self.functions = plan, first.places, first.steps, functions
        self.otherwise = otherwise  # for arrays that are not as aligned or writable as they were
        self.returned = {self.places[cell].memory for cell in plan.returned}
        self.fresh = [memory for memory in self.returned if memory.kind == "block"]
        # it is asked for as late as memory is let go that may serve
        self.since = {memory: max((i for i in plan.releases if i <= memory.first), default=0) for memory in self.fresh}
        self._lay_out()
        self.arrays: dict[Place, np.ndarray] = {}
        self.pointed: dict[Memory, list[tuple[np.ndarray, int]]] = {}
        notes = [note for step in self.steps if step for note in step.notes]
        self.words = Words(functions, notes, self._operand)
        self.calls = [i for i, step in enumerate(self.steps) if step for _ in step.notes]  # by prepared call
        for call, step in zip(plan.calls, self.steps):  # what a kernel needs that runs in Python, before all are known
            for cell in (*call.cells(), *call.results):
                if step is not None and (step.notes or not self._variable(cell)):
                    self.array(self.places[cell])

    # -- memory -------------------------------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        """Give each block of the plan's own a place: in what will be returned, until that is written to, or in the
        arena."""
        memories = dict.fromkeys(place.memory for place in self.places.values())
        for step in self.steps:
            used = (operand.place for operand in step.operands) if step else ()
            memories.update(dict.fromkeys(place.memory for place in used if place is not None))
        own = self._apart([m for m in memories if m.kind == "block" and m not in self.returned])
        rooms = [arena.Room(memory.size, memory.first, self.since[memory]) for memory in self.fresh]
        lodged = arena.lodged([arena.Block(m.size, m.first, m.last) for m in own], rooms)
        self.lodged = {own[i]: (self.fresh[r], begin) for i, (r, begin) in lodged.items()}
        own = [m for m in own if m not in self.lodged]
        blocks = [arena.Block(memory.size, memory.first, memory.last) for memory in own]
        begins, total = arena.offsets(blocks)
        room = np.empty(total + arena.ALIGNMENT, np.uint8)
        start = -address_of(room) % arena.ALIGNMENT
        self.arena = room[start : start + total]
        self.begins = dict(zip(own, begins))
        self.memory = MemoryUse(total, sum(arena.aligned(block.size) for block in blocks), arena.most(blocks))

    def _apart(self, own: list[Memory]) -> list[Memory]:
        """Those of the blocks that no other one is the memory of: the result of an elementwise call takes that of an
        operand which lies alike and is not used any more."""
        self.inside: dict[Memory, Memory] = {}
        blocks = set(own)
        for i, step in enumerate(self.steps):
            if step is None or [note.function for note in step.notes] not in _ELEMENTWISE:
                continue
            places = [operand.place for operand in step.operands if operand.place and _is_all(operand.place)]
            places = [place for place in places if place.memory in blocks]
            leaving = [place for place in places if place.memory.first < place.memory.last == i]
            for made in [place for place in places if place.memory.first == i]:
                if alike := [place for place in leaving if place[2:5] == made[2:5]]:  # shape, strides, dtype
                    leaving = [place for place in leaving if place.memory is not alike[0].memory]
                    root = self.inside[made.memory] = self.inside.get(alike[0].memory, alike[0].memory)
                    root.last = made.memory.last
        return [memory for memory in own if memory not in self.inside]

    def _operand(self, operand: Operand) -> np.ndarray:
        return operand.array if operand.array is not None else self.array(operand.place)

    def array(self, place: Place) -> np.ndarray:
        """The array object of a place, the same in each run."""
        if place not in self.arrays:
            self.arrays[place] = self._new_array(place)
        return self.arrays[place]

    def _new_array(self, place: Place) -> np.ndarray:
        memory, offset, shape, strides, dtype, writable = place
        memory = self.inside.get(memory, memory)
        if memory.kind == "held":
            assert memory.source is not None
            held = memory.source.array
            return held if place == placed(held, memory) else shown(held, place)
        if memory in self.begins:
            return np.ndarray(shape, dtype, self.arena, self.begins[memory] + offset, strides)
        array = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides, writeable=writable)
        room, begin = self.lodged.get(memory, (memory, 0))
        self.pointed.setdefault(room, []).append((array, begin + offset))
        return array

    # -- the function -------------------------------------------------------------------------------------------------
    def run(self, lock: threading.Lock, times: list[float] | None = None) -> Run:
        """The function that runs the plan, while it has the lock; it adds to `times`, if they are given, the seconds
        that each call takes."""
        writer = Writer()
        lines = writer.lines
        places = [self.places[cell] for cell in self.plan.returned]
        self.whole = {place.memory: place for place in places if _is_all(place)}
        given = [self.places[cell].memory for cell in self.plan.given]
        fresh = self._begin(writer, 0)
        names = ", ".join(self._fresh(memory) for memory in fresh)
        self._pointing = self._pointed(writer, given + fresh, f"[*given, {names}]" if fresh else "given")
        for target, i, what in self.words.varied:
            lines.append(f"{writer.name(target)}[{i}] = {number(what)}")
        begin = end = 0
        made: dict[Cell, int] = {}
        for i, (call, step) in enumerate(zip(self.plan.calls, self.steps)):
            if i and i in self.plan.releases:
                self._run_prepared(writer, begin, end)
                begin = end
                self._release(writer, i)
            if step is None:
                continue
            end += len(step.notes)
            if step.notes and times is None:
                continue
            if not step.notes:
                self._run_prepared(writer, begin, end)
                self._point(writer)
                begin = end
                self._let_go(writer, made, i)
            if times is not None:
                lines.append(f"begun = {writer.name(perf_counter)}()")
            if step.notes:
                self._run_prepared(writer, begin, end)
                begin = end
            else:
                self._call(writer, call)
                made.update((cell, self.places[cell].memory.last) for cell in call.results)
            if times is not None:
                lines.append(f"{writer.name(times)}[{i}] += {writer.name(perf_counter)}() - begun")
            if not step.notes:
                self._let_go(writer, made, i + 1)
        self._run_prepared(writer, begin, end)
        if len(self.plan.calls) in self.plan.releases:
            self._release(writer, len(self.plan.calls))
        lines.append(f"return [{', '.join(self._returned(writer, cell) for cell in self.plan.returned)}]")
        otherwise = f"return {writer.name(self.otherwise)}(given, draws, rates)"
        return writer.function(
            "run(given, draws, rates)",
            *(f"if not {writer.name(lock.acquire)}(False): {otherwise}", "try:", *(f"    {line}" for line in lines)),
            *("finally:", f"    {writer.name(lock.release)}()"),
        )

    def _begin(self, writer: Writer, i: int) -> list[Memory]:
        """Let go of what the plan says before call number `i`, and ask for the memory that is there from then on."""
        if i in self.plan.releases:
            writer.lines.append(f"{writer.name(self.plan.releases[i])}()")
        fresh = [memory for memory in self.fresh if self.since[memory] == i]
        for memory in fresh:
            whole = self.whole.get(memory)
            shape, dtype = (whole.shape, whole.dtype) if whole else (memory.size, np.dtype(np.uint8))
            made = f"{writer.name(np.empty)}({writer.name(shape)}, {writer.name(dtype)})"
            writer.lines.append(f"{self._fresh(memory)} = {made}")
        return fresh

    def _release(self, writer: Writer, i: int) -> None:
        """The same between two calls."""
        self._point(writer)
        if fresh := self._begin(writer, i):
            self._pointing = self._pointed(writer, fresh, f"[{', '.join(map(self._fresh, fresh))}]")
            self._point(writer)

    def _fresh(self, memory: Memory) -> str:
        """The name of the array of memory that a run returns."""
        return f"f{self.fresh.index(memory)}"

    def _pointed(self, writer: Writer, sources: list[Memory], arrays: str) -> str:
        """Have the arrays that show the memory of others show it, which are known only now: the arguments in C for
        that; "" if there are none."""
        rows = [
            (id(array), i, offset, ALIGNED | (WRITABLE if self._is_writable(memory) else 0))
            for i, memory in enumerate(sources)
            for array, offset in self.pointed.get(memory, ())
        ]
        if not rows:
            return ""
        if arrays != "given":
            writer.lines.append(f"sources = {arrays}")
        table = self.functions.ffi.new("struct pointed[]", rows)
        return f"{writer.name(table)}, {len(rows)}, id({'given' if arrays == 'given' else 'sources'})"

    def _point(self, writer: Writer) -> None:
        """Have arrays show others' memory, if they do not by now."""
        if self._pointing:
            point, otherwise = writer.name(self.functions.lib.point_arrays), writer.name(self.otherwise)
            writer.lines.append(f"if {point}({self._pointing}): return {otherwise}(given, draws, rates)")
        self._pointing = ""

    def _is_writable(self, memory: Memory) -> bool:
        return memory.source is None or self.places[memory.source].writable

    def _run_prepared(self, writer: Writer, begin: int, end: int) -> None:
        if begin == end:
            return
        lib, calls, otherwise = self.functions.lib, writer.name(self.words.calls), writer.name(self.otherwise)
        run = writer.name(lib.run_prepared)
        if self._pointing:
            writer.lines += [
                f"n = {writer.name(lib.point_and_run)}({self._pointing}, {calls}, {end})",
                f"if n < 0: return {otherwise}(given, draws, rates)",
            ]
        else:
            writer.lines.append(f"n = {run}({calls}, {begin}, {end})")
        again = writer.name(self.again)
        writer.lines.append(f"while n < {end}: n = {run}({calls}, {again}(n, draws, rates), {end})")
        self._pointing = ""

    def _let_go(self, writer: Writer, made: dict[Cell, int], i: int) -> None:
        """Let go of the arrays that no call from number `i` on uses."""
        gone = [c for c, last in made.items() if last < i and self.places[c].memory not in self.returned]
        for cell in gone:
            del made[cell]
            writer.lines.append(f"m{cell.number} = None")

    def _call(self, writer: Writer, call: Call) -> None:
        """A call that stays Python's."""
        arguments = [self._argument(writer, argument) for argument in call.arguments]
        if call.out is not None:
            arguments.append(f"out={self._argument(writer, call.out)}")
        made = f"{writer.name(call.kernel)}({', '.join(arguments)})"
        results = ", ".join(f"m{cell.number}" for cell in call.results)
        results += "," if call.several and len(call.results) == 1 else ""
        writer.lines.append(f"{results} = {made}" if results else made)
        for cell in call.results:
            array, place = f"m{cell.number}", self.places[cell]
            writer.lines.append(
                f"{array} = {writer.name(as_before)}({array}, {writer.name(call)}, {writer.name(place)})"
            )
            self._pointing = self._pointed(writer, [place.memory], f"[{array}]")
            self._point(writer)

    def _argument(self, writer: Writer, argument: Any) -> str:
        kind = argument.__class__
        if kind is Cell:
            return self._variable(argument) or writer.name(self.array(self.places[argument]))
        if kind in (list, tuple) and any(cells_in((argument,))):
            items = "".join(f"{self._argument(writer, item)}, " for item in argument)
            return f"[{items}]" if kind is list else f"({items})"
        if kind in (Seed, Offset, Rate):
            return number(argument)
        return writer.name(argument)

    def _variable(self, cell: Cell) -> str:
        """The name of the array of a cell that is another one in each run; "" for others."""
        memory = self.places[cell].memory
        if memory.source is not cell or memory.kind == "held":
            return ""
        return f"given[{self.plan.given.index(cell)}]" if memory.kind == "given" else f"m{cell.number}"

    def _returned(self, writer: Writer, cell: Cell) -> str:
        """The array of a cell that a run returns."""
        place = self.places[cell]
        if place.memory.kind == "held":
            return writer.name(self.array(place))
        if place.memory.kind != "block":
            assert place.memory.source is not None
            own, source = self._variable(cell), self._variable(place.memory.source)
            return own or f"{writer.name(shown)}({source}, {writer.name(place)})"
        source = self._fresh(place.memory)
        if place == self.whole.get(place.memory):
            return source
        shape, dtype, offset, strides = map(writer.name, (place.shape, place.dtype, place.offset, place.strides))
        return f"{writer.name(np.ndarray)}({shape}, {dtype}, {source}, {offset}, {strides})"

    def again(self, n: int, draws: Sequence[tuple[int, int]], rates: Sequence[float]) -> int:
        """Run the kernel of a call whose prepared call number `n` failed, for it explains or knows another way; returns
        the number of the next call's first one."""
        call = self.plan.calls[self.calls[n]]
        arrays = {cell: self.array(self.places[cell]) for cell in (*call.cells(), *call.results)}
        arguments = [filled(argument, arrays, Numbers(draws, rates)) for argument in call.arguments]
        options = {} if call.out is None else {"out": arrays[call.out]}
        with np.errstate(all="ignore"):
            for cell, array in zip(call.results, results_of(call, call.kernel(*arguments, **options)), strict=True):
                np.copyto(arrays[cell], array, casting="no")
        return bisect_right(self.calls, self.calls[n])


def _is_all(place: Place) -> bool:
    """Whether the elements of a place, in row-major order, are all of its memory."""
    if place.offset or prod(place.shape) * place.dtype.itemsize != place.memory.size:
        return False
    return place.strides == tuple(step * place.dtype.itemsize for step in contiguous_strides(place.shape))
