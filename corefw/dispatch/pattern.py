"""Patterns: calls of ops that follow each other, as one kernel that a backend may offer."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from corefw import dtypes
from corefw.dtypes import dtype


@dataclass(frozen=True)
class Step:
    """One call of a pattern.

    Attributes:
        op: the op's name.
        arguments: in the order of its parameters: names, or numbers, tuples, strings and None that must be equal.
        results: the names of what it gives.
    """

    op: str
    arguments: tuple[Any, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Name:
    """An argument that may be anything, the same one wherever it stands."""

    name: str


@dataclass(frozen=True)
class Pattern:
    """Calls of ops on each other's results, and a function that does the same at once.

    The calls are written as in Python, one after the other, with what is wanted of their results at the end. A name on
    the right that nothing has been assigned to is given: an array, or an attribute. What is neither wanted nor given is
    not there afterwards, so a plan has the pattern only where nobody else looks at it.

    Attributes:
        name: what the call is named in a plan.
        text: the calls.
        function: called with what is given, in the order in which it stands in the text; it returns what is wanted: an
            array, or a tuple of several.
        dtypes: those of the first call that it takes.
        suits: called as the kernel is, with objects in place of arrays that have ``shape``, ``strides`` and ``dtype``;
            whether the kernel is as fast as the calls, and lays out its results as they do. None: always.
        looks_at: the names of which the function looks at elements in Python, to choose what it does.

    >>> shown = Pattern("linear_relu", "relu(linear(input, weight, bias))", print)
    >>> for step in shown.steps:
    ...     print(step.op, step.results)
    linear ('_0',)
    relu ('_1',)
    >>> shown.given, shown.wanted
    (('input', 'weight', 'bias'), ('_1',))
    """

    name: str
    text: str
    function: Callable = field(compare=False)
    dtypes: frozenset[dtype] = frozenset(dtypes.ALL)
    suits: Callable[..., bool] | None = field(default=None, compare=False)
    looks_at: tuple[str, ...] = ()

    @cached_property
    def _read(self) -> tuple[tuple[Step, ...], tuple[str, ...], tuple[str, ...]]:
        return _Reader(self.text).read()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The calls, in order."""
        return self._read[0]

    @property
    def given(self) -> tuple[str, ...]:
        """The names of what the kernel is called with."""
        return self._read[1]

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of what it returns."""
        return self._read[2]


class _Reader:
    """Reads the text of a pattern."""

    def __init__(self, text: str):
        self.text = text
        self.steps: list[Step] = []
        self.given: list[str] = []
        self.made: set[str] = set()

    def read(self) -> tuple[tuple[Step, ...], tuple[str, ...], tuple[str, ...]]:
        """The calls, the names of what is given, and of what is wanted."""
        *assignments, last = ast.parse(self.text.strip()).body
        for line in assignments:
            if not isinstance(line, ast.Assign) or len(line.targets) != 1 or not isinstance(line.value, ast.Call):
                raise self._error(line)
            self._call(line.value, tuple(ast.unparse(target) for target in _items(line.targets[0])))
        if not isinstance(last, ast.Expr):
            raise self._error(last)
        wanted = tuple(self._argument(item).name for item in _items(last.value))
        if not self.made.issuperset(wanted):
            raise self._error(last)
        return tuple(self.steps), tuple(self.given), wanted

    def _call(self, call: ast.Call, results: tuple[str, ...]) -> None:
        if not isinstance(call.func, ast.Name) or call.keywords:
            raise self._error(call)
        arguments = tuple(map(self._argument, call.args))
        self.steps.append(Step(call.func.id, arguments, results))
        self.made.update(results)

    def _argument(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            self._call(node, ())
            name = f"_{len(self.steps) - 1}"
            self.steps[-1] = replace(self.steps[-1], results=(name,))
            self.made.add(name)
            return Name(name)
        if isinstance(node, ast.Name):
            if node.id not in self.made and node.id not in self.given:
                self.given.append(node.id)
            return Name(node.id)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise self._error(node) from None

    def _error(self, node: ast.AST) -> ValueError:
        return ValueError(
            f"pattern: {ast.unparse(node)!r} in {self.text!r}; wanted are assignments of calls, and at the end what is "
            "wanted of their results"
        )


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]
