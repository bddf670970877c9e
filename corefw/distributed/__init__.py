"""Training on several processes, which is not here: `is_available` says no, so that programs train on one."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """False: there is no engine that would join processes.

    >>> import corefw as torch
    >>> torch.distributed.is_available()
    False
    """
    return False


def __getattr__(name: str):
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: processes cannot be joined here (is_available() is False)"
    )
