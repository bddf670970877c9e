"""The CPU as a device, under PyTorch's names: one that is always there, on which nothing waits."""

from __future__ import annotations

from typing import Any

from corefw.cpu import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """True: there always is one."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """Its name, "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is only one."""


def synchronize(device: Any = None) -> None:
    """Nothing: what was called is done."""
