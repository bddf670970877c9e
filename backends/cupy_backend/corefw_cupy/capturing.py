"""What a thread captures in a graph, and the refusal of what cannot be captured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from threading import local
from typing import Any, Protocol

from corefw.dispatch.backend import Kernel
from corefw.errors import CaptureError


class Capture(Protocol):
    """A graph that is captured.

    Attributes: ``kept`` what its replays need; ``outer_allocator`` CuPy's before the capture.
    """

    kept: list
    outer_allocator: Any


class Capturing(local):
    """The graph that this thread captures, None otherwise."""

    capture: Capture | None = None

    def refuse(self, what: str, why: str) -> None:
        """Raise CaptureError if a graph is captured: `what` is asked for, `why` it is not possible."""
        if self.capture is not None:
            raise CaptureError(f"{what} is not possible while a graph is captured: {why}")

    def refused(self, kernels: Iterable[Kernel], library: str) -> list[Kernel]:
        """Kernels that cannot be captured, since CuPy gives a library no stream that captures."""

        def refusing(function: Callable) -> Callable:
            @wraps(function)
            def checked(*arguments, **keywords):
                self.refuse(f"a call of {library}", "CuPy does not permit it")
                return function(*arguments, **keywords)

            return checked

        return [replace(kernel, function=refusing(kernel.function)) for kernel in kernels]
