"""The records of optimizer steps: what their signatures say, as optimizers, kernels and the structs of C and CUDA read
it."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import cache
from graphlib import TopologicalSorter
from struct import Struct, calcsize
from typing import Any

from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry

#: types in C in the order of a struct's members, and as Python's `struct` names them
_CODES = {"uintptr_t": "P", "double": "d", "bool": "?"}


class Record:
    """What one optimizer's step is given, in the order of its op's signature.

    Attributes: ``arrays`` the lists of arrays: parameters, gradients, states; ``counts`` the lists of numbers;
    ``where`` {a list: the number without which it is empty}; ``lists``, ``rates``, ``numbers`` {name: type in C}, where
    rates are numbers that may be tensors; ``named`` the class of tuples that name all of them.
    """

    def __init__(self, op: Op):
        self.op, self.where = op, op.where
        lists = [p for p in op.parameters if p.kind == "tensors"]
        self.arrays = tuple(p.name for p in lists if p.role != "counts")
        self.counts = tuple(p.name for p in lists if p.role == "counts")
        self.lists = {p.name: "uintptr_t" for p in lists}
        self.rates = {p.name: "double" for p in op.parameters if p.kind == "rate"}
        self.numbers = {
            p.name: {"float": "double", "bool": "bool"}[p.annotation] for p in op.parameters if p.kind == "attribute"
        }
        self.named: Any = namedtuple(op.name, [p.name for p in op.parameters])  # type: ignore[misc]

    def present(self, step: Any) -> list[list]:
        """The lists of arrays that a step has, one of the class `named`."""
        where = self.where
        return [getattr(step, name) for name in self.arrays if name not in where or getattr(step, where[name])]


@cache
def record(name: str) -> Record:
    """The record of a step."""
    return Record(registry.declared[name])


def _steps() -> list[Record]:
    """The records of corefw's own steps."""
    module = f"{__name__.partition('.')[0]}.declarations.optimizer"
    updates = [name for name, op in registry.declared.items() if op.update and op.body.__module__ == module]
    return [step for step in map(record, updates) if step.rates]


def _merged(orders: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """All names, each once, so that those of each order follow each other as there."""
    sorter: TopologicalSorter = TopologicalSorter()
    for order in orders:
        before: tuple[str, ...] = ()
        for name in order:
            sorter.add(name, *before)
            before = (name,)
    return tuple(sorter.static_order())


class Layout:
    """A struct in C that holds what any step is given; the members that a step lacks are zero.

    Args:
        parts: what of the records it holds: "lists" (addresses), "rates", "numbers".

    Attributes: ``members`` {name: type}.
    """

    def __init__(self, *parts: str):
        self.parts = parts
        self.members = {
            name: kind
            for kind in _CODES
            for name in _merged([n for n, k in self._own(r).items() if k == kind] for r in _steps())
        }

    def _own(self, step: Record) -> dict[str, str]:
        return {name: kind for part in self.parts for name, kind in getattr(step, part).items()}

    def packer(self, name: str) -> Callable[..., bytes]:
        """The function that makes the struct of a step's parts, given in the order of its signature."""
        own = self._own(record(name))
        codes = [
            _CODES[kind] if member in own else f"{calcsize(_CODES[kind])}x" for member, kind in self.members.items()
        ]
        return Struct("".join([*codes, "0d"])).pack  # its size is a multiple of a double's, as in C
