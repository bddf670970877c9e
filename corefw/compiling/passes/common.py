"""Common calls: what is computed already is not computed again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from corefw.compiling.passes.facts import Facts, only_computes
from corefw.dispatch.plan import Call, Cell, Plan


def common(plan: Plan) -> Plan:
    """The plan with one call in the place of equal ones whose results are the plan's own and stay as they are."""
    facts = Facts.of(plan)
    written = {memory for _, cells in facts.writes for memory in cells}
    known: dict[tuple, Call] = {}
    same: dict[Cell, Cell] = {}
    calls = []
    for i, call in enumerate(plan.calls):
        for cell in same.keys() & set(call.cells()) if same else ():
            call.replace(cell, same[cell])
        key = (
            _key(call, i, facts) if only_computes(call) and written.isdisjoint(c.memory for c in call.results) else None
        )
        if key is None or (first := known.setdefault(key, call)) is call:
            calls.append(call)
        elif facts.returned.isdisjoint(cell.memory for cell in call.results):
            same.update(zip(call.results, first.results, strict=True))
        else:
            calls.append(call)
    if not same:
        return plan
    for cell in plan.cells():
        cell.owner = same.get(cell.owner, cell.owner) if cell.owner is not None else None
    return replace(plan, calls=calls)


def _key(call: Call, place: int, facts: Facts) -> tuple | None:
    """What equal calls have in common; None of a call whose arguments cannot be compared."""
    try:
        arguments = tuple(_of_argument(argument, place, facts) for argument in call.arguments)
        hash(arguments)
    except TypeError:
        return None
    results = tuple((cell.shape, cell.strides, cell.dtype) for cell in call.results)
    return call.op.name, call.kernel, call.dispatch_key, arguments, results


def _of_argument(argument: Any, place: int, facts: Facts) -> Hashable:
    if argument.__class__ is Cell:
        return argument, facts.changes(argument, place)
    if argument.__class__ in (list, tuple):
        return argument.__class__.__name__, tuple(_of_argument(item, place, facts) for item in argument)
    if argument.__class__ is float:
        return "float", argument.hex()  # 0.0 and -0.0 are equal, and nan is not
    return argument.__class__, argument
