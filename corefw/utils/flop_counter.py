"""Counting the additions and multiplications of products and convolutions, by module and op."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from typing import Any, Self

from corefw.dispatch.flags import unheard
from corefw.dispatch.flops import FLOPS
from corefw.dispatch.modes import Mode
from corefw.nn.modules.module import Module

__all__ = ["FlopCounterMode"]


class FlopCounterMode(Mode):
    """A block in which the additions and multiplications of products and convolutions are counted, gradients included.

    Args:
        mods: a module or a list of them, whose parts are counted each; without, all is counted together.
        depth: how many levels of modules `get_table` shows.
        display: whether the block prints the table when it ends.
        custom_mapping: {name of an op: function of its result and its arguments that gives a number}, beside the known.

    >>> import corefw as torch
    >>> model = torch.nn.Linear(3, 4)
    >>> counter = torch.utils.flop_counter.FlopCounterMode(model, display=False)
    >>> with counter:
    ...     _ = model(torch.ones(2, 3))
    >>> counter.get_total_flops(), counter.get_flop_counts()["Linear"]
    (48, {'linear': 48})
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[str, Any] | None = None,
    ):
        self.depth, self.display, self._formulas = depth, display, {**FLOPS, **(custom_mapping or {})}
        self.flop_counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._modules = [mods] if isinstance(mods, Module) else mods or []
        self._open: list[str] = []
        self._inside = threading.local()
        self._handles: list[Any] = []

    def wrap(self, op: Any, dispatch_key: Any, who: Any, function: Any) -> Any:
        formula, inside = self._formulas.get(op.name), self._inside
        if formula is None:
            return function

        def counted(*arguments: Any, **options: Any) -> Any:
            outermost = not getattr(inside, "counted", False)  # what a composite is composed of counts once
            inside.counted = True
            try:
                result = function(*arguments, **options)
            finally:
                inside.counted = not outermost
            if outermost:
                for name in dict.fromkeys(["Global", *self._open]):
                    self.flop_counts[name][op.name] += formula(result, *arguments)
            return result

        return unheard(counted)

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        for root in self._modules:
            for path, module in root.named_modules():
                name = f"{type(root).__name__}.{path}" if path else type(root).__name__
                self._handles += [
                    module.register_forward_pre_hook(lambda *_, name=name: self._open.append(name)),
                    module.register_forward_hook(lambda *_, name=name: self._open.remove(name)),
                ]
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        while self._handles:
            self._handles.pop().remove()
        self._open.clear()
        if self.display:
            print(self.get_table())

    def get_total_flops(self) -> int:
        """The sum of all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Counts by op, for each module ("Net.layer.0") and for all together ("Global")."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table: a row for each module down to a depth, and under it one for each op."""
        depth, whole = self.depth if depth is None else depth, self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name, counts in sorted(self.flop_counts.items(), key=lambda item: (item[0] != "Global", item[0])):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            shown = [(name, sum(counts.values())), *((f" - {op}", count) for op, count in counts.items())]
            rows += [(" " * level + text, str(n), f"{100 * n / whole if whole else 0:.2f}%") for text, n in shown]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
