"""Prepared calls: the functions of a library with their arguments, a word each, for `run_prepared` in C."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from corefw.dispatch.plan import Rate, Seed
from corefw_c import library
from corefw_c.replaying.recording import LISTS, AddressArray, Addresses, ArrayList, Integers, Note, Operand, StepStruct

_MOST = 1 << 64


@cache
class Functions:
    """What is known of a level's functions: `lib`, cffi's `ffi`, and by name their `trampolines`."""

    def __init__(self, level: str):
        self.lib, self.ffi = library.load(level), import_module(f"corefw_c._{library.module_of(level)}").ffi
        self.trampolines: dict[str, Any] = {}
        row = self.lib.trampolines()
        while row.kernel:
            self.trampolines[self.ffi.string(row.kernel).decode()] = row.run
            row += 1

    def parameters(self, name: str) -> tuple:
        """The types of a function's parameters."""
        return self.ffi.typeof(getattr(self.lib, name)).args


class Words:
    """Calls in C, to be run again and again.

    Args:
        functions: of the level.
        notes: the calls.
        array_of: the array object to use for an operand.

    Attributes:
        calls: what `run_prepared` takes.
        varied: (words, number of one among them, seed, offset or rate): what is another one in each run.
    """

    def __init__(self, functions: Functions, notes: list[Note], array_of: Callable[[Operand], np.ndarray]):
        self._ffi, self._array_of = functions.ffi, array_of
        self._kept: list[Any] = []
        self.varied: list[tuple[Any, int, Seed | Rate]] = []
        values: list[int] = []
        starts, varied = [], []
        for note in notes:
            starts.append(len(values))
            for kind, argument in zip(functions.parameters(note.function), note.arguments, strict=True):
                if isinstance(argument, Seed | Rate):
                    varied.append((len(values), argument))
                values.append(self._word(kind, argument))
        words = self._ffi.new("uint64_t[]", values)
        self._kept.append(words)
        reals = self._ffi.cast("double *", words)
        self.varied += [(words if isinstance(what, Seed) else reals, number, what) for number, what in varied]
        self.calls = self._ffi.new("struct prepared[]", len(notes))
        first = self._ffi.cast("union word *", words)
        for call, note, start in zip(self.calls, notes, starts):
            call.run, call.arguments = functions.trampolines[note.function], first + start

    def _word(self, kind: Any, argument: Any) -> int:
        if argument is None:
            return 0
        if argument.__class__ in (Operand, ArrayList):
            return self._address(argument)
        if argument.__class__ is AddressArray:
            return self._object(np.array(list(map(self._address, argument)), np.uint64))
        if argument.__class__ is Addresses:
            return self._pointer(self._ffi.new("uintptr_t[]", list(map(self._address, argument))))
        if argument.__class__ is Integers:
            return self._pointer(self._ffi.new("intptr_t[]", list(argument)))
        if argument.__class__ is StepStruct:
            lists = struct.pack(f"{LISTS}P", *map(self._address, argument.lists))
            packed = self._ffi.new("char[]", lists + argument.rest)
            for offset, rate in argument.rates.items():
                self.varied.append((self._ffi.cast("double *", packed + offset), 0, rate))
            return self._pointer(packed)
        if kind.kind == "pointer":
            return self._pointer(argument)
        if kind.cname == "double":
            return struct.unpack("Q", struct.pack("d", argument))[0]
        return int(argument) % _MOST

    def _address(self, argument: Any) -> int:
        """The address of the object that stands for an operand or a list of operands."""
        if argument is None:
            return 0
        if argument.__class__ is ArrayList:
            return self._object([self._array_of(operand) for operand in argument])
        return self._object(self._array_of(argument))

    def _object(self, value: Any) -> int:
        self._kept.append(value)
        return id(value)

    def _pointer(self, value: Any) -> int:
        self._kept.append(value)
        return int(self._ffi.cast("uintptr_t", value))
