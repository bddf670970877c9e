"""Fusion: chains of elementwise calls, and a sum at their end, become one call where a backend has kernels for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod

from corefw.compiling.elementwise import Reading, dtype_of, reading
from corefw.compiling.passes.facts import Facts
from corefw.dispatch.fusion import MOST_INPUTS, MOST_OUTPUTS, MOST_PARTS, Fusion, Part, Reduction
from corefw.dispatch.op import Op
from corefw.dispatch.plan import Call, Cell, Plan
from corefw.dispatch.registry import registry
from corefw.dispatch.straight import straight

#: the elements from which on one call alone may be worth a kernel of its own
LARGE = 1 << 16
#: the elements of each sum from which on it is made where they are: of fewer the sums are too many
SUMMED = 32

FUSED = Op("fused", (), lambda *inputs: None, None, None)


@dataclass(eq=False)
class FusedCall(Call):
    """The call of a kernel that a backend made for a fusion."""

    fusion: Fusion | None = None

    def __str__(self) -> str:
        assert self.fusion is not None
        results = ", ".join(map(str, self.results))
        types = ", ".join(cell.type for cell in self.results or self.changed())
        shown = self.fusion.shown([*map(str, self.arguments)])
        if self.out is not None:
            shown += f", out={self.out}"
        return f"{results + ' = ' if results else ''}fused({shown}): {types}; {self.who}"


@dataclass(eq=False)
class _Group:
    """Calls that are to be one, which runs in the place of one of them."""

    members: dict[int, Reading]  # by their places in the plan, in order
    place: int
    shape: tuple
    who: str  # the backend, "" while only casts are there
    reductions: int = 0
    closed: bool = False  # its last member writes to memory from outside: nothing follows


def fusion(plan: Plan) -> Plan:
    """The plan with one call in the place of several, whose intermediate results are not written to memory."""
    grouping = _Grouping(plan)
    groups = grouping.found()
    if not groups:
        return plan
    gone = {i for group in groups for i in group.members}
    made = {group.place: _fused(plan, group, grouping.facts.uses) for group in groups}
    calls = [made.get(i, call) for i, call in enumerate(plan.calls) if i in made or i not in gone]
    return replace(plan, calls=calls)


@dataclass
class _Grouping:
    """The search for groups: each call joins those that compute its operands, if the result may run in one place."""

    plan: Plan
    facts: Facts = field(init=False)
    group_of: dict[int, _Group] = field(default_factory=dict)

    def __post_init__(self):
        self.facts = Facts.of(self.plan)

    def found(self) -> list[_Group]:
        """The groups of at least two calls, and those of one that pay."""
        for i, call in enumerate(self.plan.calls):
            if (alone := self._alone(i, call)) is None:
                continue
            joined = alone
            operands = next(iter(alone.members.values())).operands
            makers = dict.fromkeys(self.facts.makers[c] for c in operands if c in self.facts.makers)
            for group in dict.fromkeys(self.group_of[m] for m in reversed(makers) if m in self.group_of):
                joined = self._joined(joined, group) or joined
            self.group_of.update(dict.fromkeys(joined.members, joined))
        groups = dict.fromkeys(self.group_of.values())
        return [g for g in groups if g.who and (len(g.members) > 1 or self._pays_alone(g))]

    def _pays_alone(self, group: _Group) -> bool:
        if prod(group.shape) < LARGE or group.reductions:
            return False
        return getattr(_kernel(_fusion(self.plan, group, self.facts.uses)[0], group.who), "alone", False)

    def _alone(self, i: int, call: Call) -> _Group | None:
        """A group of one call, if its backend has a kernel for it."""
        found = reading(call)
        if found is None or (found.dim is not None and _summed(found) < SUMMED):
            return None
        conversion = found.expression == "cast"
        if not conversion and _maker(call.who) is None:
            return None
        shape = found.operands[0].shape if found.dim is not None else (call.out or call.results[0]).shape
        group = _Group(
            {i: found}, i, shape, "" if conversion else call.who, int(found.dim is not None), call.out is not None
        )
        if conversion or _kernel(_fusion(self.plan, group, self.facts.uses)[0], call.who) is not None:
            return group
        return None

    def _joined(self, group: _Group, earlier: _Group) -> _Group | None:
        """Both groups as one, if they fit and there is a place for them."""
        if earlier.closed or earlier is group or group.shape != earlier.shape:
            return None
        who = group.who or earlier.who
        reductions = group.reductions + earlier.reductions
        if earlier.who not in ("", who) or reductions > 1:
            return None
        members = dict(sorted((earlier.members | group.members).items()))
        sums = {cell for i, found in members.items() if found.dim is not None for cell in self.plan.calls[i].results}
        if any(not sums.isdisjoint(found.operands) for found in members.values()):
            return None  # a sum is there when all is done
        closed = False
        own = {cell for i in members for cell in self.plan.calls[i].results}
        for i in members:
            out = self.plan.calls[i].out
            if out in own:  # the result has another value from here on
                if any(use < i and use not in members for use in self.facts.uses[out]):
                    return None
            elif out is not None:
                closed = True
        joined = _Group(members, group.place, group.shape, who, reductions, closed)
        if who:
            made, inputs, _ = _fusion(self.plan, joined, self.facts.uses)
            if max(len(inputs) - MOST_INPUTS, len(made.parts) - MOST_PARTS, len(made.outputs) - MOST_OUTPUTS) > 0:
                return None
        elif len(members) >= MOST_INPUTS:
            return None
        places = [max(members)] if joined.closed else sorted(members, reverse=True)
        for joined.place in places:
            if self._may_run(joined):
                return joined
        return None

    def _place_of(self, i: int) -> int:
        """Where a call runs as things stand."""
        return self.group_of[i].place if i in self.group_of else i

    def _may_run(self, group: _Group) -> bool:
        members = {i: found.operands for i, found in group.members.items()}
        return self.facts.may_run(members, group.place, self._place_of)


def _summed(found: Reading) -> int:
    """How many elements each sum has."""
    (operand,) = found.operands
    return prod(operand.shape[d] for d in found.dim or ())


def _maker(who: str) -> Callable | None:
    """The function of a backend that makes kernels of fusions."""
    backend = registry.backends.get(who)
    return None if backend is None else backend.fuse


def _kernel(made: Fusion, who: str) -> Callable | None:
    maker = _maker(who)
    return None if maker is None else maker(made)


def _fusion(plan: Plan, group: _Group, uses: dict[Cell, list[int]]) -> tuple[Fusion, list[Cell], list[Cell]]:
    """What a group computes, the cells that it is given, and those of its results that others need; of these the last
    of full shape is the one that is written to memory that is there, if it does that."""
    own = {cell for i in group.members for cell in plan.calls[i].results}
    inputs = [*dict.fromkeys(c for found in group.members.values() for c in found.operands if c not in own)]
    number = {cell: n for n, cell in enumerate(inputs)}
    parts: list[Part] = []
    written: dict[Cell, int] = {}
    reduction, summed = None, None
    for i, found in group.members.items():
        operands = tuple(number[cell] for cell in found.operands)
        result = plan.calls[i].out or plan.calls[i].results[0]
        if found.dim is not None:
            mean = found.expression == "mean"
            reduction, summed = Reduction(mean, operands[0], found.dim, found.keepdim, dtype_of(result)), result
            continue
        value = len(inputs) + len(parts)
        parts.append(Part(found.expression, operands, found.numbers, dtype_of(result)))
        if result in own:
            number[result] = value
        if result not in own or _is_needed(plan, result, group, uses):
            written[result] = value
    made = Fusion(tuple(map(dtype_of, inputs)), tuple(parts), tuple(written.values()), reduction)
    return made, inputs, [*written, *([] if summed is None else [summed])]


def _is_needed(plan: Plan, cell: Cell, group: _Group, uses: dict[Cell, list[int]]) -> bool:
    return cell in plan.returned or any(use not in group.members for use in uses.get(cell, ()))


def _fused(plan: Plan, group: _Group, uses: dict[Cell, list[int]]) -> FusedCall:
    """The call that takes the place of a group's."""
    made, inputs, results = _fusion(plan, group, uses)
    members = [plan.calls[i] for i in group.members]
    last = members[-1]
    out = last.out if group.closed else None
    kernel = _kernel(made, group.who) or _one_by_one(members, inputs, results, out)
    returned = tuple(cell for cell in results if cell is not out)
    return FusedCall(
        FUSED, last.dispatch_key, kernel, tuple(inputs), returned, True, out, group.who, last.where, fusion=made
    )


def _one_by_one(members: list[Call], inputs: list[Cell], results: list[Cell], out: Cell | None) -> Callable:
    """The kernels of a group's calls, one after the other, for a fusion that its backend refuses."""
    target = [] if out is None or out in inputs else [out]
    run = straight(Plan([*inputs, *target], members, [cell for cell in results if cell is not out]))

    def kernel(*arrays, out=None):
        return tuple(run([*arrays, *([out] if target else [])], (), ()))

    return kernel
