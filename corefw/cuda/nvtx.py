"""Marks and ranges that NVIDIA's profilers show, under PyTorch's names.

>>> import corefw as torch
>>> torch.cuda.nvtx.mark.__module__
'corefw.cuda.nvtx'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corefw.cuda._runtime import runtime
from corefw.errors import DeviceError

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _ranges() -> Any:
    """What makes them.

    Raises:
        RuntimeError: there is no GPU, or nothing to mark its time with.
    """
    try:
        return runtime().ranges()
    except DeviceError as error:
        raise RuntimeError(f"NVTX functions not installed. Are you sure you have a CUDA build? ({error})") from None


def mark(msg: str) -> None:
    """Mark a moment."""
    _ranges().mark(msg)


def range_push(msg: str) -> int:
    """Begin a range inside of those of the thread.

    Returns:
        How many ranges are around it.
    """
    return _ranges().range_push(msg)


def range_pop() -> int:
    """End the innermost range of the thread.

    Returns:
        How many ranges were around it.
    """
    return _ranges().range_pop()


def range_start(msg: str) -> int:
    """Begin a range that may end in another thread.

    Returns:
        A handle for `range_end`.
    """
    return _ranges().range_start(msg)


def range_end(range_id: int) -> None:
    """End a range by the handle that `range_start` gave."""
    _ranges().range_end(range_id)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block, or a decorated function, as a range.

    Args:
        msg: what it is called; with arguments, a text for ``str.format``.
    """
    range_push(msg.format(*args, **kwargs) if args or kwargs else msg)
    try:
        yield
    finally:
        range_pop()
