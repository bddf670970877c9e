"""The smallest program that still shows a difference: entries are dropped, and what is left is made simpler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzzing.programs import Leaf, Name, Program, Ref, Step, renumbered

Shows = Callable[[Program], bool]
_FEW = 24  # values that are tried one by one


def shrink(program: Program, shows: Shows, seconds: float = 10.0) -> Program:
    """The program made smaller step by step, as long as it shows the difference; the best one when time is up."""
    end = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for candidates in (_fewer_entries, _shallower, _simpler_leaves, _simpler_steps):
            found = True
            while found and time.monotonic() < end:
                found = False
                for candidate in candidates(program):
                    if time.monotonic() > end:
                        break
                    if candidate != program and shows(candidate):
                        program, found, changed = candidate, True, True
                        break
        if time.monotonic() > end:
            break
    return program


# -- fewer entries ----------------------------------------------------------------------------------------------------
def _fewer_entries(program: Program) -> Iterator[Program]:
    """The program without its end, without one entry and all that depends on it, without what nobody names."""
    count = len(program.entries)
    for length in (count // 2, count - 2):
        if 0 < length < count - 1:
            yield program.upto(length)
    unused = program.unused()
    if unused and len(unused) < count:
        yield program.without(unused)
    for number in reversed(range(count)):
        if count > 1:
            yield program.without({number})


def _shallower(program: Program) -> Iterator[Program]:
    """The program with a leaf or an earlier entry in place of a step's result."""
    for number, entry in enumerate(program.entries):
        if not isinstance(entry, Step):
            continue
        for part in entry.arguments[:1]:
            if isinstance(part, Ref):
                yield _redirected(program, number, part.number)
        for shape in ((), (2,), (2, 3)):
            yield program.replaced(number, Leaf("float32", shape, (1.0, 2.0, 3.0, -1.0, 0.5)))
        yield program.replaced(number, Leaf("float64", (2, 3), (1.0, 2.0, 3.0, -1.0, 0.5), requires_grad=True))


def _redirected(program: Program, number: int, to: int) -> Program:
    """The program without a step, whose result is replaced by an earlier one."""
    entries = program.entries
    later = tuple(renumbered(entry, {number: to}) for entry in entries[number + 1 :])
    return Program((*entries[: number + 1], *later)).without({number})


# -- simpler leaves ---------------------------------------------------------------------------------------------------
def _simpler_leaves(program: Program) -> Iterator[Program]:
    for number, entry in enumerate(program.entries):
        if isinstance(entry, Leaf):
            for leaf in _leaves(entry):
                yield program.replaced(number, leaf)
    # the same size in all leaves at once
    sizes = sorted({n for e in program.entries if isinstance(e, Leaf) for n in e.shape if n > 1}, reverse=True)
    for size in sizes:
        for smaller in dict.fromkeys((1, 2, size // 2, size - 1)):
            if smaller < size:
                yield Program(tuple(_resized(e, size, smaller) for e in program.entries))
    dtypes = {e.dtype for e in program.entries if isinstance(e, Leaf)}
    for dtype in dtypes - {"float32", "float64"}:
        yield Program(tuple(_of_dtype(e, dtype, "float32") for e in program.entries))


def _of_dtype(entry: Leaf | Step, dtype: str, other: str) -> Leaf | Step:
    if isinstance(entry, Leaf) and entry.dtype == dtype and not any(isinstance(v, complex) for v in entry.values):
        return replace(entry, dtype=other)
    return entry


def _resized(entry: Leaf | Step, size: int, smaller: int) -> Leaf | Step:
    if not isinstance(entry, Leaf):
        return entry
    return replace(entry, shape=tuple(smaller if n == size else n for n in entry.shape))


def _leaves(leaf: Leaf) -> Iterator[Leaf]:
    """Simpler leaves than this one, the simplest first."""
    if leaf.layout != "contiguous":
        yield replace(leaf, layout="contiguous")
    if leaf.requires_grad:
        yield replace(leaf, requires_grad=False)
    for at, n in enumerate(leaf.shape):
        yield replace(leaf, shape=leaf.shape[:at] + leaf.shape[at + 1 :])
        for smaller in dict.fromkeys((1, n // 2, n - 1)):
            if 0 <= smaller < n:
                yield replace(leaf, shape=(*leaf.shape[:at], smaller, *leaf.shape[at + 1 :]))
    if len(leaf.values) > 1:
        yield replace(leaf, values=leaf.values[:1])
        yield replace(leaf, values=leaf.values[: len(leaf.values) // 2])
        yield replace(leaf, values=leaf.values[len(leaf.values) // 2 :])
        if len(leaf.values) <= _FEW:
            for at in range(len(leaf.values)):
                yield replace(leaf, values=leaf.values[:at] + leaf.values[at + 1 :])
    if len(leaf.values) <= _FEW:
        for at, value in enumerate(leaf.values):
            for simple in _simpler_numbers(value):
                yield replace(leaf, values=(*leaf.values[:at], simple, *leaf.values[at + 1 :]))


def _simpler_numbers(value) -> Iterator:
    """Simpler numbers of the same type."""
    if isinstance(value, bool):
        yield from (False,) if value else ()
    elif isinstance(value, int | float):
        kind = type(value)
        simple = [kind(0), kind(1), kind(2), kind(-1)]
        if isinstance(value, float) and value == value and abs(value) < 1e15:
            simple += [float(round(value)), round(value, 1), round(value, 3)]
        if isinstance(value, int):
            simple += [value // 2]
        for number in simple:
            if _complexity(number) < _complexity(value):
                yield number
    elif isinstance(value, complex):
        for number in (0j, 1 + 0j, 1j, complex(value.real, 0), complex(round(value.real, 1), round(value.imag, 1))):
            if _complexity(number) < _complexity(value):
                yield number


def _complexity(value) -> tuple:
    """An order of numbers in which simple ones come first."""
    return len(repr(value)), repr(value).startswith("-"), repr(value)


# -- simpler steps ----------------------------------------------------------------------------------------------------
def _simpler_steps(program: Program) -> Iterator[Program]:
    for number, entry in enumerate(program.entries):
        if isinstance(entry, Step):
            for step in _steps(entry):
                yield program.replaced(number, step)


def _steps(step: Step) -> Iterator[Step]:
    if not step.records:
        yield replace(step, records=True)
    for name in step.keywords:
        yield replace(step, keywords={k: v for k, v in step.keywords.items() if k != name})
    for name, value in step.keywords.items():
        for simple in _simpler(value):
            yield replace(step, keywords=step.keywords | {name: simple})
    if len(step.arguments) > 1:
        yield replace(step, arguments=step.arguments[:-1])
    for at, value in enumerate(step.arguments):
        for simple in _simpler(value):
            yield replace(step, arguments=(*step.arguments[:at], simple, *step.arguments[at + 1 :]))


def _simpler(value) -> Iterator:
    """Simpler arguments than this one."""
    if isinstance(value, tuple | list):
        kind = type(value)
        for at in range(len(value)):
            yield kind((*value[:at], *value[at + 1 :]))
        if len(value) == 1:
            yield value[0]
        for at, item in enumerate(value):
            for simple in _simpler(item):
                yield kind((*value[:at], simple, *value[at + 1 :]))
    elif isinstance(value, slice):
        yield slice(None)
        for name in ("start", "stop", "step"):
            if getattr(value, name) is not None:
                parts = {n: None if n == name else getattr(value, n) for n in ("start", "stop", "step")}
                yield slice(parts["start"], parts["stop"], parts["step"])
    elif isinstance(value, Name | Ref) or value is None or isinstance(value, str):
        return
    else:
        yield from _simpler_numbers(value)
