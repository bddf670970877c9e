"""Surroundings: what a compiled function depends on beside its arguments.

They are found from what is compiled and the globals that the functions name which ran in a call (`Watching`), and from
there through modules, optimizers, containers, plain objects, closures and what the methods of classes close over. Of
everything found, identity counts; of numbers and strings, the value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import count
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from corefw.compiling.frames import names_of
from corefw.compiling.guards import PLAIN, Globals, Held, Some, Source, Variables, content, source_of
from corefw.nn.modules.module import Members, Module
from corefw.tensor import AccumulateGrad, Tensor

_LEADING_NOWHERE = (*PLAIN, ModuleType, type)
_INNER = ("corefw.compiling", "corefw.dispatch", "corefw.declarations")  # whose objects are no part of programs
_MOST = 100_000  # items; what has more is not looked through


class Surroundings:
    """Everything that is found from some roots.

    Attributes:
        tensors: {id: (tensor, name)}; names are as `spelled` takes them.
        opaque: what may give something else in each call: iterators; by name.
        arrays: the names of NumPy arrays, whose elements are not looked at.
        rates: (id of a dictionary, key) of numbers that do not count.
        schedulers: the ids of objects whose attributes do not count.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, tuple[Tensor, Any]] = {}
        self.opaque: list[Any] = []
        self.arrays: list[Any] = []
        self.rates: set[tuple[int, str]] = set()
        self.schedulers: set[int] = set()
        self._seen: dict[int, Any] = {}
        self._items: list[tuple[Any, Any]] = []  # a container, its name
        self._named: list[tuple[dict, Any]] = []  # those of them whose keys the program chooses
        self._cells: list[tuple[CellType, str]] = []  # of closures, with the variable's name
        self._codes: set[CodeType] = set()
        self._lookups: dict[int, tuple[dict, list[str]]] = {}  # by id of a module's globals: them, names

    # -- finding ------------------------------------------------------------------------------------------------------
    def add_functions(self, functions: dict[CodeType, dict[str, Any]]) -> bool:
        """Look through what functions name; whether one of them was new."""
        new = functions.keys() - self._codes
        for code in new:
            namespace = functions[code]
            for name in names_of(code, namespace):
                known = self._lookups.setdefault(id(namespace), (namespace, []))[1]
                if name not in known:
                    known.append(name)
                    self.add(namespace[name], name)
        self._codes |= new
        return bool(new)

    def add(self, value: Any, name: Any) -> None:
        """Look through a value, and what it leads to."""
        waiting = deque([(value, name)])
        while waiting:
            waiting.extend(self._look(*waiting.popleft()))

    def _look(self, value: Any, name: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(value, _LEADING_NOWHERE) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value, name
            if value.node.__class__ is AccumulateGrad and value.node.hooks is not None:
                for kind in ("tensor", "before", "after", "post_accumulate"):
                    yield getattr(value.node.hooks, kind), (name, ".", "hooks")
        elif isinstance(value, np.ndarray):
            self.arrays.append(name)
        elif isinstance(value, dict):
            if len(value) < _MOST:
                if not isinstance(value, Members):  # whose items are attributes of their module too
                    self._items.append((value, name))
                    self._named.append((value, name))
                for key, item in value.items():
                    yield item, (name, "[]", key)
        elif isinstance(value, list | tuple | set | frozenset | deque):
            if len(value) < _MOST:
                if not isinstance(value, tuple | frozenset):
                    self._items.append((value, name))
                for i, item in enumerate(value):
                    yield item, (name, "[]", i)
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
        elif id(value) in self.schedulers:
            yield value.optimizer, (name, ".", "optimizer")
        elif hasattr(type(value), "__next__"):
            self.opaque.append(name)
        elif isinstance(getattr(value, "__dict__", None), dict) and not type(value).__module__.startswith(_INNER):
            state = value.__dict__
            self._seen[id(state)] = state
            self._items.append((state, name))
            for key, item in list(state.items()):
                yield item, (name, ".", key)
            for base in type(value).__mro__:
                yield from self._methods(base)

    def _methods(self, kind: type) -> Iterator[tuple[Any, Any]]:
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

    def held(self) -> Held:
        """Everything that counts, as it is now."""
        sources = [self._source(container, name) for container, name in self._items]
        sources += [
            Source(container, count(), (name, ".", "keys"), container) for container, name in self._named if container
        ]
        for namespace, names in self._lookups.values():
            sources.append(Source(Globals(namespace, names), names, ""))
        if self._cells:
            variables = Variables([cell for cell, _ in self._cells])
            sources.append(Source(variables, [name for _, name in self._cells], ""))
        return Held(sources, [*self.tensors.values()])

    def _source(self, container: Any, name: Any) -> Source:
        if not any(owner == id(container) for owner, _ in self.rates):
            return source_of(container, name)
        keys = [key for key in container if (id(container), key) not in self.rates]
        return Source(Some(container, keys), [*keys, "its length"], name, container)

    def groups(self) -> set[int]:
        """The ids of the dictionaries of options of optimizers."""
        optimizers = (value for value in self._seen.values() if hasattr(value, "param_groups"))
        return {id(group) for optimizer in optimizers for group in optimizer.param_groups}
