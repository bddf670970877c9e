"""PyTorch's questions about and switches for oneDNN, which no kernel here is made with: they are kept, and without
effect."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from corefw.backends.switches import make_switches, switched

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
_switches = {"allow_tf32": True, "deterministic": False, "enabled": True}


def is_available() -> bool:
    """Always False.

    >>> import corefw as torch
    >>> torch.backends.mkldnn.is_available(), torch.backends.mkldnn.enabled
    (False, True)
    """
    return False


def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True) -> AbstractContextManager[None]:
    """A block in which the switches have other values."""
    return switched(_switches, {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32})


def verbose(level: int) -> AbstractContextManager[None]:
    """A block in which oneDNN would tell what it does."""
    return nullcontext()


make_switches(__name__, _switches)
