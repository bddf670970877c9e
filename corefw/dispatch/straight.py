"""Runs of plans on any device: Python code that calls one kernel after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corefw.dispatch.flags import NAMELESS
from corefw.dispatch.plan import Cell, Offset, Plan, Rate, Seed

Run = Callable[[Sequence[Any], Sequence[tuple[int, int]], Sequence[float]], list]


def straight(plan: Plan) -> Run:
    """The function that makes the plan's calls in their order, and lets go of each array after its last use."""
    names: dict[str, Any] = dict(NAMELESS)
    plan.cells()

    def name(prefix: str, value: Any) -> str:
        names[made := f"{prefix}{len(names)}"] = value
        return made

    def written(argument: Any) -> str:
        kind = argument.__class__
        if kind is Cell:
            return f"c{argument.number}"
        if kind in (list, tuple) and any(item.__class__ is Cell for item in argument):
            items = "".join(f"{written(item)}, " for item in argument)
            return f"[{items}]" if kind is list else f"({items})"
        if kind is Seed:
            return f"draws[{argument.source}][0]"
        if kind is Rate:
            return f"rates[{argument.source}]"
        if kind is Offset:
            return f"(draws[{argument.source}][1] + {argument - argument.start}) % {1 << 64}"
        return name("v", argument)

    gone: dict[int, list[Cell]] = {}
    for cell, i in plan.last_uses().items():
        gone.setdefault(i, []).append(cell)
    held = [cell for cell in plan.cells() if cell.kind == "held"]
    names.update({f"c{cell.number}": cell.array for cell in held})
    lines = [f"{', '.join(f'c{cell.number}' for cell in plan.given)}, = given"] if plan.given else []
    for i, call in enumerate(plan.calls):
        if i in plan.releases:
            lines.append(f"{name('r', plan.releases[i])}()")
        arguments = [written(argument) for argument in call.arguments]
        if call.out is not None:
            arguments.append(f"out=c{call.out.number}")
        results = ", ".join(f"c{cell.number}" for cell in call.results)
        if call.several:
            results += "," if len(call.results) == 1 else ""
        runtime = call.dispatch_key.runtime
        made = f"{name('k', call.kernel)}({', '.join(arguments)})"
        lines.append(f"{results} = {made}" if results else made)
        for cell in call.results:  # a kernel may return what only becomes an array of the device
            array, kind, wrap = f"c{cell.number}", name("t", runtime.array_type), name("w", runtime.wrap)
            lines.append(f"if {array}.__class__ is not {kind}: {array} = {wrap}({array})")
        if gone.get(i):
            lines.append(f"{' = '.join(f'c{cell.number}' for cell in gone[i])} = None")
    if len(plan.calls) in plan.releases:
        lines.append(f"{name('r', plan.releases[len(plan.calls)])}()")
    lines.append(f"return [{', '.join(f'c{cell.number}' for cell in plan.returned)}]")
    source = "def run(given, draws, rates):\n" + "\n".join(f"    {line}" for line in lines)
    exec(compile(source, "<corefw plan>", "exec"), names)
    return names["run"]
