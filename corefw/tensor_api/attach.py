"""Puts functions on Tensor: a decorator for methods, one for attributes."""

from __future__ import annotations

from collections.abc import Callable

from corefw.tensor import Tensor


def method(function: Callable) -> Callable:
    """Make `function` the method of Tensor that has its name."""
    function.__qualname__ = f"Tensor.{function.__name__}"
    setattr(Tensor, function.__name__, function)
    return function


def method_called(name: str) -> Callable[[Callable], Callable]:
    """Make the decorated function the method of Tensor called `name`, which its module needs for something else."""

    def decorate(function: Callable) -> Callable:
        function.__name__ = name
        return method(function)

    return decorate


def attribute(getter: Callable) -> property:
    """Make `getter` the read-only attribute of Tensor that has its name; `settable` and `deletable` extend it."""
    found = property(getter)
    setattr(Tensor, getter.__name__, found)
    return found


def settable(getter: property) -> Callable[[Callable], property]:
    """Let the decorated function assign the attribute `getter`."""
    return _extended(getter, property.setter)


def deletable(getter: property) -> Callable[[Callable], property]:
    """Let the decorated function delete the attribute `getter`."""
    return _extended(getter, property.deleter)


def _extended(getter: property, extend: Callable) -> Callable[[Callable], property]:
    name = getter.fget.__name__  # type: ignore[union-attr]

    def decorate(function: Callable) -> property:
        found = extend(Tensor.__dict__[name], function)
        setattr(Tensor, name, found)
        return found

    return decorate
