"""Trials of noted calls on other memory, before they are believed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from corefw_c.replaying.places import Span, address_of
from corefw_c.replaying.recording import owner_of
from corefw_c.replaying.words import Functions, Words

_OTHER_MARK = 0x5A  # as unlikely as MARK, and another one


class Unproved(Exception):
    """Why a call stays Python's."""


class Scratch:
    """Memory for trials, which come one at a time: what one has used is the next one's."""

    def __init__(self) -> None:
        self._room = np.empty(0, np.uint8)
        self._asked = 0

    def begin(self) -> None:
        """Begin a trial, with as much as the largest one before has asked for."""
        if self._asked > len(self._room):
            self._room = np.empty(self._asked, np.uint8)
        self._asked = 0

    def take(self, size: int) -> np.ndarray:
        """So many bytes."""
        start, self._asked = self._asked, self._asked + size
        return self._room[start : start + size] if start + size <= len(self._room) else np.empty(size, np.uint8)

    def release(self) -> None:
        """Let go of it."""
        self._room = np.empty(0, np.uint8)
        self._asked = 0


class Copy:
    """Memory in place of a span, as long, and aligned as it is."""

    def __init__(self, span: Span, content: np.ndarray | None, scratch: Scratch):
        size = span.end - span.begin
        room = scratch.take(size + 128)
        start = (span.begin - address_of(room)) % 64
        self.span, self.content, self.bytes = span, content, room[start : start + size]
        self.begin()

    def begin(self) -> None:
        """Have it as it was before the call."""
        self.bytes[:] = _OTHER_MARK if self.content is None else self.content

    def of(self, array: np.ndarray) -> np.ndarray:
        """The array that lies here as one does in the span."""
        made = np.ndarray(array.shape, array.dtype, self.bytes, address_of(array) - self.span.begin, array.strides)
        made.flags.writeable = array.flags.writeable
        return made


class Changed:
    """The memory that a call changes, in spans that have no bytes in common."""

    def __init__(self, spans: Iterable[Span]):
        self._spans = sorted(span for span in spans if span.begin < span.end)
        self._begins = [span.begin for span in self._spans]

    def span(self, array: np.ndarray) -> Span | None:
        """The one in which an array lies, None if it lies elsewhere; Unproved if a part of it does."""
        lies = Span.of(array)
        i = bisect_left(self._begins, lies.end)  # the first one that begins behind it
        if not i or self._spans[i - 1].end <= lies.begin:
            return None
        if self._spans[i - 1].contains(lies):
            return self._spans[i - 1]
        raise Unproved("an argument shares memory with what is changed")

    def check(self, arrays: Iterable[np.ndarray]) -> None:
        """Raise Unproved if parts of arrays lie in them."""
        for array in arrays if self._spans else ():
            if array.size:
                self.span(array)


class Trial:
    """Copies of the memory that a call changes, as it was, and marked memory in place of what it makes."""

    def __init__(self, before: dict[Span, np.ndarray], scratch: Scratch):
        self._scratch = scratch
        self._changed = {span: Copy(span, content, scratch) for span, content in before.items()}
        self._spans = Changed(before)
        self._made: dict[int, Copy] = {}

    def replace(self, owner: np.ndarray) -> None:
        """Have other memory in place of one that the call makes."""
        self._made[id(owner)] = Copy(Span.of(owner), None, self._scratch)

    def begin(self) -> None:
        """Have all memory as it was before the call."""
        for copy in (*self._changed.values(), *self._made.values()):
            copy.begin()

    def of(self, array: np.ndarray) -> np.ndarray:
        """The array that a call is tried on in place of one."""
        if not array.size:
            return array
        span = self._spans.span(array)
        if span is not None:
            return self._changed[span].of(array)
        made = self._made.get(id(owner_of(array)))
        return array if made is None else made.of(array)

    def contents(self) -> list[np.ndarray]:
        """The bytes of what is changed."""
        return [copy.bytes for copy in self._changed.values()]

    def run(self, functions: Functions, words: Words, results: list[np.ndarray], expected: list[np.ndarray]) -> None:
        """Make the calls; raise Unproved unless the results, and then what is changed, are as expected."""
        count = len(words.calls)
        if functions.lib.run_prepared(words.calls, 0, count) != count:
            raise Unproved("it fails when it is made again")
        same = partial(_same_bits, functions.lib)
        if not all(map(same, [*map(self.of, results), *self.contents()], expected)):
            raise Unproved("its calls in C lead to something else")


def _same_bits(lib: Any, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two arrays of one shape and dtype have the same bits."""
    if not (first.flags.c_contiguous and second.flags.c_contiguous):
        return first.tobytes() == second.tobytes()
    return lib.is_same(address_of(first), address_of(second), first.nbytes)
