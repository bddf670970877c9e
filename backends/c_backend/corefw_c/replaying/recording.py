"""A library that notes the calls of its functions, so that what a shim called can be called again without it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corefw.dispatch.plan import Rate
from corefw.dispatch.records import Layout
from corefw_c.replaying.places import address_of

#: functions that are given an array of addresses, unless `count` is 1: the numbers of these two parameters
_OF_ADDRESSES = dict.fromkeys(("index_read", "index_write", "index_sum"), (2, 3))
_MEMBERS = Layout("lists", "rates", "numbers").members
#: how many addresses of lists stand at the beginning of an optimizer's struct
LISTS = sum(kind == "uintptr_t" for kind in _MEMBERS.values())
#: where its members of type double stand
REALS = {name: 8 * i for i, (name, kind) in enumerate(_MEMBERS.items()) if kind == "double"}


@dataclass(eq=False)
class Operand:
    """An array among the arguments of a noted call, and perhaps where it lies (see `preparing.py`)."""

    array: Any
    place: Any = None


class Addresses(tuple):
    """Operands, or None, whose addresses a function is given in a C array."""


class AddressArray(tuple):
    """Operands whose addresses a function is given in a NumPy array."""


class ArrayList(tuple):
    """Operands that a function is given in a Python list."""


class Integers(tuple):
    """Integers that a function is given in a C array."""


@dataclass(eq=False)
class StepStruct:
    """The struct of an optimizer's step.

    Attributes: ``lists`` its lists, or None, which stand first; ``rest`` the bytes after them; ``rates`` where it has
    numbers that are others in each run, and which.
    """

    lists: tuple[ArrayList | None, ...]
    rest: bytes
    rates: dict[int, Rate] = field(default_factory=dict)


class Note(NamedTuple):
    """A call of a function of the library: operands, numbers and pointers to what does not change."""

    function: str
    arguments: tuple

    def operands(self) -> Iterator[Operand]:
        """The arrays among the arguments."""
        return _operands(self.arguments)


def _operands(arguments: Iterable) -> Iterator[Operand]:
    for argument in arguments:
        if argument.__class__ is Operand:
            yield argument
        elif argument.__class__ is StepStruct:
            yield from _operands(argument.lists)
        elif isinstance(argument, tuple):
            yield from _operands(argument)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory that another one shows."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # what numpy.lib.stride_tricks.as_strided puts between
        if not isinstance(base, np.ndarray):
            return array
        array = base


class Recording:
    """A library whose functions do what they do, and note it while somebody listens, one thread at a time.

    Args:
        lib: the library.
        types: the types of its functions, as cffi has them.

    Attributes:
        notes: the calls since `begin`.
        refusal: why they are not all that happened; "" if they are.
        unwritten: by `id` the owner of each memory that had not been seen before, and whether it was as the allocator
            gives it out (`marking_handler`) when a function first saw it: then all that stands there comes from the
            calls.
    """

    SMALL = 0  # what NumPy would move cannot be noted

    def __init__(self, lib: Any, types: Any):
        self.lib, self._types = lib, types
        self._listening = False

    def begin(self, known: Iterable[np.ndarray]) -> None:
        """Listen to the calls of a shim, which is given the arrays `known`."""
        self.notes: list[Note] = []
        self.refusal = ""
        self.unwritten: dict[int, tuple[np.ndarray, bool]] = {}
        self._known = {id(owner_of(array)) for array in known}
        self._listening = True

    def end(self) -> None:
        """Listen no more."""
        self._listening = False

    def refuse(self, reason: str) -> None:
        """Say that the notes are not all that happens; the first reason counts."""
        self.refusal = self.refusal or reason

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.lib, name)
        if callable(value):
            value = self._noting(name, value)
        setattr(self, name, value)
        return value

    def _noting(self, name: str, function: Callable) -> Callable:
        signature = self._types.typeof(function)

        def noting(*arguments: Any) -> Any:
            if not self._listening:
                return function(*arguments)
            note = Note(name, self._noted(name, signature.args, arguments))
            status = function(*arguments)
            if signature.result.cname != "int":
                self.refuse(f"{name} reads elements")
            elif status == 0:
                self.notes.append(note)
            return status

        return noting

    def noting_elementwise(self, function: Callable, loops: dict[tuple, Any]) -> Callable:
        """An elementwise function that notes its calls as those of the loop for the element types."""

        def noting(*inputs: Any, out: Any = None) -> Any:
            if not self._listening:
                return function(*inputs, out=out)
            loop = None
            if all(a.__class__ is np.ndarray for a in inputs):
                loop = loops.get(tuple([a.dtype for a in inputs]))
            if loop is None or (out is not None and out.dtype != loop[1]):
                self.refuse("NumPy converts an operand")
            operands = Addresses(map(self._operand, inputs)) if loop is not None else ()
            result = np.asarray(function(*inputs, out=out))
            if loop is not None:
                given = loop[0], len(inputs), operands, self._operand(result, written=True)
                self.notes.append(Note("elementwise_apply", given))
            return result

        return noting

    def _operand(self, array: np.ndarray, written: bool = False) -> Operand:
        """An array as an operand; `written` if a call that is noted has written all of it."""
        owner = owner_of(array)
        if id(owner) not in self._known and id(owner) not in self.unwritten:
            self.unwritten[id(owner)] = owner, written or self._is_unwritten(owner)
        return Operand(array)

    def _is_unwritten(self, owner: np.ndarray) -> bool:
        return self.lib.is_marked(address_of(owner), owner.nbytes)

    def _noted(self, name: str, kinds: Iterable[Any], arguments: tuple) -> tuple:
        """The arguments of a call with objects in place of addresses."""
        array, count = _OF_ADDRESSES.get(name, (None, 0))
        noted = list(map(self._argument, kinds, arguments))
        if array is not None and arguments[count] != 1:
            listed = _object_at(arguments[array]).tolist()
            noted[array] = AddressArray(self._operand(_object_at(address)) for address in listed)
        return tuple(noted)

    def _argument(self, kind: Any, argument: Any) -> Any:
        if kind.cname == "uintptr_t":
            return self._at(argument)
        if kind.kind == "pointer":
            item = kind.item.cname
            if item == "uintptr_t":
                return Addresses(map(self._at, argument))
            if item == "char":
                addresses = memoryview(argument)[: 8 * LISTS].cast("P")
                return StepStruct(tuple(map(self._at, addresses)), argument[8 * LISTS :])
            return Integers(argument) if item == "intptr_t" else argument
        if not isinstance(argument, int | float) or isinstance(argument, np.generic):
            self.refuse(f"a {type(argument).__name__} is read for a number")
        return argument

    def _at(self, address: int) -> Any:
        """The array or list at an address; None for none."""
        if not address:
            return None
        found = _object_at(address)
        return ArrayList(map(self._operand, found)) if found.__class__ is list else self._operand(found)


def _object_at(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value
