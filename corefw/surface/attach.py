"""Puts functions on Tensor: a decorator for methods, one for attributes."""

from __future__ import annotations

from collections.abc import Callable

from corefw.tensor import Tensor


def method(function: Callable) -> Callable:
    """Make `function` the method of Tensor that has its name."""
    function.__qualname__ = f"Tensor.{function.__name__}"
    setattr(Tensor, function.__name__, function)
    return function


def attribute(getter: Callable) -> property:
    """Make `getter` the read-only attribute of Tensor that has its name; the result's ``setter`` extends it."""
    found = property(getter)
    setattr(Tensor, getter.__name__, found)
    return found


def settable(getter: property) -> Callable[[Callable], property]:
    """Let the decorated function assign the attribute `getter`."""

    def decorate(setter: Callable) -> property:
        found = getter.setter(setter)
        setattr(Tensor, setter.__name__, found)
        return found

    return decorate
