"""How `einsum` chooses the order in which it contracts three or more operands: by the package opt_einsum."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from corefw.dispatch.settings import settings

#: those that the package knows, of which PyTorch's documentation names three
STRATEGIES = ("auto", "auto-hq", "branch-1", "branch-2", "branch-all", "dp", "greedy", "optimal", "random-greedy")


def is_available() -> bool:
    """Always True: corefw requires the package."""
    return True


def get_opt_einsum() -> ModuleType:
    """The package."""
    return import_module("opt_einsum")


@contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """A block in which operands are contracted in another order.

    Args:
        enabled: whether the order is chosen; without, operands are contracted from left to right. None leaves it.
        strategy: "auto", "greedy" or "optimal", of which the last takes the longest to find the best; None leaves it.

    >>> import corefw as torch
    >>> with torch.backends.opt_einsum.flags(strategy="greedy"):
    ...     torch.einsum("i,i,i->", torch.ones(3), torch.ones(3), torch.ones(3))
    tensor(3.)
    """
    before, module = (settings.contract_in_order, settings.contraction), sys.modules[__name__]
    try:
        for name, value in (("enabled", enabled), ("strategy", strategy)):
            if value is not None:
                setattr(module, name, value)
        yield
    finally:
        settings.contract_in_order, settings.contraction = before


class _Switches(ModuleType):
    """The module's variables `enabled` and `strategy`."""

    __doc__ = __doc__

    @property
    def enabled(self) -> bool:
        """Whether the order is chosen."""
        return not settings.contract_in_order

    @enabled.setter
    def enabled(self, value: Any) -> None:
        settings.contract_in_order = not value

    @property
    def strategy(self) -> str:
        """How it is chosen."""
        return settings.contraction

    @strategy.setter
    def strategy(self, value: str) -> None:
        if value not in STRATEGIES:
            raise ValueError(f"`strategy` must be one of {', '.join(map(repr, STRATEGIES))}, not {value!r}")
        settings.contraction = value


sys.modules[__name__].__class__ = _Switches
