"""Families of ops: functions written once that make several, each under a name and with docs of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.dispatch.declare import Declaration, composite
from corefw.windows import in_dimensions


def declare_as(name: str, docs: str, function: Callable, **options: Any) -> Declaration:
    """Declare `function`, one of those that a family makes, as the composite `name` with these docs."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)  # what tracebacks show
    function.__doc__ = docs
    return composite(**options)(function)


def in_each_dimension(*dimensions: int, **options: Any) -> Callable[[Callable], Callable]:
    """Declare the composites of a family for 1, 2 and 3 spatial dimensions, or for those that are given.

    The function below makes them: from an op's name (its own, without the underscore in front, and ``2d`` behind)
    and the number of dimensions. What stands in the docs is told by `in_dimensions`.
    """

    def declare(make: Callable[[str, int], Callable]) -> Callable:
        for n in dimensions or (1, 2, 3):
            name = f"{make.__name__[1:]}{n}d"
            function = make(name, n)
            declare_as(name, in_dimensions(function.__doc__ or "", n), function, **options)
        return make

    return declare


def family(**options: Any) -> Callable[[Callable], Callable]:
    """Make the function below, which makes functions of one shape, the decorator of the members of a family.

    A member is written as its name and docs: ``@_filled_like(0) def zeros_like(): ...`` declares what
    ``_filled_like("zeros_like", 0)`` returns as a composite with these options; `public` may be the member's own.
    """

    def decorator(make: Callable[..., Callable]) -> Callable:
        def member(
            *arguments: Any, public: str | None = options.get("public"), **named: Any
        ) -> Callable[[Callable], Declaration]:
            def declare(described: Callable) -> Declaration:
                name, docs = described.__name__, described.__doc__ or ""
                return declare_as(name, docs, make(name, *arguments, **named), **{**options, "public": public})

            return declare

        return member

    return decorator
