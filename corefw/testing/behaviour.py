"""Behaviours: checks of a target that no row describes, such as random streams, memory and training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from corefw.dtypes import dtype
from corefw.testing.checks import settle
from corefw.testing.targets import Target


@dataclass(frozen=True)
class Behaviour:
    """A named check of a target at each of some dtypes; of an op, where it is about one.

    What is optional is checked where the target has a kernel; the rest, on all devices that the backend owns.
    """

    check: Callable[[Target, dtype], None]
    section: str
    op: str
    dtypes: tuple[str, ...]
    optional: bool

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return self.check.__name__.strip("_")

    def on(self, target: Target, d: dtype) -> Callable[[], None]:
        """The check of one target at one dtype."""
        return partial(self._run, target, d)

    def _run(self, target: Target, d: dtype) -> None:
        with target.preferred():
            self.check(target, d)
            settle()


#: {(op, name): behaviour}
BEHAVIOURS: dict[tuple[str, str], Behaviour] = {}


def behaviour(section: str, op: str = "", dtypes: tuple[str, ...] = ("float32",), optional: bool = False):
    """Register a check ``(target, dtype)`` of a section of the report, and of an op, where it is about one."""

    def decorate(check: Callable[[Target, dtype], None]) -> Callable[[Target, dtype], None]:
        found = Behaviour(check, section, op, dtypes, optional)
        BEHAVIOURS[op, found.name] = found
        return check

    return decorate
