"""Gradients that a step replaces: when the program lets go of the old ones, so that replays do it then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, is_

from corefw.dispatch.plan import Call, Cell, Plan
from corefw.tensor import Tensor

_gradient = attrgetter("_grad")


class Replacing:
    """The gradients of leaves while a call is recorded.

    A replay lets go of them where the program does: before, they are what they were if a kernel raises an error, and
    after that the new ones find their memory free.

    Args:
        leaves: the tensors.
        plan: what the call is written down as.
    """

    def __init__(self, leaves: Iterable[Tensor], plan: Plan):
        self._plan = plan
        self._kept = [leaf for leaf in leaves if leaf._grad is not None]
        self._gradients = [*map(_gradient, self._kept)]
        self._let_go: list[tuple[Tensor, Call | None]] = []  # and the last call before
        self._places: dict[Cell, int] = {}
        self._recorded: dict[int, int] = {}

    def notice(self) -> None:
        """Look which gradients are not there any more, when a kernel is called."""
        if all(map(is_, map(_gradient, self._kept), self._gradients)):
            return
        pairs, last = [*zip(self._kept, self._gradients)], self._plan.calls[-1] if self._plan.calls else None
        self._let_go += [(leaf, last) for leaf, gradient in pairs if leaf._grad is not gradient]
        self._kept = [leaf for leaf, gradient in pairs if leaf._grad is gradient]
        self._gradients = [*map(_gradient, self._kept)]

    def end(self) -> None:
        """Remember the places of calls as they were written down, before passes change the plan."""
        after = {id(call): i + 1 for i, call in enumerate(self._plan.calls)}
        self._places = {cell: i for i, call in enumerate(self._plan.calls) for cell in call.results}
        self._recorded = {id(leaf): 0 if last is None else after[id(last)] for leaf, last in self._let_go}

    def releases(self, plan: Plan, replaced: Sequence[Tensor | int]) -> dict[int, Callable[[], None]]:
        """What lets go of the gradients that are `replaced`, by the number of the call in the plan as it is now before
        which that is done. Arguments are others in each call, and not among them."""
        by_time: dict[int | None, list[Tensor]] = {}
        for leaf in replaced:
            if isinstance(leaf, Tensor):
                by_time.setdefault(self._recorded.get(id(leaf)), []).append(leaf)
        found: dict[int, list[Tensor]] = {}
        for recorded, leaves in by_time.items():
            found.setdefault(self._place(plan, recorded), []).extend(leaves)
        return {place: _letting_go(leaves) for place, leaves in found.items()}

    def _place(self, plan: Plan, recorded: int | None) -> int:
        """The number of the first call that makes what was made at a place in the plan as it was written down, or
        after it; at the end for None."""
        if not recorded:
            return len(plan.calls) if recorded is None else 0
        made = (i for i, c in enumerate(plan.calls) if any(self._places.get(r, -1) >= recorded for r in c.results))
        return next(made, len(plan.calls))


def _letting_go(leaves: list[Tensor]) -> Callable[[], None]:
    def let_go() -> None:
        for leaf in leaves:
            leaf._grad = None

    return let_go
