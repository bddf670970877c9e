"""NumPy's names of arguments, which PyTorch's functions take too: they are translated when a call has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.dispatch.op import REQUIRED, Op

#: NumPy's name, PyTorch's
NUMPY_NAMES = {
    "a": "input",
    "axis": "dim",
    "ddof": "correction",
    "keepdims": "keepdim",
    "x": "input",
    "x1": "input",
    "x2": "other",
}


def _fits(op: Op) -> bool:
    required = any(p.keyword_only and p.default is REQUIRED for p in op.parameters)
    return bool(op.public) and not op.update and not required and "options" not in {p.name for p in op.parameters}


def takes_options(op: Op) -> bool:
    """Whether the generated function of an op takes any keywords, NumPy's names among them. That costs nothing where it
    has arguments that cannot be given by position, and much elsewhere."""
    named = op.takes_out or any(p.keyword_only for p in op.parameters)
    return _fits(op) and named and any(p.name in NUMPY_NAMES.values() for p in op.parameters)


def aliases(op: Op) -> tuple[str, ...]:
    """NumPy's names of dimensions that other generated functions of an op have as arguments behind their own."""
    names = {p.name for p in op.parameters}
    return tuple(name for name in ("axis", "keepdims") if _fits(op) and NUMPY_NAMES[name] in names - {name})


def respelled(op: Op, function: Callable, options: dict[str, Any], /, **named):
    """The call of a generated function of `op` that was given options which are not its own, or lacks arguments.

    NumPy passes `dtype=None` and `out=None` on to methods: any op takes these. None under one of NumPy's names is
    nothing.

    Args:
        op: the op.
        function: its function or in-place form.
        options: the other options, some perhaps NumPy's.
        named: all arguments, REQUIRED for those that were not given.
    """
    defaults = {p.name: None if p.default == () else p.default for p in op.parameters}  # both mean all dimensions
    for given, value in options.items():
        name = given if given in named else NUMPY_NAMES.get(given, given)
        if value is None and name != given:
            continue
        if name in named:
            if named[name] is not defaults[name]:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}', which NumPy calls '{given}'")
            named[name] = value
        elif value is not None or given not in ("dtype", "out"):
            raise TypeError(f"{op.name}() got an unexpected keyword argument '{given}'")
    missing = [f"'{name}'" for name, value in named.items() if value is REQUIRED]
    if missing:
        s = "s" if len(missing) > 1 else ""
        raise TypeError(f"{op.name}() missing {len(missing)} required positional argument{s}: {' and '.join(missing)}")
    return function(**named)


def taking_numpy_names(op: Op, function: Callable, arguments: tuple, options: dict[str, Any], error: TypeError):
    """The call again that failed with `error`, if that was for NumPy's names."""
    names = {p.name for p in op.parameters} | {"out"}
    options = {name: value for name, value in options.items() if value is not None or name in names or name != "dtype"}
    translated = {name if name in names else NUMPY_NAMES.get(name, name): value for name, value in options.items()}
    if translated.keys() == options.keys() or not translated.keys() <= names:
        raise error
    if len(translated) < len(options):
        raise TypeError(f"{op.name}() got an argument under two names, of which one is NumPy's: {', '.join(options)}")
    return function(*arguments, **translated)
