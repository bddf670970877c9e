"""What arguments look like: the key of the recordings that are made for them, and whether others look the same.

`ASPECTS` and `ITEMS` say what counts of a value; keys and the lines of `Look` are made of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from corefw.compiling.guards import PLAIN
from corefw.graph.views import node_of
from corefw.nn.parameter import Buffer, Parameter
from corefw.tensor import Tensor
from corefw.utils._pytree import tree_flatten

TENSORS = frozenset({Tensor, Parameter, Buffer})
_MOST = 100  # tensors that are looked at one by one
#: what is returned instead of a result where a recording does not hold
OTHER = object()


class Aspect(NamedTuple):
    """Something that counts of a value ``x``: an expression, and how what it gives is compared."""

    expression: str
    differs: str = "!="


_CLASS = Aspect("x.__class__", "is not")
_HAS_NO_HISTORY = "((x.node if x.view_info is None else node_of(x)) is None)"
#: by class what counts of a value beside its items; of others it is which object they are
ASPECTS: dict[type, tuple[Aspect, ...]] = {
    **dict.fromkeys(PLAIN, (_CLASS, Aspect("x"))),
    **dict.fromkeys((float, complex), (_CLASS, Aspect("str(x)"))),  # 0.0 and -0.0 are equal, and nan is not
    **dict.fromkeys((list, tuple), (_CLASS, Aspect("len(x)"))),
    dict: (_CLASS, Aspect("tuple(x)")),
    **dict.fromkeys(
        TENSORS,
        (
            *(_CLASS, Aspect("x.dispatch_key", "is not"), Aspect("x.array.shape"), Aspect("x.array.strides")),
            Aspect(_HAS_NO_HISTORY, "is not"),
        ),
    ),
}
#: by class of a container what gives its items
ITEMS = {list: "x", tuple: "x", dict: "x.values()"}


def _function(expression: str) -> Callable[[Any], Any]:
    return eval(f"lambda x: {expression}", {"node_of": node_of})


_PARTS = {kind: _function(f"({', '.join(a.expression for a in aspects)},)") for kind, aspects in ASPECTS.items()}
_VALUES = {a.expression: _function(a.expression) for aspects in ASPECTS.values() for a in aspects}
_ITEMS = {kind: _function(expression) for kind, expression in ITEMS.items()}


def key_of(args: tuple, kwargs: dict) -> tuple[Any, list[Tensor], list]:
    """What arguments look like, the tensors among them, and what counts by identity."""
    parts: list[Any] = []
    tensors: list[Tensor] = []
    others: list = []
    _add((*args, len(args), kwargs) if kwargs else args, parts, tensors, others, {})
    return tuple(parts), tensors, others


def _add(values: Iterable[Any], parts: list, tensors: list[Tensor], others: list, versions: dict[int, int]) -> None:
    """Add what values look like to `parts`; `versions` has the place of the first tensor with each."""
    for value in values:
        kind = value.__class__
        if kind in _PARTS:
            parts.append(_PARTS[kind](value))
            if kind in TENSORS:
                shared = versions.setdefault(id(value.version), len(tensors))
                parts.append((shared, shared < len(tensors) and value.array is tensors[shared].array))
                tensors.append(value)
            elif kind in ITEMS:
                _add(_ITEMS[kind](value), parts, tensors, others, versions)
        else:
            leaves, structure = tree_flatten(value)
            if structure.is_leaf():
                parts.append(id(value))
                others.append(value)
            else:
                parts.append((kind, str(structure)))
                _add(leaves, parts, tensors, others, versions)


class Look:
    """How it is found that arguments look as some did: lines of a function of `args` and `kwargs`, which returns OTHER
    where they do not, and else goes on with the tensors among them, ``t0``, ``t1`` and so on, and their arrays ``r0``.

    Attributes: ``lines``; ``names`` the objects that they name; ``tensors`` how many there are.
    """

    def __init__(self, args: tuple, kwargs: dict):
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"node_of": node_of, "key_of": key_of}
        self._tensors: list[Tensor] = []
        self._first: dict[int, int] = {}  # by id of a version the number of the first tensor with it
        try:
            self._items("args", args)
            self.check(f"tuple(kwargs) != {self.name(tuple(kwargs))}" if kwargs else "kwargs")
            if kwargs:
                self._items("kwargs.values()", tuple(kwargs.values()))
            self._look_at_versions()
        except _Structured:
            key, self._tensors, _ = key_of(args, kwargs)
            self.lines = ["found, tensors, _ = key_of(args, kwargs)"]
            self.check(f"found != {self.name(key)}")
            self.lines += [f"t{i} = tensors[{i}]; r{i} = t{i}.array" for i in range(len(self._tensors))]
        self.tensors = len(self._tensors)

    def name(self, value: Any) -> str:
        """The name of an object in the function."""
        self.names[made := f"v{len(self.names)}"] = value
        return made

    def check(self, *conditions: str) -> None:
        """Where one of these conditions holds the recording does not."""
        self.lines += [f"if {condition}: return OTHER" for condition in conditions]

    def _items(self, where: str, values: tuple) -> None:
        """Look at the items of something that can be gone through."""
        self.check(f"len({where}) != {len(values)}" if values else where)
        places = [f"a{len(self.lines)}_{i}" for i in range(len(values))]
        if places:
            self.lines.append(f"{', '.join(places)}, = {where}")
        for place, value in zip(places, values):
            self._look(place, value)

    def _look(self, place: str, value: Any) -> None:
        kind = value.__class__
        if kind in TENSORS:
            self._look_at_tensor(place, value)
        elif kind in ITEMS:
            self.check(self._differs(place, value))
            if value:
                self._items(_written(ITEMS[kind], place), tuple(_ITEMS[kind](value)))
        elif kind in ASPECTS:
            self.check(f"{place} is not {self.name(value)} and ({self._differs(place, value)})")
        elif tree_flatten(value)[1].is_leaf():
            self.check(f"{place} is not {self.name(value)}")
        else:
            raise _Structured

    def _differs(self, place: str, value: Any) -> str:
        """The condition under which something that counts of a value is not as it is now."""
        return " or ".join(
            f"{_written(aspect.expression, place)} {aspect.differs} {self.name(_VALUES[aspect.expression](value))}"
            for aspect in ASPECTS[value.__class__]
        )

    def _look_at_tensor(self, place: str, tensor: Tensor) -> None:
        i = len(self._tensors)
        if i == _MOST:
            raise _Structured
        self.check(self._differs(place, tensor))
        self.lines.append(f"t{i} = {place}; r{i} = t{i}.array")
        first = self._first.setdefault(id(tensor.version), i)
        if first < i:
            same = "not " if tensor.array is self._tensors[first].array else ""
            self.check(f"t{first}.version is not t{i}.version or r{first} is {same}r{i}")
        self._tensors.append(tensor)

    def _look_at_versions(self) -> None:
        """See that the others do not show each other's memory."""
        first = [*self._first.values()]
        if len(first) == 2:
            self.check(f"t{first[0]}.version is t{first[1]}.version")
        elif len(first) > 2:
            self.check(f"len({{{', '.join(f'id(t{i}.version)' for i in first)}}}) != {len(first)}")


def _written(expression: str, place: str) -> str:
    """An expression of ``x`` as one of a variable."""
    return re.sub(r"\bx\b", place, expression)


class _Structured(Exception):
    """There is a structure that others have told `tree_flatten` of, or too much for a straight line."""
