"""The table of ONNX operators: for each op the function that writes it as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: op -> function(graph, *kernel arguments) that returns the result, or a tuple of them, of which those that nothing
#: uses may be None
TABLE: dict[str, Callable[..., Any]] = {}


def written_as(*names: str) -> Callable[[Callable], Callable]:
    """Enter the decorated function for these ops."""

    def enter(function: Callable) -> Callable:
        TABLE.update(dict.fromkeys(names, function))
        return function

    return enter
