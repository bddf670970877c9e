"""The one function that libraries call of PyTorch's compiled module; it has no others."""

from __future__ import annotations

__all__: list[str] = []


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted."""
