"""Updates: what is changed in place where only the plan sees it is a new result instead, which others can join."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from corefw.compiling.elementwise import is_row_major, reading
from corefw.compiling.passes.facts import Facts
from corefw.dispatch.plan import Call, Cell, Plan


def updates(plan: Plan) -> Plan:
    """The plan with new results of elementwise calls in the place of those that they write to."""
    if all(call.out is None for call in plan.calls):
        return plan
    facts = Facts.of(plan)
    calls, now = [], dict[Cell, Cell]()
    for call in plan.calls:
        for cell in now.keys() & set(call.cells()) if now else ():
            call.replace(cell, now[cell])
        out = call.out
        if out is not None and out.kind == "result" and out.owner is None and _may_be_new(call, facts):
            before = next((cell for cell, other in now.items() if other is out), out)
            now[before] = copy(out)
            call = replace(call, out=None, results=(now[before],))
        calls.append(call)
    return replace(plan, calls=calls, returned=[now.get(cell, cell) for cell in plan.returned])


def _may_be_new(call: Call, facts: Facts) -> bool:
    """Whether a call gives the same without memory to write to, which nobody else shows."""
    assert call.out is not None
    found, out = reading(call), call.out
    if found is None or out in facts.shown or out.dtype not in {cell.dtype for cell in found.operands}:
        return False
    return all(cell.dtype == out.dtype and (cell.shape != out.shape or is_row_major(cell)) for cell in found.operands)
