"""Names of types for annotations, as PyTorch's `types`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from corefw.devices import device
from corefw.shapes import Size
from corefw.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Size", "SymBool", "SymFloat", "SymInt", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | bytes
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]


class _Symbolic:
    """A number that a tracer does not know yet: nothing is traced here, and nothing is one."""

    def __new__(cls, *arguments: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__name__}: sizes are numbers here, because nothing is traced without them")


class SymInt(_Symbolic):
    """An integer of that kind."""


class SymFloat(_Symbolic):
    """A floating number of that kind."""


class SymBool(_Symbolic):
    """A truth value of that kind."""
