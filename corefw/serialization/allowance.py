"""How much memory a file may ask for beyond what it stores: in proportion to its size, whatever its content says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FACTOR = 16  # bytes for each byte of the file
_BASE = 1 << 24  # bytes for any file


class Allowance:
    """The bytes that the content of one file may still ask for."""

    __slots__ = ("_left", "_length")

    def __init__(self, length: int):
        self._length = length
        self._left = _FACTOR * length + _BASE

    def take(self, count: int, what: str) -> None:
        """Count bytes; RuntimeError if they are more than the file may ask for."""
        self._left -= count
        if self._left < 0:
            raise RuntimeError(
                f"{what} would take more memory than a file of {self._length} bytes may ask for: {_FACTOR} times its "
                f"size and {_BASE >> 20} MiB. It is damaged or malicious, or compressed by another tool: a checkpoint "
                "holds its records uncompressed, so unpack it and pack it again without compression."
            )


_current: ContextVar[Allowance | None] = ContextVar("corefw.serialization.allowance", default=None)


@contextmanager
def granted(length: int) -> Iterator[None]:
    """Inside the with-block a file of `length` bytes is read."""
    token = _current.set(Allowance(length))
    try:
        yield
    finally:
        _current.reset(token)


def take(count: int, what: str) -> None:
    """Count bytes of the file being read, if one is; see `Allowance.take`."""
    allowance = _current.get()
    if allowance is not None:
        allowance.take(count, what)
