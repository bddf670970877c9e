"""Programs as data: input tensors and steps, each of which may name what came before it by number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

import corefw
from corefw.shapes import contiguous_strides


@dataclass(frozen=True)
class Ref:
    """What the entry of this number gave."""

    number: int


@dataclass(frozen=True)
class Name:
    """An attribute of the framework, such as a dtype."""

    text: str


@dataclass(frozen=True)
class Leaf:
    """An input tensor: its memory is `values` over and over, seen as `layout` says."""

    dtype: str
    shape: tuple[int, ...]
    values: tuple
    layout: str = "contiguous"
    requires_grad: bool = False


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        function: a dotted name below the framework ("add", "nn.functional.relu"), ".name" for a method of the first
            argument, "operator.name" for Python's operators, "op:name" for an op of corefw that is not public,
            "gradients" for `corefw.autograd.grad` of (outputs, inputs, weights).
        arguments, keywords: numbers, strings, None, sequences, slices, `Ref` and `Name`.
        records: whether gradients are recorded meanwhile.
    """

    function: str
    arguments: tuple = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    records: bool = True


@dataclass(frozen=True)
class Program:
    """Entries in order; an entry's number is its place."""

    entries: tuple[Leaf | Step, ...]

    def without(self, numbers: set[int]) -> Program:
        """The program less these entries and all that depends on them."""
        gone, kept, moved = set(numbers), [], {}
        for i, entry in enumerate(self.entries):
            if i not in gone and not gone.isdisjoint(references(entry)):
                gone.add(i)
            if i not in gone:
                moved[i] = len(kept)
                kept.append(renumbered(entry, moved))
        return Program(tuple(kept))

    def upto(self, number: int) -> Program:
        """The entries before and with this one."""
        return Program(self.entries[: number + 1])

    def replaced(self, number: int, entry: Leaf | Step) -> Program:
        """The program with another entry at one place."""
        return Program((*self.entries[:number], entry, *self.entries[number + 1 :]))

    def unused(self) -> set[int]:
        """The leaves that no step names."""
        named = {n for entry in self.entries for n in references(entry)}
        return {i for i, entry in enumerate(self.entries) if isinstance(entry, Leaf) and i not in named}

    @property
    def steps(self) -> int:
        return sum(isinstance(entry, Step) for entry in self.entries)


def words(text: str) -> tuple[str, ...]:
    """The words of a text: a table of names."""
    return tuple(text.split())


# -- walking over arguments -------------------------------------------------------------------------------------------
def mapped(value, change):
    """An argument with every `Ref` and `Name` in it replaced by what `change` makes of it."""
    kind = type(value)
    if kind is Ref or kind is Name:
        return change(value)
    if kind is tuple or kind is list:
        return kind([mapped(item, change) for item in value])
    if kind is slice:
        return slice(mapped(value.start, change), mapped(value.stop, change), mapped(value.step, change))
    return value


def references(entry: Leaf | Step) -> Iterator[int]:
    """The numbers that an entry names."""
    if isinstance(entry, Leaf):
        return iter(())
    found: list[int] = []
    note = lambda part: found.append(part.number) if isinstance(part, Ref) else None
    mapped((entry.arguments, tuple(entry.keywords.values())), note)
    return iter(found)


def renumbered(entry: Leaf | Step, numbers: dict[int, int]) -> Leaf | Step:
    """The entry with other numbers in its references."""
    if isinstance(entry, Leaf):
        return entry
    change = lambda part: Ref(numbers.get(part.number, part.number)) if isinstance(part, Ref) else part
    keywords = {k: mapped(v, change) for k, v in entry.keywords.items()}
    return replace(entry, arguments=mapped(entry.arguments, change), keywords=keywords)


# -- the memory of leaves ---------------------------------------------------------------------------------------------
#: how a tensor may lie in memory
LAYOUTS = ("contiguous", "offset", "transposed", "strided", "gapped", "expanded")


def geometry(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], int, int]:
    """Strides, offset and size of the memory, in elements."""
    if layout in ("contiguous", "offset") or not shape:
        offset = int(layout != "contiguous")
        return contiguous_strides(shape), offset, prod(shape) + offset
    if layout == "transposed":
        return tuple(reversed(contiguous_strides(tuple(reversed(shape))))), 0, prod(shape)
    if layout == "expanded":  # the first dimension repeated without memory
        return (0, *contiguous_strides(shape)[1:]), 0, prod(shape[1:])
    steps = (2,) * len(shape) if layout == "strided" else (1,) * len(shape)
    memory = tuple(step * n + 1 for step, n in zip(steps, shape))
    return tuple(step * s for step, s in zip(steps, contiguous_strides(memory))), 1, prod(memory) + 1


def numpy_dtype(name: str) -> np.dtype:
    return getattr(corefw, name).numpy


def memory_of(leaf: Leaf, size: int) -> np.ndarray:
    """The leaf's memory: its values over and over."""
    dtype = numpy_dtype(leaf.dtype)
    with np.errstate(all="ignore"):
        values = np.array(leaf.values or (0,)).astype(dtype)
        return np.array(np.resize(values, size))  # resize itself shows a part of larger memory


def array_of(leaf: Leaf) -> np.ndarray:
    """The leaf as a NumPy array over memory of its own."""
    strides, offset, size = geometry(leaf.shape, leaf.layout)
    memory = memory_of(leaf, size)
    if leaf.layout == "contiguous":
        return memory.reshape(leaf.shape)
    strides = tuple(s * memory.itemsize for s in strides)
    return np.lib.stride_tricks.as_strided(memory[offset:], leaf.shape, strides)


# -- as JSON ----------------------------------------------------------------------------------------------------------
_TAGGED = {
    Ref: lambda v: {"ref": v.number},
    Name: lambda v: {"name": v.text},
    complex: lambda v: {"complex": [v.real, v.imag]},
    slice: lambda v: {"slice": [_plain(v.start), _plain(v.stop), _plain(v.step)]},
    type(...): lambda v: {"ellipsis": True},
    list: lambda v: {"list": [_plain(item) for item in v]},
    tuple: lambda v: [_plain(item) for item in v],
}
_READ = {
    "ref": Ref,
    "name": Name,
    "complex": lambda v: complex(*v),
    "slice": lambda v: slice(*map(_value, v)),
    "ellipsis": lambda v: ...,
    "list": lambda v: [_value(item) for item in v],
}


def _plain(value):
    return _TAGGED.get(type(value), lambda v: v)(value)


def _value(plain):
    if isinstance(plain, list):
        return tuple(map(_value, plain))
    if isinstance(plain, dict):
        ((tag, content),) = plain.items()
        return _READ[tag](content)
    return plain


def to_json(program: Program, **about) -> str:
    """The program as text, one line an entry, with further facts about it."""
    lines = []
    for entry in program.entries:
        if isinstance(entry, Leaf):
            plain = {"dtype": entry.dtype, "shape": list(entry.shape), "values": _plain(entry.values)}
            plain |= {"layout": entry.layout} if entry.layout != "contiguous" else {}
            plain |= {"requires_grad": True} if entry.requires_grad else {}
        else:
            plain = {"call": entry.function, "arguments": _plain(entry.arguments)}
            plain |= {"keywords": {k: _plain(v) for k, v in entry.keywords.items()}} if entry.keywords else {}
            plain |= {} if entry.records else {"records": False}
        lines.append("  " + json.dumps(plain))
    facts = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in about.items()]
    return "{" + ",\n ".join([*facts, '"program": [\n' + ",\n".join(lines) + "\n ]"]) + "}\n"


def from_json(text: str) -> tuple[Program, dict]:
    """A program, and what else was said about it."""
    about = json.loads(text)
    entries: list[Leaf | Step] = []
    for plain in about.pop("program"):
        if "call" in plain:
            keywords = {k: _value(v) for k, v in plain.get("keywords", {}).items()}
            step = Step(plain["call"], _value(plain["arguments"]), keywords, plain.get("records", True))
            entries.append(step)
        else:
            fields = {"shape": tuple(plain["shape"]), "values": _value(plain["values"])}
            entries.append(Leaf(**(plain | fields)))
    return Program(tuple(entries)), about
