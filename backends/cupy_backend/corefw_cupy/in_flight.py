"""Memory that the device may still use although the program has let go of it."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

_OWN_REFERENCES = 3  # to memory in `used`, seen by getrefcount inside the loop: the pair, the variable, the argument


class InFlight:
    """Holds memory until the streams that use it have come past a mark.

    Args:
        cupy: CuPy, or what stands in for it.
    """

    def __init__(self, cupy: Any):
        self.cupy = cupy
        self.held: list[tuple[Any, Any]] = []  # (mark, memory)
        self.used: list[tuple[Any, Any]] = []  # (memory, stream), of arrays that the program may still have

    def hold(self, memory: Any, stream: Any) -> None:
        """Keep memory until the work that `stream` has been given is done."""
        self.release()
        self._mark(memory, stream)

    def use(self, memory: Any, stream: Any) -> None:
        """Once the program lets go of memory, keep it until the work that `stream` has been given by then is done."""
        self.release()
        self.used.append((memory, stream))

    def _mark(self, memory: Any, stream: Any) -> None:
        mark = self.cupy.cuda.Event(disable_timing=True)
        mark.record(stream)
        self.held.append((mark, memory))

    def release(self) -> None:
        """Let go of what is done with."""
        used = []
        for memory, stream in self.used:
            if getrefcount(memory) <= _OWN_REFERENCES:
                self._mark(memory, stream)
            else:
                used.append((memory, stream))
        self.used = used
        self.held = [(mark, memory) for mark, memory in self.held if not mark.done]

    def count(self) -> int:
        """How many pieces of memory are held."""
        return len(self.held) + len(self.used)
