"""Hoisting: what tensors alone determine that a plan does not change is computed once, and again after they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corefw.dispatch.plan import Call, Cell, Plan, Rate, Seed
from corefw.dispatch.straight import Run, straight


def hoisting(plan: Plan) -> Plan:
    """The plan with held arrays in the place of calls that parameters, buffers and other tensors determine which it
    finds in each run and leaves as they are."""
    steady = Steady(plan)
    if not steady.calls:
        return plan
    hoisted = set(steady.calls)
    calls = [call for call in plan.calls if call not in hoisted]
    used = {cell for call in calls for cell in call.cells()}
    results = [cell for call in steady.calls for cell in call.results if cell in used]
    own = [cell for cell in results if cell.memory.kind == "result"]  # not a view of what is held
    made = Plan(calls=steady.calls, returned=results)
    for cell, array in zip(results, straight(made)((), (), ()), strict=True):
        cell.array = array
    for cell in results:
        cell.kind, cell.name, cell.owner = "held", "hoisted", cell.owner if cell not in own else None
    return replace(plan, calls=calls, hoisted=Plan(calls=steady.calls, returned=own))


class Steady:
    """What is the same in all runs of a plan until somebody else changes a tensor that it finds.

    Attributes: ``calls`` those that could be made before a run, in order.
    """

    def __init__(self, plan: Plan):
        written = [cell.memory for call in plan.calls for cell in call.changed()]
        self._unknown = any(cell.kind == "given" for cell in written)  # which may show the memory of anything
        self._changed = {id(cell.version) for cell in written if cell.kind == "held"}
        self._taken = {*written, *(cell.memory for cell in plan.returned)}
        self._results: set[Cell] = set()
        self.calls: list[Call] = []
        for call in plan.calls:
            if self._has(call):
                self.calls.append(call)
                self._results.update(call.results)

    def __contains__(self, cell: Cell) -> bool:
        """Whether it holds the same elements, as far as the plan is concerned."""
        if cell in self._results:
            return True
        if self._unknown or cell.memory in self._taken:
            return False
        return cell.name == "constant" or (_is_counted(cell.version) and id(cell.version) not in self._changed)

    def _has(self, call: Call) -> bool:
        flat = [item for a in call.arguments for item in (a if a.__class__ in (list, tuple) else (a,))]
        if not call.results or any(isinstance(item, Seed | Rate) for item in flat) or any(call.changed()):
            return False
        cells = [*call.cells()]
        return (
            bool(cells)
            and all(cell in self for cell in cells)
            and self._taken.isdisjoint(c.memory for c in call.results)
        )


def _is_counted(version: list[int] | None) -> bool:
    """Whether all changes of the memory are counted (see `corefw/versions.py`)."""
    return type(version) is list and len(version) == 1 and version[0].__class__ is int


def renewing(plan: Plan, run: Run) -> Run:
    """`run`, before which the hoisted calls are made where the tensors that they read have changed."""
    hoisted = plan.hoisted
    if hoisted is None:
        return run
    versions = [*{id(c.version): c.version for call in hoisted.calls for c in call.cells() if c.version}.values()]
    renew = straight(hoisted)
    targets = [(cell.array, _maker(hoisted, cell).dispatch_key.runtime) for cell in hoisted.returned]
    before: list[int] | None = [version[0] for version in versions]

    def run_renewed(given: Sequence[Any], draws: Sequence[tuple[int, int]], rates: Sequence[float]) -> list:
        nonlocal before
        counts = [version[0] for version in versions if len(version) == 1]
        if counts != before:
            for (target, runtime), array in zip(targets, renew((), (), ()), strict=True):
                runtime.copy(target, array)
            before = counts if len(counts) == len(versions) else None
        return run(given, draws, rates)

    return run_renewed


def _maker(plan: Plan, cell: Cell) -> Call:
    return next(call for call in plan.calls if cell in call.results)
