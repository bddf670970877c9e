"""`export`, which is refused: whole programs are not captured here; `fx` traces what does not depend on values."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

__all__ = ["Dim", "ExportedProgram", "export", "load", "register_dataclass", "save"]

_REASON = "programs are not captured with their shapes here; fx.symbolic_trace gives a graph that can be read and run"


class ExportedProgram:
    """A captured program; there is none, and it cannot be made."""

    def __init__(self, *arguments: Any, **options: Any):
        _refuse("ExportedProgram")


class _Hint(Enum):
    """Whether a size may differ, without a name for it: where it can, not, or always."""

    AUTO = 0
    STATIC = 1
    DYNAMIC = 2


class Dim:
    """A size that may differ between calls of a captured program."""

    AUTO, STATIC, DYNAMIC = _Hint

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.__name__, self.min, self.max = name, min, max


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"export.{name}: {_REASON}")


def export(mod: Any, args: tuple = (), kwargs: Any = None, **options: Any) -> NoReturn:
    """Refused.

    Raises:
        NotImplementedError: always.
    """
    _refuse("export")


def save(ep: Any, f: Any, **options: Any) -> NoReturn:
    """Refused.

    Raises:
        NotImplementedError: always.
    """
    _refuse("save")


def load(f: Any, **options: Any) -> NoReturn:
    """Refused.

    Raises:
        NotImplementedError: always.
    """
    _refuse("load")


def register_dataclass(cls: type, **options: Any) -> None:
    """Nothing: what a captured program takes and gives is not asked."""
