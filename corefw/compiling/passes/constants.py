"""Constants: what is the same in every run is computed once."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from corefw.compiling.elementwise import is_constant
from corefw.compiling.passes.facts import Facts, only_computes
from corefw.dispatch.plan import Call, Cell, Plan

#: larger results are not held in memory between runs
MOST_BYTES = 1 << 16


def constants(plan: Plan) -> Plan:
    """The plan with constants in the place of calls that are given nothing but constants."""
    facts = Facts.of(plan)
    owners = facts.returned | {memory for _, written in facts.writes for memory in written}
    calls = []
    for call in plan.calls:
        if _is_constant(call) and owners.isdisjoint(cell.memory for cell in (*call.cells(), *call.results)):
            _hold(call)
        else:
            calls.append(call)
    return replace(plan, calls=calls)


def _is_constant(call: Call) -> bool:
    size = sum(prod(cell.shape) * cell.dtype.itemsize for cell in call.results)
    return (
        only_computes(call) and call.op.name != "empty" and size <= MOST_BYTES and all(map(is_constant, call.cells()))
    )


def _hold(call: Call) -> None:
    """Compute a call, and make its results constants."""
    results = call.kernel(*map(_raw, call.arguments))
    runtime = call.dispatch_key.runtime
    for cell, array in zip(call.results, results if call.several else (results,), strict=True):
        cell.array = array if array.__class__ is runtime.array_type else runtime.wrap(array)
        cell.kind, cell.name = "held", "constant"


def _raw(argument):
    if argument.__class__ is Cell:
        return argument.array
    return argument.__class__(map(_raw, argument)) if argument.__class__ in (list, tuple) else argument
