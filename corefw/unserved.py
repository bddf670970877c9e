"""What PyTorch's programs ask about types of devices that no backend serves: that there are none.

What would use such a device is left out, so that asking for it raises AttributeError.
"""

from __future__ import annotations

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """Always False."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing, as in PyTorch where there is no such device."""


def manual_seed_all(seed: int) -> None:
    """Nothing, as in PyTorch where there is no such device."""
