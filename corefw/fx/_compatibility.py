"""The decorator that says how stable a function of PyTorch's is; here it says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def compatibility(is_backward_compatible: bool = True) -> Callable[[T], T]:
    """The decorated function or class itself."""
    return lambda decorated: decorated
