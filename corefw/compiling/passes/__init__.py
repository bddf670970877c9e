"""Passes: what improves a plan before it runs, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corefw.compiling.passes.common import common
from corefw.compiling.passes.constants import constants
from corefw.compiling.passes.dead import dead
from corefw.compiling.passes.folding import folding
from corefw.compiling.passes.fusion import fusion
from corefw.compiling.passes.hoisting import hoisting
from corefw.compiling.passes.patterns import patterns
from corefw.compiling.passes.pooling import pooling
from corefw.compiling.passes.updates import updates
from corefw.dispatch.plan import Plan

#: in the order in which they run
PASSES: dict[str, Callable[[Plan], Plan]] = {
    "folding": folding,
    "constants": constants,
    "common": common,
    "hoisting": hoisting,
    "dead": dead,
    "pooling": pooling,
    "updates": updates,
    "patterns": patterns,
    "fusion": fusion,
}


def improved(plan: Plan, names: Sequence[str] | None = None) -> Plan:
    """A plan that does the same, made better by the passes of these names (None: all). The one given is used up:
    some of its calls and cells are those of the result."""
    before = plan.most_in_use()
    for name, run in PASSES.items():
        if names is None or name in names:
            plan = run(plan)
    plan.before = before
    return plan
