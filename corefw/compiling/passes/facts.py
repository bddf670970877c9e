"""What passes ask of a plan: who uses a cell, what is written when, which calls may be left out."""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any

from corefw.compiling.elementwise import is_constant
from corefw.dispatch.calls import reach
from corefw.dispatch.plan import Call, Cell, Plan, Rate, Seed
from corefw.dispatch.runtime import Runtime


def varies(call: Call) -> bool:
    """Whether a call draws random numbers, or is given another number in each run."""
    arguments = (item for a in call.arguments for item in (a if a.__class__ in (list, tuple) else (a,)))
    return any(isinstance(item, Seed | Rate) for item in arguments)


def only_computes(call: Call) -> bool:
    """Whether all that a call does is to return its results, the same ones for equal arrays."""
    return bool(call.results) and not varies(call) and next(call.changed(), None) is None


@dataclass
class Facts:
    """Of a plan as it is when this is made.

    Attributes:
        calls: those of the plan.
        makers: by result the call that it is of, by its place.
        uses: by cell the calls that read or write to it, by their places.
        writes: the calls that change memory, each with the cells that own it, in order.
        written: by cell that owns memory the calls that change it, by their places.
        returned: the cells whose memory a run returns.
        shown: the cells whose memory views show.
    """

    calls: list[Call] = field(default_factory=list)
    makers: dict[Cell, int] = field(default_factory=dict)
    uses: dict[Cell, list[int]] = field(default_factory=dict)
    writes: list[tuple[int, list[Cell]]] = field(default_factory=list)
    written: dict[Cell, list[int]] = field(default_factory=dict)
    returned: set[Cell] = field(default_factory=set)
    shown: set[Cell] = field(default_factory=set)
    _runtime: Runtime | None = None
    _reaches: dict[Cell, Any] = field(default_factory=dict)
    _changes: dict[Cell, list[int]] = field(default_factory=dict)
    _outside: _Outside | None = None

    @classmethod
    def of(cls, plan: Plan) -> Facts:
        """The facts of a plan."""
        shown = {cell.owner for cell in plan.cells() if cell.owner is not None}
        made = cls(plan.calls, returned={cell.memory for cell in plan.returned}, shown=shown)
        for i, call in enumerate(plan.calls):
            made.makers.update(dict.fromkeys(call.results, i))
            for cell in dict.fromkeys(call.cells()):
                made.uses.setdefault(cell, []).append(i)
            if written := [cell.memory for cell in call.changed()]:
                made.writes.append((i, written))
                for memory in dict.fromkeys(written):
                    made.written.setdefault(memory, []).append(i)
        if plan.calls:
            made._runtime = plan.calls[0].dispatch_key.runtime
        return made

    def writes_between(self, start: int, stop: int) -> list[tuple[int, list[Cell]]]:
        """Those of the writes that stand in some places, the last one among them."""
        first, last = (bisect(self.writes, place, key=lambda write: write[0]) for place in (start - 1, stop))
        return self.writes[first:last]

    def changes(self, cell: Cell, place: int) -> int:
        """How many calls before a place may change what lies in a cell's memory."""
        memory = cell.memory
        if memory not in self._changes:
            others = [memory] if _is_alone(memory) else self._written_over(memory)
            self._changes[memory] = sorted({at for other in others for at in self.written.get(other, ())})
        return bisect_left(self._changes[memory], place)

    def _written_over(self, memory: Cell) -> list[Cell]:
        """Those of the written memories from outside that may be the same as one."""
        if self._outside is None:
            cells = [cell for cell in self.written if not _is_alone(cell)]
            self._outside = _Outside(cells, {c: self._reach(c) for c in cells if c.kind != "given"})
        if memory.kind == "given":
            return self._outside.cells
        own = [memory] if memory in self.written else []
        return [*own, *self._outside.given, *self._outside.over(*(self._reach(memory) or (0, 0)))]

    def is_written(self, cell: Cell) -> bool:
        """Whether a call changes what lies in its memory."""
        return cell.memory in self.written

    def may_run(self, members: Mapping[int, Iterable[Cell]], place: int, place_of: Callable[[int], int]) -> bool:
        """Whether calls may be made in the place of one of them: what they need is there, nobody has needed their
        results before, and nobody changes in between what they read.

        Args:
            members: the places of the calls, and what each reads.
            place_of: where another call runs as things stand.
        """
        for i, operands in members.items():
            for cell in operands:
                maker = self.makers.get(cell)
                if maker is not None and maker not in members and place_of(maker) >= place:
                    return False
            for cell in self.calls[i].results:
                if any(use not in members and place_of(use) <= place for use in self.uses.get(cell, ())):
                    return False
            if i != place and not self.are_unchanged(operands, min(i, place), max(i, place), members):
                return False
        return True

    def are_unchanged(self, cells: Iterable[Cell], start: int, stop: int, members: Container[int]) -> bool:
        """Whether what some cells hold is the same all the way from one place to another one, but for what `members`
        change."""
        for at, written in self.writes_between(start, stop):
            if at not in members and any(self.may_share(cell, memory) for cell in cells for memory in written):
                return False
        return True

    def is_own(self, cell: Cell) -> bool:
        """Whether it alone shows its memory, which is the plan's, and holds what it was made with."""
        if cell.kind != "result" or cell.owner is not None or cell in self.returned or cell in self.shown:
            return False
        return not self.is_written(cell)

    def may_share(self, cell: Cell, other: Cell) -> bool:
        """Whether two cells may lie in one memory: what is given may lie over all that comes from outside."""
        cell, other = cell.memory, other.memory
        if cell is other:
            return True
        if _is_alone(cell) or _is_alone(other):
            return False
        if "given" in (cell.kind, other.kind):
            return True
        first, second = self._reach(cell), self._reach(other)
        return first is not None and second is not None and first[0] < second[1] and second[0] < first[1]

    def _reach(self, cell: Cell) -> tuple[int, int] | None:
        """Between which addresses a cell from outside lies."""
        if cell not in self._reaches:
            assert self._runtime is not None
            self._reaches[cell] = reach(self._runtime, cell.array)
        return self._reaches[cell]


class _Outside:
    """Written memories from outside: `cells` all of them, `given` those that may lie anywhere.

    Args:
        cells: all of them.
        reaches: where the others lie; None of one without elements.
    """

    def __init__(self, cells: list[Cell], reaches: dict[Cell, Any]):
        self.cells, self.given = cells, [cell for cell in cells if cell not in reaches]
        self._lying = sorted(((*reach, cell) for cell, reach in reaches.items() if reach), key=itemgetter(0))
        self._begins = [begin for begin, _, _ in self._lying]
        self._reached = [*accumulate((end for _, end, _ in self._lying), max)]  # by them and all that begin before

    def over(self, begin: int, end: int) -> Iterator[Cell]:
        """Those that have addresses in common with some."""
        i = bisect_left(self._begins, end)
        while i and self._reached[i - 1] > begin:
            i -= 1
            if self._lying[i][1] > begin:
                yield self._lying[i][2]


def _is_alone(memory: Cell) -> bool:
    """Whether no other cell's memory may be the same: it is the plan's own."""
    return memory.kind == "result" or is_constant(memory)
