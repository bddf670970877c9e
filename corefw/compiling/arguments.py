"""What arguments look like: the key of the recordings that are made for them, and whether others look the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corefw.compiling.guards import PLAIN
from corefw.graph.views import node_of
from corefw.nn.parameter import Buffer, Parameter
from corefw.tensor import Tensor
from corefw.utils._pytree import tree_flatten

TENSORS = frozenset({Tensor, Parameter, Buffer})
_MOST = 100  # tensors that are looked at one by one
#: what is returned instead of a result where a recording does not hold
OTHER = object()


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
        if kind in TENSORS:
            array = value.array
            shared = versions.setdefault(id(value.version), len(tensors))
            same = shared < len(tensors) and array is tensors[shared].array
            parts.append((kind, value.dispatch_key, array.shape, array.strides, _is_new(value), shared, same))
            tensors.append(value)
        elif kind in PLAIN:
            parts.append((kind, value, str(value) if kind is float else ""))
        elif kind is list or kind is tuple:
            parts.append((kind, len(value)))
            _add(value, parts, tensors, others, versions)
        elif kind is dict:
            parts.append((kind, *value))
            _add(value.values(), parts, tensors, others, versions)
        else:
            leaves, structure = tree_flatten(value)
            if structure.is_leaf():
                parts.append(id(value))
                others.append(value)
            else:
                parts.append((kind, str(structure)))
                _add(leaves, parts, tensors, others, versions)


def _is_new(tensor: Tensor) -> bool:
    """Whether it has no history."""
    return (tensor.node if tensor.view_info is None else node_of(tensor)) is None


class Look:
    """How it is found that arguments look as some did: lines of a function of `args` and `kwargs`, which returns OTHER
    where they do not, and else goes on with the tensors among them, ``t0``, ``t1`` and so on, and their arrays ``r0``.

    Attributes: ``lines``; ``names`` the objects that they name; ``tensors`` how many there are.
    """

    def __init__(self, args: tuple, kwargs: dict):
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"is_new": _is_new, "key_of": key_of}
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
        elif kind is float:
            known = self.name(value)
            self.check(f"{place} is not {known} and ({place}.__class__ is not float or str({place}) != str({known}))")
        elif kind in PLAIN:
            known, of = self.name(value), self.name(kind)
            self.check(f"{place} is not {known} and ({place}.__class__ is not {of} or {place} != {known})")
        elif kind is list or kind is tuple:
            self.check(f"{place}.__class__ is not {kind.__name__}")
            self._items(place, value)
        elif kind is dict:
            self.check(f"{place}.__class__ is not dict or tuple({place}) != {self.name(tuple(value))}")
            if value:
                self._items(f"{place}.values()", tuple(value.values()))
        elif tree_flatten(value)[1].is_leaf():
            self.check(f"{place} is not {self.name(value)}")
        else:
            raise _Structured

    def _look_at_tensor(self, place: str, tensor: Tensor) -> None:
        i, array = len(self._tensors), tensor.array
        if i == _MOST:
            raise _Structured
        kind, key = self.name(tensor.__class__), self.name(tensor.dispatch_key)
        self.check(f"{place}.__class__ is not {kind} or {place}.dispatch_key is not {key}")
        self.lines.append(f"t{i} = {place}; r{i} = t{i}.array")
        self.check(f"r{i}.shape != {self.name(array.shape)} or r{i}.strides != {self.name(array.strides)}")
        if _is_new(tensor):
            self.check(f"(t{i}.node is not None or t{i}.view_info is not None) and not is_new(t{i})")
        else:
            self.check(f"is_new(t{i})")
        first = self._first.setdefault(id(tensor.version), i)
        if first < i:
            same = "not " if array is self._tensors[first].array else ""
            self.check(f"t{first}.version is not t{i}.version or r{first} is {same}r{i}")
        self._tensors.append(tensor)

    def _look_at_versions(self) -> None:
        """See that the others do not show each other's memory."""
        first = [*self._first.values()]
        if len(first) == 2:
            self.check(f"t{first[0]}.version is t{first[1]}.version")
        elif len(first) > 2:
            self.check(f"len({{{', '.join(f'id(t{i}.version)' for i in first)}}}) != {len(first)}")


class _Structured(Exception):
    """There is a structure that others have told `tree_flatten` of, or too much for a straight line."""
