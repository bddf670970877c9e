"""Constants: what is the same in every run is computed once."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from corefw.compiling.elementwise import is_constant
from corefw.compiling.passes.facts import only_computes
from corefw.dispatch.plan import Call, Cell, Plan

#: larger results are not held in memory between runs
MOST_BYTES = 1 << 16


def constants(plan: Plan) -> Plan:
    """The plan with constants in the place of calls that are given nothing but constants."""
    owners = {cell.memory for cell in plan.returned} | {c.memory for call in plan.calls for c in call.changed()}
    calls = []
    for call in plan.calls:
        if _is_constant(call) and owners.isdisjoint(cell.memory for cell in (*call.cells(), *call.results)):
            _hold(call)
        else:
            calls.append(call)
    return plan if len(calls) == len(plan.calls) else replace(plan, calls=calls)


def _is_constant(call: Call) -> bool:
    if not all(map(is_constant, call.cells())) or call.op.name == "empty" or not only_computes(call):
        return False
    return sum(prod(cell.shape) * cell.dtype.itemsize for cell in call.results) <= MOST_BYTES


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
