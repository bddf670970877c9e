"""How far long work is, where a person can see it: a bar by tqdm, or a counter; nothing where stderr is no terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

Item = TypeVar("Item")
#: seconds between two pictures of the counter
PAUSE = 0.1


def visible() -> bool:
    """Whether stderr is a terminal that can draw over what it shows."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Progress:
    """Counts the steps of some work. A context manager, after which its line is wiped away.

    Args:
        title: what is done.
        total: the number of steps; None if it is not known.
        unit: what a step is, such as "checks"; "B" for bytes, which are told in thousands and millions.
        show: whether to show anything, on a terminal.

    >>> with Progress("reading", total=3) as progress:
    ...     for _ in range(3):
    ...         progress.advance()
    >>> progress.done
    3
    """

    def __init__(self, title: str, total: int | None = None, unit: str = "steps", show: bool = True):
        self.title, self.total, self.unit, self.done = title, total, unit, 0
        self._shown, self._bar, self._drawn = show and visible(), None, 0.0

    def __enter__(self) -> Progress:
        if self._shown:
            self._bar = self._make_bar()
            self._draw()
        return self

    def _make_bar(self) -> Any:
        """tqdm's bar, None where it is not installed."""
        try:
            from tqdm import tqdm
        except ImportError:
            return None
        unit = {"unit": "B", "unit_scale": True} if self.unit == "B" else {"unit": f" {self.unit}"}
        return tqdm(desc=self.title, total=self.total, leave=False, dynamic_ncols=True, **unit)

    def advance(self, steps: int = 1) -> None:
        """So many more steps are done."""
        self.done += steps
        if self._bar is not None:
            self._bar.update(steps)
        elif self._shown and time.monotonic() - self._drawn > PAUSE:
            self._draw()

    def reached(self, done: int, total: int) -> None:
        """Of so many steps so many are done."""
        self.total = total
        if self._bar is not None:
            self._bar.total = total
        self.advance(done - self.done)

    def print(self, *lines: str) -> None:
        """Print lines to stdout, above what is shown."""
        self._wipe()
        print(*lines, sep="\n", flush=True)
        if self._shown:
            self._draw()

    def _draw(self) -> None:
        if self._bar is not None:
            self._bar.refresh()
            return
        self._drawn = time.monotonic()
        count, of = (f"{self.done:,}", "" if self.total is None else f" of {self.total:,}")
        print(f"\r\033[K{self.title}: {count}{of} {self.unit}", end="", file=sys.stderr, flush=True)

    def _wipe(self) -> None:
        if self._bar is not None:
            self._bar.clear()
        elif self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            self._wipe()


def shown(items: Iterable[Item], title: str, unit: str = "steps", show: bool = True) -> Iterator[Item]:
    """The items, counted as they are asked for."""
    total = len(items) if isinstance(items, Sized) else None
    with Progress(title, total, unit, show) as progress:
        for item in items:
            yield item
            progress.advance()
