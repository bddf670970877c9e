"""Floating-point flags of kernels: NumPy reports them as warnings, but they are no news, since the value says it.

Filters of warnings are the user's, who may make errors of them, and so is NumPy's own state; to change that for each
call (`numpy.errstate`) takes as long as a small kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

#: globals of a function in which C code gives no warnings: CPython takes a warning whose module is None for one given
#: while the interpreter ends, and drops it before it looks at filters (Python/_warnings.c, warn_explicit)
NAMELESS = {"__name__": None}


def unheard(function: _F) -> _F:
    """A function that calls kernels or NumPy's ufuncs, remade so that warnings of their flags are dropped at no cost.

    Its globals are those of its module as they are now; functions that it calls are heard unless they are remade too.
    """
    assert isinstance(function, FunctionType)
    made = FunctionType(
        function.__code__,
        {**function.__globals__, **NAMELESS},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__module__, made.__qualname__, made.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return made  # type: ignore[return-value]


def is_unheard(function: Callable) -> bool:
    """Whether warnings that a function's own frame gives are dropped."""
    return getattr(function, "__globals__", {}).get("__name__", "") is None
