"""Surroundings: what a compiled function depends on beside its arguments, and whether it still is as it was.

They are found from what is compiled and the globals that the functions name which ran in a call (`Watching`), and from
there through modules, optimizers, containers, plain objects, closures and what the methods of classes close over. Of
everything found, identity counts; of numbers and strings, the value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from corefw.compiling.frames import names_of
from corefw.devices import device
from corefw.dtypes import dtype
from corefw.nn.modules.module import Members, Module
from corefw.tensor import AccumulateGrad, Tensor

PLAIN = (int, float, complex, bool, str, bytes, type(None), dtype, device)
_INNER = ("corefw.compiling", "corefw.dispatch", "corefw.declarations")  # whose objects are no part of programs
_MOST = 100_000  # items; what has more is not looked through


class Surroundings:
    """Everything that is found from some roots.

    Attributes:
        tensors: {id: (tensor, name)}.
        opaque: what may give something else in each call: iterators; by name.
        arrays: the names of NumPy arrays, whose elements are not looked at.
        rates: (id of a dictionary, key) of numbers that do not count.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, tuple[Tensor, str]] = {}
        self.opaque: list[str] = []
        self.arrays: list[str] = []
        self.rates: set[tuple[int, str]] = set()
        self._seen: dict[int, Any] = {}
        self._items: list[tuple[Any, str]] = []  # a container, its name
        self._cells: list[tuple[CellType, str]] = []  # of closures, with the variable's name
        self._codes: set[CodeType] = set()
        self._lookups: dict[tuple[int, str], tuple[dict, str]] = {}

    # -- finding ------------------------------------------------------------------------------------------------------
    def add_functions(self, functions: dict[CodeType, dict[str, Any]]) -> bool:
        """Look through what functions name; whether one of them was new."""
        new = functions.keys() - self._codes
        for code in new:
            namespace = functions[code]
            for name in names_of(code, namespace):
                self._lookups[id(namespace), name] = namespace, name
                self.add(namespace[name], name)
        self._codes |= new
        return bool(new)

    def add(self, value: Any, name: str) -> None:
        """Look through a value, and what it leads to."""
        waiting = deque([(value, name)])
        while waiting:
            waiting.extend(self._look(*waiting.popleft()))

    def _look(self, value: Any, name: str) -> Iterator[tuple[Any, str]]:
        if isinstance(value, (*PLAIN, ModuleType, type)) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value, name
            if value.node.__class__ is AccumulateGrad and value.node.hooks is not None:
                for kind in ("tensor", "before", "after", "post_accumulate"):
                    yield getattr(value.node.hooks, kind), f"{name}'s hooks"
        elif isinstance(value, np.ndarray):
            self.arrays.append(name)
        elif isinstance(value, dict):
            if len(value) < _MOST:
                if not isinstance(value, Members):  # whose items are attributes of their module too
                    self._items.append((value, name))
                for key, item in value.items():
                    yield item, f"{name}[{key!r}]"
        elif isinstance(value, list | tuple | set | frozenset | deque):
            if len(value) < _MOST:
                if not isinstance(value, tuple | frozenset):
                    self._items.append((value, name))
                for i, item in enumerate(value):
                    yield item, f"{name}[{i}]"
        elif isinstance(value, FunctionType):
            for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                self._cells.append((cell, variable))
                yield content(cell), variable
            yield from ((default, name) for default in (value.__defaults__, value.__kwdefaults__) if default)
        elif isinstance(value, MethodType):
            yield value.__self__, name
            yield value.__func__, name
        elif isinstance(value, partial):
            yield from ((part, name) for part in (value.func, value.args, value.keywords))
        elif hasattr(type(value), "__next__"):
            self.opaque.append(name)
        elif isinstance(getattr(value, "__dict__", None), dict) and not type(value).__module__.startswith(_INNER):
            state = value.__dict__
            self._seen[id(state)] = state
            self._items.append((state, name))
            for key, item in list(state.items()):
                yield item, f"{name}.{key}"
            for base in type(value).__mro__:
                yield from self._methods(base)

    def _methods(self, kind: type) -> Iterator[tuple[Any, str]]:
        """The functions of a class, which may close over variables."""
        if id(kind) in self._seen or kind.__module__.partition(".")[0] in ("builtins", "corefw"):
            return
        self._seen[id(kind)] = kind
        for name, value in list(vars(kind).items()):
            if isinstance(value, property):
                yield from ((part, name) for part in (value.fget, value.fset) if part is not None)
            elif isinstance(value, FunctionType | staticmethod | classmethod):
                yield getattr(value, "__func__", value), name

    def modules(self) -> list[Module]:
        """The modules that were found."""
        return [value for value in self._seen.values() if isinstance(value, Module)]

    # -- comparing ----------------------------------------------------------------------------------------------------
    def leaves(self) -> list[Tensor]:
        """The tensors whose gradients are accumulated, in the order in which they were found."""
        return [tensor for tensor, _ in self.tensors.values() if tensor.node.__class__ is AccumulateGrad]

    def _counting(self, container: Any) -> list[Any] | None:
        """The keys of a dictionary that count, None if all do."""
        if not any(owner == id(container) for owner, _ in self.rates):
            return None
        return [key for key in container if (id(container), key) not in self.rates]

    def present(self) -> Callable[[], list]:
        """A function that lists everything that counts, as it is when it is called."""
        names: dict[str, Any] = {"content": content}
        parts = []
        for i, (container, _) in enumerate(self._items):
            names[f"c{i}"] = container
            if (keys := self._counting(container)) is not None:
                names[f"k{i}"] = keys
                parts.append(f"*[c{i}.get(k) for k in k{i}], len(c{i})")
            else:
                parts.append(f"*c{i}.values()" if isinstance(container, dict) else f"*c{i}")
        for i, (namespace, name) in enumerate(self._lookups.values()):
            names[f"g{i}"] = namespace
            parts.append(f"g{i}.get({name!r})")
        for i, (cell, _) in enumerate(self._cells):
            names[f"x{i}"] = cell
            parts.append(f"content(x{i})")
        for i, (tensor, _) in enumerate(self.tensors.values()):
            names[f"t{i}"] = tensor
            parts += [f"t{i}.array", f"t{i}.node"]
            if tensor.node.__class__ is AccumulateGrad:
                parts += [f"t{i}.node and t{i}.node.hooks", f"t{i}._grad is None"]
        exec(f"def present():\n    return [{', '.join(parts)}]", names)
        return names["present"]

    def difference(self, before: list) -> str:
        """The name of something that is not as it was in `before`, a list that `present` gave; "" if nothing is."""
        i = 0
        for container, name in self._items:
            if (keys := self._counting(container)) is not None:
                now, keys = [*map(container.get, keys), len(container)], [*keys, "its length"]
            else:
                now = [*container.values()] if isinstance(container, dict) else [*container]
                keys = [*container] if isinstance(container, dict) else [*range(len(now))]
            for place, item in enumerate(now):
                if i + place >= len(before) or not same(before[i + place], item):
                    return f"{name}[{keys[place]!r}]"
            i += len(now)
        for namespace, name in self._lookups.values():
            if i >= len(before) or not same(before[i], namespace.get(name)):
                return name
            i += 1
        for cell, name in self._cells:
            if i >= len(before) or not same(before[i], content(cell)):
                return name
            i += 1
        for tensor, name in self.tensors.values():
            if i + 1 >= len(before) or tensor.array is not before[i] or tensor.node is not before[i + 1]:
                return f"the memory or history of {name}"
            i += 4 if tensor.node.__class__ is AccumulateGrad else 2
        return "" if i == len(before) else "what is held in a container"

    def changed_numbers(self, before: list) -> list[tuple[dict, str]]:
        """The options of optimizers that are other numbers than in `before`; none if anything else has changed."""
        found, i = [], 0
        groups = {
            id(group) for value in self._seen.values() if hasattr(value, "param_groups") for group in value.param_groups
        }
        now = self.present()()
        if len(now) != len(before):
            return []
        for container, _ in self._items:
            keys = self._counting(container)
            for key in [*container] if isinstance(container, dict) and keys is None else keys or ():
                if id(container) in groups and before[i].__class__ is float and now[i].__class__ is float:
                    if now[i] != before[i]:
                        found.append((container, key))
                    now[i] = before[i]
                i += 1
            i += len(container) if not isinstance(container, dict) else 1 if keys is not None else 0
        return found if all_same(now, before) else []


def content(cell: CellType) -> Any:
    """The value of a variable that functions share; None before it has one."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def same(first: Any, second: Any) -> bool:
    """Whether two values count as one: the same object, or equal numbers or strings of one class."""
    if first is second:
        return True
    kind = first.__class__
    return kind is second.__class__ and kind in PLAIN and bool(first == second) and repr(first) == repr(second)


def all_same(first: list, second: list) -> bool:
    """Whether two lists hold the same values."""
    return len(first) == len(second) and (all(map(is_, first, second)) or all(map(same, first, second)))
