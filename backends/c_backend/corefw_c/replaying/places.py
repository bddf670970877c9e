"""Where the arrays of a plan lie."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corefw.dispatch.plan import Cell


@dataclass(eq=False)
class Memory:
    """Memory that arrays of a plan show.

    Attributes:
        kind: "given" or "held", as cells are; "made", in each run, by a call that stays Python's; a "block" of the
            plan's own.
        source: of given and made memory, the cell whose array it is.
        size: of a block, in bytes.
        first, last: the numbers of the calls between which it is in use.
    """

    kind: str
    source: Cell | None = None
    size: int = 0
    first: int = -1
    last: int = -1

    def use(self, i: int) -> None:
        """Tell that call number `i` uses it."""
        self.first = i if self.first < 0 else self.first
        self.last = i


class Place(NamedTuple):
    """Where an array lies: in which memory, at what distance in bytes its first element, and how."""

    memory: Memory
    offset: int
    shape: tuple
    strides: tuple
    dtype: Any
    writable: bool


def placed(array: np.ndarray, memory: Memory, offset: int = 0) -> Place:
    """The place of an array."""
    return Place(memory, offset, array.shape, array.strides, array.dtype, array.flags.writeable)


def address_of(array: np.ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


class Span(NamedTuple):
    """The addresses between which the elements of an array lie."""

    begin: int
    end: int

    @classmethod
    def of(cls, array: np.ndarray) -> Span:
        """The span of an array."""
        begin = address_of(array)
        if array.flags.c_contiguous or not array.size:
            return cls(begin, begin + array.nbytes)
        return cls(*np.lib.array_utils.byte_bounds(array))

    def contains(self, other: Span) -> bool:
        """Whether the other one lies within."""
        return self.begin <= other.begin and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        """Whether they have bytes in common."""
        return self.begin < other.end and other.begin < self.end

    def content(self) -> np.ndarray:
        """A copy of the bytes."""
        return self.array().copy()

    def array(self) -> np.ndarray:
        """The bytes, where they are."""
        memory: Any = (ctypes.c_char * (self.end - self.begin)).from_address(self.begin)
        return np.ndarray(self.end - self.begin, np.uint8, memory)

    def restore(self, content: np.ndarray) -> None:
        """Write bytes back, where they are others."""
        if not np.array_equal(self.array(), content):
            self.array()[:] = content
