"""Passes: what improves a plan before it runs, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corefw.compiling.plan import Plan

#: in the order in which they run
PASSES: dict[str, Callable[[Plan], Plan]] = {}


def improved(plan: Plan, names: Sequence[str] | None = None) -> Plan:
    """A plan that does the same, made better by the passes of these names (None: all)."""
    for name, run in PASSES.items():
        if names is None or name in names:
            plan = run(plan)
    return plan
