"""Kinds of calls: what two calls have in common if what proves one proves the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from corefw.dispatch.plan import Call, Cell, Rate, Seed
from corefw.dispatch.settings import settings
from corefw_c.replaying.places import Memory, Place
from corefw_c.replaying.recording import Note, Operand, StepStruct


def kind_of(call: Call, place_of: Callable[[Cell], Place], notes: Iterable[Note], results: Iterable[Place]) -> Any:
    """The kernel with its arguments and its noted calls, where of arrays counts how they lie and in which of the
    memories that the call knows; None if something cannot be compared."""
    kind = _Kind(place_of)
    try:
        made = (
            *(call.kernel, call.op.name, settings.deterministic, settings.attention, settings.allow_tf32),
            *(kind.of(call.arguments), kind.of(call.out)),
            tuple((note.function, kind.of(note.arguments)) for note in notes),
            tuple(map(kind.lie, results)),
        )
        hash(made)
    except TypeError:
        return None
    return made


class _Kind:
    """One call; its memories are numbered as they come."""

    def __init__(self, place_of: Callable[[Cell], Place]):
        self._place_of = place_of
        self._memories: dict[Memory, tuple[int, int]] = {}

    def lie(self, place: Place) -> tuple:
        """How and where an array lies; distances count from the first array in the memory."""
        number, start = self._memories.setdefault(place.memory, (len(self._memories), place.offset))
        return number, place.memory.kind, place.offset - start, *place[2:]

    def of(self, argument: Any) -> Any:
        """What counts of an argument."""
        kind = argument.__class__
        if kind is Cell:
            return self.lie(self._place_of(argument))
        if kind is Operand:
            if argument.place is not None:
                return self.lie(argument.place)
            return "constant", argument.array.shape, argument.array.strides, argument.array.dtype
        if kind is StepStruct:
            return self.of(argument.lists), argument.rest, tuple(argument.rates)
        if isinstance(argument, Seed | Rate):
            return kind, argument.source
        if isinstance(argument, list | tuple):
            return kind, *map(self.of, argument)
        return kind, str(argument) if kind is float else argument  # 0.0 and -0.0 are equal
