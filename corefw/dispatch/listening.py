"""Listening: modes that hear of kernels and also of what the frontend asks of runtimes between ops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from corefw.dispatch.modes import Mode


class Listening(Mode):
    """A mode that puts functions of its own in the place of runtimes', for its own thread.

    Attributes: ``computing`` whether a kernel is running, whose own casts and copies are its own matter.
    """

    def __init__(self) -> None:
        self.computing = False
        self._thread = threading.get_ident()
        self._shadowed: list[tuple[Any, str]] = []

    @property
    def _paused(self) -> bool:
        return self.computing or threading.get_ident() != self._thread

    @contextmanager
    def _kernel_running(self) -> Iterator[None]:
        """A block that computes, and is not listened to."""
        self.computing = True
        try:
            yield
        finally:
            self.computing = False

    def _shadow(self, runtime: Any, name: str, heard: Callable) -> None:
        """Have a runtime's function run through `heard`, unless it does for another mode."""
        function = getattr(runtime, name)
        if name not in vars(runtime):
            setattr(runtime, name, lambda *arguments, **options: heard(runtime, function, *arguments, **options))
            self._shadowed.append((runtime, name))

    def _unshadow(self) -> None:
        """Give the runtimes their functions back."""
        for runtime, name in self._shadowed:
            delattr(runtime, name)
        self._shadowed.clear()
