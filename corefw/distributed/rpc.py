"""PyTorch's question about remote procedure calls: there are none, as in a PyTorch that was built without them."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Always False."""
    return False
