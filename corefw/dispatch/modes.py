"""Modes: while one is on, ops resolve to other kernels; when none is, nothing of this is on the path of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from corefw.dispatch.flags import unheard
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry


class Mode:
    """A with-block in which every kernel is replaced by what `wrap` makes of it."""

    def wrap(self, op: Op, dispatch_key, who: str, function: Callable) -> Callable:
        """The function to run instead of `function`, the kernel (or composite body) that `who` offers for `op` at
        `dispatch_key`.

        `who` is a backend's name, "composite" (the op's body), "geometry" (a view by strides), "meta", or
        "fallback to <device>".
        """
        raise NotImplementedError

    def __enter__(self):
        registry.modes.append(self)
        registry.fit_anew()
        return self

    def __exit__(self, *exception):
        registry.modes.remove(self)
        registry.fit_anew()


class ledger(Mode):
    """Counts which backend ran which op, how often.

    Attributes: ``counts`` a Counter of (op, dispatch key, backend).

    >>> import corefw as torch
    >>> with torch.ledger() as book:
    ...     _ = torch.ones(3) + torch.ones(3)
    >>> book.count("add")
    1
    """

    def __init__(self):
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def wrap(self, op, dispatch_key, who, function):
        counts, key = self.counts, (op.name, repr(dispatch_key), who)

        def counted(*arguments, **options):
            counts[key] += 1
            return function(*arguments, **options)

        return unheard(counted)

    def count(self, op: str, backend: str | None = None) -> int:
        """How often `op` ran (on `backend`)."""
        return sum(n for (name, _, who), n in self.counts.items() if name == op and backend in (None, who))

    def __str__(self) -> str:
        width = max((len(name) for name, _, _ in self.counts), default=2)
        rows = [
            f"{n:>8}  {name:<{width}}  {dispatch_key:<18}  {who}"
            for (name, dispatch_key, who), n in self.counts.most_common()
        ]
        return "\n".join([f"{'calls':>8}  {'op':<{width}}  {'dispatch key':<18}  ran by", *rows])
