"""Programs: ops with their attributes over numbered values, one line after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from corefw.devices import DispatchKey
from corefw.dispatch.op import Op
from corefw.dtypes import dtype


@dataclass(eq=False)
class Value:
    """One array of a program.

    Attributes:
        kind: "input", "state" (a parameter or buffer), "constant" or "result" (of a line).
        name: of an input or a state; "" of others.
        shape, dtype: of its elements, as they were while the program was recorded.
        array: the raw array that was there; None where the program changed it afterwards.
        line: what computes it, None of what is given.
        number: its place among the values of its program, told when the program is printed.
    """

    kind: str
    name: str
    shape: tuple
    dtype: dtype
    array: Any = None
    line: Line | None = None
    number: int = -1

    def __str__(self) -> str:
        return f"%{self.number}"

    @property
    def type(self) -> str:
        """Its dtype and shape: "float32[2, 3]"."""
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"


@dataclass(eq=False)
class Line:
    """One call of an op: its arguments are those of a kernel, with values in place of arrays.

    Attributes:
        where: the line of the user's program that called it.
    """

    op: Op
    dispatch_key: DispatchKey
    arguments: tuple
    results: tuple[Value, ...] = ()
    where: str = ""

    def values(self) -> Iterator[Value]:
        """The values among the arguments."""
        for argument in self.arguments:
            for item in argument if argument.__class__ is list else (argument,):
                if item.__class__ is Value:
                    yield item

    def __str__(self) -> str:
        names = [p.name for p in self.op.kernel_parameters]
        shown = []
        for name, argument in zip(names, self.arguments, strict=False):
            if argument.__class__ is list:
                shown.append(f"[{', '.join(map(str, argument))}]")
            else:
                shown.append(str(argument) if argument.__class__ is Value else f"{name}={argument!r}")
        results, types = ", ".join(map(str, self.results)), ", ".join(value.type for value in self.results)
        return f"{results} = {self.op.name}({', '.join(shown)}): {types}"


@dataclass
class Program:
    """What a function computed, as a straight line: branches and loops are those that were taken.

    Attributes:
        inputs: what it is given, in order.
        lines: the calls of ops, in order.
        outputs: what it returns, in order.
        changed: what states and inputs that it changes in place become.
        read: values whose elements the function took out, as `item` does, with the user's line: what it made of them is
            not written down.

    ``str(program)`` shows one line per op with shapes and dtypes.
    """

    inputs: list[Value] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    changed: dict[Value, Value] = field(default_factory=dict)
    read: dict[Value, str] = field(default_factory=dict)

    def given(self) -> list[Value]:
        """The states and constants that lines or outputs use, in the order of their use."""
        used = [value for line in self.lines for value in line.values()]
        return [v for v in dict.fromkeys(used + self.outputs) if v.kind in ("state", "constant")]

    def following(self) -> set[Value]:
        """The inputs and all values that follow from them."""
        found = set(self.inputs)
        for line in self.lines:
            if not found.isdisjoint(line.values()):
                found.update(line.results)
        return found

    def prune(self) -> None:
        """Drop the lines that neither outputs nor changes need."""
        needed = set(self.outputs) | set(self.changed.values())
        kept = []
        for line in reversed(self.lines):
            if not needed.isdisjoint(line.results):
                needed.update(line.values())
                kept.append(line)
        self.lines = kept[::-1]

    def __str__(self) -> str:
        values = [*self.inputs, *self.given(), *(value for line in self.lines for value in line.results)]
        for number, value in enumerate(values):
            value.number = number
        shown = [f"{v} = {f'{v.kind} {v.name}'.strip()}: {v.type}" for v in values if v.line is None]
        changes = [f"{value.name} becomes {after}" for value, after in self.changed.items()]
        return "\n".join([*shown, *map(str, self.lines), *changes, f"return {', '.join(map(str, self.outputs))}"])
