"""Namespaces that lack some of NumPy's functions: which kernels need these is found by reading the kernels."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


class Lacking:
    """What stands for a name that a namespace lacks while kernels are made, and for whatever is made of it then."""

    def __init__(self, name: str):
        self.lacking = name

    def __getattr__(self, name: str) -> Lacking:
        return self

    def __call__(self, *arguments, **keywords) -> Lacking:
        return self


class Lenient:
    """An array namespace in which every name can be looked up."""

    def __init__(self, xp: Any):
        self._xp = xp
        self.ufunc = getattr(xp, "ufunc", ())  # for isinstance

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._xp, name, None)
        return Lacking(name) if found is None else found


def lacking(kernel: Callable, xp: Any) -> list[str]:
    """The names that a kernel needs and the namespace `xp` lacks.

    >>> import types
    >>> xp = Lenient(types.SimpleNamespace(exp=abs))
    >>> lacking(lambda input: xp.log(xp.exp(input)), xp)
    ['log']
    """
    return sorted({name for name in _needed(kernel, set()) if isinstance(getattr(xp, name), Lacking)})


def _needed(value: Any, seen: set[int]) -> Iterator[str]:
    """The names of its namespace that a kernel uses, itself or in functions that it calls; of a value what it lacks."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Lacking):
        yield value.lacking
    elif isinstance(value, dict):
        for item in value.values():
            yield from _needed(item, seen)
    elif isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            if not isinstance(cell.cell_contents, Lenient):
                yield from _needed(cell.cell_contents, seen)
        yield from _named(value.__code__, value.__globals__, seen)


def _named(code: CodeType, scope: dict[str, Any], seen: set[int]) -> Iterator[str]:
    """What code, and that of functions inside and of helpers that it names, asks of what is called `xp`."""
    loaded = ""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and loaded == "xp":
            yield step.argval
        elif step.opname == "LOAD_GLOBAL" and isinstance(scope.get(step.argval), FunctionType):
            yield from _needed(scope[step.argval], seen)
        elif isinstance(step.argval, CodeType):
            yield from _named(step.argval, scope, seen)
        loaded = step.argval if step.opname.startswith("LOAD_") and isinstance(step.argval, str) else ""
