"""Which backend runs a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from corefw.dispatch.plan import Plan
from corefw.dispatch.registry import registry
from corefw.dispatch.straight import Run, straight


def run_of(plan: Plan) -> Run:
    """The function that runs a plan, which is its ``run`` then: made by the backend with most of its kernels, of those
    that can make one; where none can, Python's straight line of calls."""
    plan.run = _maker(plan)(plan)
    return plan.run


def _maker(plan: Plan) -> Callable[[Plan], Run]:
    for name, _ in Counter(call.who for call in plan.calls).most_common():
        backend = registry.backends.get(name)
        if backend is not None and backend.executor is not None:
            return backend.executor
    return straight
