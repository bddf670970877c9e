"""Windows of signals, under PyTorch's names."""

from __future__ import annotations

from corefw.dispatch.names import published as _published

_FUNCTIONS = _published(__name__)
globals().update(_FUNCTIONS)

__all__ = [*_FUNCTIONS]
