"""Marks and ranges for NVIDIA's profilers, by CuPy's binding of NVTX."""

from __future__ import annotations

import threading
from typing import Any


class Ranges(threading.local):
    """A thread's ranges, under the names of `torch.cuda.nvtx`.

    Args:
        nvtx: CuPy's module.
    """

    def __init__(self, nvtx: Any):
        self.nvtx, self.depth = nvtx, 0

    def mark(self, msg: str) -> None:
        """An event of one moment."""
        self.nvtx.Mark(msg)

    def range_push(self, msg: str) -> int:
        """Begin a range inside of those of the thread; how many are around it."""
        self.nvtx.RangePush(msg)
        self.depth += 1
        return self.depth - 1

    def range_pop(self) -> int:
        """End the innermost range; how many were around it."""
        self.nvtx.RangePop()
        self.depth = max(self.depth - 1, 0)
        return self.depth

    def range_start(self, msg: str) -> int:
        """Begin a range that any thread may end, by the handle that this returns."""
        return self.nvtx.RangeStart(msg)

    def range_end(self, range_id: int) -> None:
        """End it."""
        self.nvtx.RangeEnd(range_id)
