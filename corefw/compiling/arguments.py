"""What arguments look like: the key of the recordings that are made for them, and whether others look the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from corefw.compiling.guards import PLAIN
from corefw.graph.views import node_of
from corefw.nn.parameter import Buffer, Parameter
from corefw.tensor import Tensor
from corefw.utils._pytree import tree_flatten

TENSORS = frozenset({Tensor, Parameter, Buffer})
_MOST = 100  # tensors that are looked at one by one
#: gives the tensors among arguments that look as others did and their arrays; None if these look otherwise
Look = Callable[[tuple, dict], "tuple[list[Tensor], list] | None"]


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


def look_for(args: tuple, kwargs: dict) -> Look:
    """The function that tells whether arguments look as these do, a straight line of comparisons."""
    writer = _Writer()
    try:
        writer.items("args", args)
        writer.check(f"{writer.name(tuple(kwargs))} != tuple(kwargs)" if kwargs else "kwargs")
        if kwargs:
            writer.items("kwargs.values()", tuple(kwargs.values()))
    except _Structured:
        return _by_key(key_of(args, kwargs)[0])
    return writer.function()


def _by_key(key: Any) -> Look:
    def look(args: tuple, kwargs: dict) -> tuple[list[Tensor], list] | None:
        found, tensors, _ = key_of(args, kwargs)
        return (tensors, [tensor.array for tensor in tensors]) if found == key else None

    return look


class _Structured(Exception):
    """There is a structure that others have told `tree_flatten` of, or too much for a straight line."""


class _Writer:
    """The function that is being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"is_new": _is_new}
        self._tensors: list[Tensor] = []
        self._first: dict[int, int] = {}  # by id of a version the number of the first tensor with it

    def name(self, value: Any) -> str:
        """The name of an object in the function."""
        self._names[made := f"v{len(self._names)}"] = value
        return made

    def check(self, *conditions: str) -> None:
        """Arguments for which one of the conditions holds look otherwise."""
        self._lines += [f"if {condition}: return None" for condition in conditions]

    def items(self, where: str, values: tuple) -> None:
        """Look at the items of something that can be gone through."""
        self.check(f"len({where}) != {len(values)}")
        places = [f"a{len(self._lines)}_{i}" for i in range(len(values))]
        if places:
            self._lines.append(f"{', '.join(places)}, = {where}")
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
            self.items(place, value)
        elif kind is dict:
            self.check(f"{place}.__class__ is not dict", f"tuple({place}) != {self.name(tuple(value))}")
            self.items(f"{place}.values()", tuple(value.values()))
        elif tree_flatten(value)[1].is_leaf():
            self.check(f"{place} is not {self.name(value)}")
        else:
            raise _Structured

    def _look_at_tensor(self, place: str, tensor: Tensor) -> None:
        i, array = len(self._tensors), tensor.array
        if i == _MOST:
            raise _Structured
        self.check(
            f"{place}.__class__ is not {self.name(tensor.__class__)}",
            f"{place}.dispatch_key is not {self.name(tensor.dispatch_key)}",
        )
        self._lines += [f"t{i}, r{i} = {place}, {place}.array"]
        self.check(
            f"r{i}.shape != {self.name(array.shape)} or r{i}.strides != {self.name(array.strides)}",
            f"(t{i}.node is not None or t{i}.view_info is not None) and not is_new(t{i})"
            if _is_new(tensor)
            else f"is_new(t{i})",
        )
        first = self._first.setdefault(id(tensor.version), i)
        if first < i:
            same = "not " if array is self._tensors[first].array else ""
            self.check(f"t{first}.version is not t{i}.version", f"r{first} is {same}r{i}")
        self._tensors.append(tensor)

    def function(self) -> Look:
        """The function."""
        numbers, first = range(len(self._tensors)), [*self._first.values()]
        if len(first) == 2:
            self.check(f"t{first[0]}.version is t{first[1]}.version")
        elif len(first) > 2:
            self.check(f"len({{{', '.join(f'id(t{i}.version)' for i in first)}}}) != {len(first)}")
        self._lines.append(f"return [{', '.join(f't{i}' for i in numbers)}], [{', '.join(f'r{i}' for i in numbers)}]")
        source = "def look(args, kwargs):\n" + "\n".join(f"    {line}" for line in self._lines)
        exec(compile(source, "<corefw arguments>", "exec"), self._names)
        return self._names["look"]
