"""Linear algebra, under PyTorch's names."""

from __future__ import annotations

from corefw.dispatch.names import published as _published
from corefw.errors import LinAlgError

_FUNCTIONS = _published(__name__)
globals().update(_FUNCTIONS)

__all__ = ["LinAlgError", *_FUNCTIONS]
