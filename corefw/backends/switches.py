"""Modules some of whose variables are switches: checked, kept elsewhere, and set for a block by `flags`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class Switches(ModuleType):
    """A module whose switches stand in `_values`, under their names; they take what `bool` takes."""

    _values: MutableMapping[str, bool]

    def __getattr__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._values:
            self._values[name] = bool(value)
        else:
            super().__setattr__(name, value)


def make_switches(module: str, values: MutableMapping[str, bool]) -> None:
    """Let a module have switches, with the values that they have now."""
    found = sys.modules[module]
    vars(found)["_values"] = values
    found.__class__ = Switches


@contextmanager
def switched(values: MutableMapping[str, bool], wanted: dict[str, bool]) -> Iterator[None]:
    """A block in which switches have other values."""
    before = dict(values)
    values.update({name: bool(value) for name, value in wanted.items()})
    try:
        yield
    finally:
        values.update(before)
