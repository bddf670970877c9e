"""Dead calls: what nobody looks at is not computed."""

from __future__ import annotations

from dataclasses import replace

from corefw.compiling.passes.facts import only_computes
from corefw.dispatch.plan import Cell, Plan


def dead(plan: Plan) -> Plan:
    """The plan without calls whose results nobody uses, and that do nothing else."""
    used: set[Cell] = set(plan.returned)
    kept = []
    for call in reversed(plan.calls):
        if only_computes(call) and used.isdisjoint(call.results):
            continue
        kept.append(call)
        used.update(call.cells())
    return plan if len(kept) == len(plan.calls) else replace(plan, calls=kept[::-1])
