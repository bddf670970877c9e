"""PyTorch's protocol `__torch_function__`: classes, and modes, that answer for corefw's functions.

An argument whose class has ``__torch_function__(func, types, args, kwargs)``, and is no `Tensor`, is asked when a
function cannot use it; inside of a `TorchFunctionMode` the mode is asked first, for every call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from corefw.dispatch import overriding
from corefw.tensor import Tensor

__all__ = [
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class TorchFunctionMode:
    """A context in which `__torch_function__` of the mode is asked for every function of corefw.

    While it answers it is off, so that it may call the functions themselves.

    >>> import corefw as torch
    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **kwargs or {})
    >>> with Names():
    ...     _ = torch.ones(2).exp()
    ones
    exp
    """

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a mode must define __torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        overriding.begin_asking()
        overriding.modes.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        overriding.modes.pop()
        overriding.end_asking()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is on, or one of the arguments may answer for a function."""
    return bool(overriding.modes or overriding.overriding_types(tuple(relevant_args), {}))


def has_torch_function_unary(arg: Any) -> bool:
    """As `has_torch_function`, for one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """As `has_torch_function`, for several arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The answer of a mode or of the arguments for a call of a function.

    Args:
        public_api: the function.
        relevant_args: the arguments that may answer.
        args, kwargs: those of the call.

    Raises:
        TypeError: none answers.
    """
    kinds = overriding.overriding_types(tuple(relevant_args), {})
    if overriding.modes:
        return overriding.ask_mode(public_api, kinds, args, kwargs)
    return overriding.ask_types(public_api, kinds, args, kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """A decorator of functions that arguments may answer for.

    Args:
        dispatcher: called with the arguments; gives those that may.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or answers for functions of tensors."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a method of tensors and nothing else."""
    return getattr(func, "__qualname__", "").startswith("Tensor.") or func in overriding.operators


def resolve_name(f: Callable) -> str | None:
    """The dotted name of a function."""
    return f"{f.__module__}.{f.__qualname__}" if hasattr(f, "__qualname__") else None


def enable_reentrant_dispatch() -> Any:
    """A context for calls inside of `__torch_function__`, which need none."""
    return nullcontext()
