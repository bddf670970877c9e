"""Sequences made anew with other members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def alike(before: Any, members: Iterable[Any]) -> Any:
    """A sequence of the class of another one: a named tuple takes its fields one by one.

    >>> alike([1, 2], (3, 4)), alike((1,), [5])
    ([3, 4], (5,))
    """
    return type(before)(*members) if hasattr(before, "_fields") else type(before)(members)
