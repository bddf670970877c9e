"""Sizes that depend on inputs: found by comparing two programs that were recorded with different sizes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from corefw.capture.program import Line, Program, Value
from corefw.onnx.errors import OnnxExporterError


@dataclass(frozen=True)
class Size:
    """``factor * product of symbols + offset``. It is no number, so that nothing computes with one recorded size.

    >>> str(Size(("batch",), Fraction(2), -1))
    '2*batch - 1'
    """

    symbols: tuple[str, ...]
    factor: Fraction = Fraction(1)
    offset: int = 0

    def plus(self, number: int) -> Size:
        """The size that is larger by `number`."""
        return Size(self.symbols, self.factor, self.offset + number)

    def __str__(self) -> str:
        factor = [str(self.factor)] if self.factor != 1 else []
        sign = f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}" if self.offset else ""
        return "*".join([*factor, *self.symbols]) + sign


@dataclass(frozen=True)
class Unknown:
    """Two things, one of each recording, that no formula relates."""

    first: Any
    second: Any

    def __str__(self) -> str:
        return f"{self.first} in one run and {self.second} in the other"


#: a symbol -> its size in either recording
Symbols = dict[str, tuple[int, int]]


def relate(first: int, second: int, symbols: Symbols) -> int | Size | Unknown:
    """A number of two recordings as one, or as a formula of the sizes that differ.

    >>> str(relate(6, 15, {"batch": (2, 5)})), relate(3, 3, {"batch": (2, 5)})
    ('3*batch', 3)
    """
    if first == second:
        return first
    found: list[Size] = []
    for count in range(1, len(symbols) + 1):
        for names in combinations(symbols, count):
            a, b = (prod(symbols[name][i] for name in names) for i in (0, 1))
            if first * b == second * a and first * second > 0:
                found.append(Size(names, Fraction(first, a)))
            elif count == 1 and first - a == second - b:
                found.append(Size(names, offset=first - a))
    return found[0] if len(found) == 1 else Unknown(first, second)


def merged(first: Any, second: Any, symbols: Symbols) -> Any:
    """The attributes of two recordings as one."""
    if first.__class__ is not second.__class__:
        return Unknown(first, second)
    if first.__class__ is int:
        return relate(first, second, symbols)
    if first.__class__ is slice:
        parts = zip((first.start, first.stop, first.step), (second.start, second.stop, second.step))
        return slice(*(merged(a, b, symbols) for a, b in parts))
    if isinstance(first, tuple | list) and len(first) == len(second):
        return type(first)(merged(a, b, symbols) for a, b in zip(first, second))
    same = first is second or (not isinstance(first, np.ndarray) and bool(first == second))
    return first if same else Unknown(first, second)


def generalize(program: Program, other: Program, symbols: Symbols, host) -> dict[Value, Size]:
    """Write into `program` how its sizes depend on those of its inputs, by comparison with `other`; returns the numbers
    among its constants that depend on them too.

    Raises:
        OnnxExporterError: the programs differ in more than sizes.
    """
    pairs: dict[Value, Value] = dict(zip(program.inputs, other.inputs))
    numbers: dict[Value, Size] = {}

    def match(value: Any, partner: Any, line: Line | None) -> Any:
        if not isinstance(value, Value) or not isinstance(partner, Value):
            return merged(value, partner, symbols)
        known = pairs.setdefault(value, partner)
        if known is not partner:
            raise _different(line, "the ops are given other values")
        if value.line is None and value.kind != "input" and not _same(value, partner, host):
            number = _number(value, partner, symbols, host)
            if isinstance(number, Size):
                numbers[value], value.array = number, None
                return value
            raise _different(line, f"{value.kind} {value.name or value.type} has other elements or another shape")
        return value

    if len(program.lines) != len(other.lines):
        lengths = f"{len(program.lines)} ops in one and {len(other.lines)} in the other"
        raise _different(None, lengths)
    for line, partner in zip(program.lines, other.lines):
        if line.op is not partner.op or len(line.results) != len(partner.results):
            raise _different(line, f"{line.op.name} in one is {partner.op.name} in the other")
        arguments = []
        for a, b in zip(line.arguments, partner.arguments):
            if a.__class__ is list and b.__class__ is list and len(a) == len(b):
                arguments.append([match(x, y, line) for x, y in zip(a, b)])
            else:
                arguments.append(match(a, b, line))
        fixed = all(x.array is not None for x in line.values())
        unchanged = all(_static(x) for x in arguments if not isinstance(x, Value))
        for value, twin in zip(line.results, partner.results):
            pairs[value] = twin
            value.array = value.array if fixed and unchanged else None
        line.arguments = tuple(arguments)
    for value, twin in pairs.items():
        if len(value.shape) != len(twin.shape):
            raise _different(value.line, "a result has another number of dimensions")
        value.shape = merged(tuple(value.shape), tuple(twin.shape), symbols)
    for value, twin in zip(program.outputs, other.outputs):
        if pairs.setdefault(value, twin) is not twin:
            raise _different(value.line, "the outputs are other values")
    return numbers


def _number(value: Value, twin: Value, symbols: Symbols, host) -> Any:
    """What two constants are as one number, if both are whole."""
    if value.shape or twin.shape or value.kind != "constant":
        return None
    a, b = (host(x.array).item() for x in (value, twin))
    whole = all(isinstance(n, int | float) and n == n // 1 for n in (a, b))
    return relate(int(a), int(b), symbols) if whole else None


def _same(value: Value, twin: Value, host) -> bool:
    if value.array is twin.array:
        return True
    a, b = host(value.array), host(twin.array)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _static(attribute: Any) -> bool:
    """Whether nothing in an attribute depends on sizes."""
    if attribute.__class__ is slice:
        return all(map(_static, (attribute.start, attribute.stop, attribute.step)))
    if isinstance(attribute, tuple | list):
        return all(map(_static, attribute))
    return not isinstance(attribute, Size | Unknown)


def _different(line: Line | None, what: str) -> OnnxExporterError:
    where = f" at {line.where} ({line.op.name})" if line is not None else ""
    return OnnxExporterError(
        f"onnx.export: with other sizes of the dynamic axes the model runs another program{where}: {what}. Axes that "
        "branches, loops or constants of the model depend on must keep their size: leave them out"
    )
