"""What is worked out for the geometry of operands once, so that later calls of the same geometry only look it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST = 1 << 12  # that are remembered


class Planned(dict):
    """{key: plan}, filled when first looked up by a function of the key's items.

    Args:
        plan: the function; what it raises is raised, and nothing remembered.
    """

    def __init__(self, plan: Callable):
        self.plan = plan

    def __missing__(self, key: tuple) -> Any:
        made = self.plan(*key)
        if len(self) >= MOST:
            self.clear()
        self[key] = made
        return made
