"""Who runs a plan."""

from __future__ import annotations

from corefw.compiling.plan import Plan
from corefw.compiling.straight import Run, straight


def run_of(plan: Plan) -> Run:
    """The function that runs a plan."""
    return straight(plan)
