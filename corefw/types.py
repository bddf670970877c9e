"""Names of types for annotations, as PyTorch's `types`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TypeAlias

from corefw.devices import device
from corefw.shapes import Size
from corefw.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Size", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | bytes
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]
