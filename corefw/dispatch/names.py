"""Where pickle finds the functions of ops: under the public names that namespaces give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, get_overloads, overload

_T = TypeVar("_T", bound=Mapping[str, Callable[..., Any]])

_named: set[FunctionType] = set()


def published(namespace: str, functions: _T) -> _T:
    """`functions`, after those that have no public name yet are told it, for pickle and for who reads their repr.

    Args:
        namespace: the module in which they are found.
        functions: by the name that they have there, "Tensor.add_" for a method.
    """
    for name, function in functions.items():
        if isinstance(function, FunctionType) and function not in _named:
            _named.add(function)
            forms: Any = get_overloads(function)
            for renamed in (function, *forms):
                renamed.__module__, renamed.__qualname__ = namespace, name
            for form in forms:
                overload(form)  # typing finds them by the name of the function
    return functions
