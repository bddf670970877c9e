"""PyTorch's questions about oneMKL, which no kernel here is made with."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Always False."""
    return False


def verbose(enable: int) -> AbstractContextManager[None]:
    """A block in which oneMKL would tell what it does."""
    return nullcontext()
