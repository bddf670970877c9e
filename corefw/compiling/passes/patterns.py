"""Patterns: calls that follow each other become one where a backend, whose kernels they are, has a kernel for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from corefw.compiling.passes.facts import Facts
from corefw.dispatch.op import REQUIRED, Op, Parameter
from corefw.dispatch.pattern import Name, Pattern, Step
from corefw.dispatch.plan import Call, Cell, Plan
from corefw.dispatch.registry import registry

#: the ops whose first two arguments may stand in any order
_COMMUTATIVE = {"add", "mul"}


def patterns(plan: Plan) -> Plan:
    """The plan with one call in the place of those of a pattern."""
    names = {call.op.name for call in plan.calls}
    wanted = [(pattern, who) for pattern, who in _offered(plan) if names.issuperset(step.op for step in pattern.steps)]
    if not wanted:
        return plan
    search = _Search(Facts.of(plan))
    for pattern, who in wanted:
        search.find(pattern, who)
    if not search.joined:
        return plan
    made = {found.place: _call(found) for found in search.joined.values()}
    calls = [made.get(i, call) for i, call in enumerate(plan.calls) if i in made or i not in search.joined]
    return replace(plan, calls=calls)


def _offered(plan: Plan) -> Iterator[tuple[Pattern, str]]:
    """The patterns of the backends whose kernels a plan has."""
    for who in dict.fromkeys(call.who for call in plan.calls):
        backend = registry.backends.get(who)
        yield from ((pattern, who) for pattern in (() if backend is None else backend.patterns))


@dataclass(eq=False)
class _Found:
    """A place where a plan has a pattern.

    Attributes: ``members`` the calls, by their places; ``bound`` what names stand for; ``place`` where it runs.
    """

    pattern: Pattern
    members: dict[int, Call] = field(default_factory=dict)
    bound: dict[str, Any] = field(default_factory=dict)
    place: int = -1

    @property
    def given(self) -> tuple:
        """What the kernel is called with."""
        return tuple(self.bound[name] for name in self.pattern.given)

    def with_call(self, i: int, call: Call, step: Step, arguments: tuple) -> _Found | None:
        """The same with one more call, as a step; None if it does not fit."""
        if len(arguments) != len(step.arguments) or len(call.results) != len(step.results):
            return None
        bound = dict(self.bound)
        wanted = [*zip(step.arguments, arguments), *((Name(name), c) for name, c in zip(step.results, call.results))]
        for expected, argument in wanted:
            if expected.__class__ is not Name:
                if expected.__class__ is not argument.__class__ or expected != argument:
                    return None
            elif not _is_same(bound.setdefault(expected.name, argument), argument):
                return None
        return _Found(self.pattern, {**self.members, i: call}, bound)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (one.__class__ is other.__class__ and one.__class__ is not Cell and one == other)


@dataclass
class _Search:
    """The search for patterns; a call is part of one at most.

    Attributes: ``joined`` by the place of a call what it is a part of.
    """

    facts: Facts
    joined: dict[int, _Found] = field(default_factory=dict)

    def find(self, pattern: Pattern, who: str) -> None:
        """Join the calls of a backend that a pattern is made of, wherever they are."""
        for i in range(len(self.facts.calls)):
            for found in self._extended(_Found(pattern), len(pattern.steps) - 1, [i], who):
                if self._fits(found):
                    self.joined.update(dict.fromkeys(found.members, found))
                    break

    def _extended(self, found: _Found, at: int, places: list[int], who: str) -> Iterator[_Found]:
        """All ways to go on with step number `at`, and those before it, of which the call may be at some places."""
        step = found.pattern.steps[at]
        for i in places:
            call = self.facts.calls[i]
            if (call.op.name, call.who) != (step.op, who) or i in self.joined or i in found.members:
                continue
            if any(call.changed()):
                continue
            orders = [call.arguments]
            if step.op in _COMMUTATIVE:
                orders.append((call.arguments[1], call.arguments[0], *call.arguments[2:]))
            for arguments in orders:
                if (more := found.with_call(i, call, step, arguments)) is None:
                    continue
                if at == 0:
                    yield more
                else:
                    yield from self._extended(more, at - 1, self._candidates(more, at - 1), who)

    def _candidates(self, found: _Found, at: int) -> list[int]:
        """Where the call of a step may be, given what names stand for."""
        step, bound = found.pattern.steps[at], found.bound
        made = [self.facts.makers.get(bound[name]) for name in step.results if name in bound]
        if made:
            return [i for i in dict.fromkeys(made) if i is not None]
        taken = (bound.get(a.name) for a in step.arguments if a.__class__ is Name)
        return [i for cell in taken if cell.__class__ is Cell for i in self.facts.uses.get(cell, ())]

    def _fits(self, found: _Found) -> bool:
        """Whether the kernel takes the arrays, nobody else sees what will not be there, and there is a place for it."""
        pattern, bound = found.pattern, found.bound
        first = found.members[min(found.members)]
        if first.dispatch_key.dtype not in pattern.dtypes:
            return False
        wanted = {bound[name] for name in pattern.wanted}
        for call in found.members.values():
            for cell in call.results:
                uses = self.facts.uses.get(cell, ())
                if cell not in wanted and not (self.facts.is_own(cell) and found.members.keys() >= {*uses}):
                    return False
        if pattern.suits is not None and not pattern.suits(*found.given):
            return False
        operands = {i: [*call.cells()] for i, call in found.members.items()}
        may_run = (i for i in sorted(operands, reverse=True) if self.facts.may_run(operands, i, self._place_of))
        found.place = next(may_run, -1)
        return found.place >= 0

    def _place_of(self, i: int) -> int:
        return self.joined[i].place if i in self.joined else i


def _call(found: _Found) -> Call:
    """The call that takes the place of a pattern's."""
    pattern, parts = found.pattern, tuple(call for _, call in sorted(found.members.items()))
    op = Op(
        pattern.name, tuple(Parameter(name, "attribute", REQUIRED, "") for name in pattern.given), print, None, None
    )
    results = tuple(found.bound[name] for name in pattern.wanted)
    last = parts[-1]
    return Call(
        op, last.dispatch_key, pattern.function, found.given, results, len(results) > 1, who=last.who,
        where=last.where, parts=parts,
    )  # fmt: skip
