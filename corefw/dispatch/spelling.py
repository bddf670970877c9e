"""NumPy's names of arguments, which PyTorch's functions take too: they are translated when a call has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.dispatch.op import REQUIRED, Op

#: NumPy's name, PyTorch's
SPELLINGS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction"}


def spelled(op: Op) -> bool:
    """Whether an op has an argument that NumPy calls otherwise."""
    names = {p.name for p in op.parameters}
    return not names.isdisjoint(SPELLINGS.values()) and "options" not in names


def translated(op: Op, options: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments under the op's own names. `dtype` and `out`, which NumPy passes on, may be None to any op.

    Raises:
        TypeError: an argument is given under both names.

    >>> from corefw.dispatch.registry import registry
    >>> translated(registry.declared["amax"], {"axis": 0, "out": None})
    {'dim': 0, 'out': None}
    """
    names = {p.name for p in op.parameters}
    found = {}
    for given, value in options.items():
        name = given if given in names else SPELLINGS.get(given, given)
        if name in found or (name != given and name in options):
            raise TypeError(f"{op.name}() got the argument '{name}' under two names: '{name}' and NumPy's '{given}'")
        if name in names or not (value is None and (given == "dtype" or (given == "out" and not op.takes_out))):
            found[name] = value
    return found


def with_options(op: Op, options: dict[str, Any], *values):
    """The call of a function that was given keywords beside those it has by position.

    Args:
        op: the op.
        options: the other keywords, some perhaps NumPy's.
        values: the arguments that may be given by position; REQUIRED for those that were not.
    """
    options = translated(op, options)
    positional = [p for p in op.parameters if not p.keyword_only]
    named = {}
    for p, value in zip(positional, values, strict=True):
        default = None if p.default == () else p.default  # both mean all dimensions
        if p.name in options and value is not default:
            raise TypeError(f"{op.name}() got multiple values for argument '{p.name}'")
        if p.name not in options and value is not REQUIRED:
            named[p.name] = value
    return op.keyword_function(**named, **options)


def taking_numpy_names(op: Op, function: Callable, arguments: tuple, options: dict[str, Any], error: TypeError):
    """The call again that failed with `error`, if that was for NumPy's names."""
    names = {p.name for p in op.parameters}
    if not any(SPELLINGS.get(name) in names and name not in names for name in options):
        raise error
    return function(*arguments, **translated(op, options))
