"""Other names of arguments that PyTorch's functions take, NumPy's among them: translated when a call has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.dispatch.op import REQUIRED, Op

#: {NumPy's name, or the one that PyTorch's function has beside its documentation's: those that it may stand for}
OTHER_NAMES = {
    "a": ("input", "A"),
    "axis": ("dim",),
    "axis0": ("dim0",),
    "axis1": ("dim1",),
    "b": ("B",),
    "ddof": ("correction",),
    "element": ("elements",),
    "indices": ("indices_or_sections",),
    "input": ("A", "x", "tensor"),  # where that is the first
    "input2": ("tau",),
    "input3": ("other",),
    "keepdims": ("keepdim",),
    "other": ("B",),
    "sections": ("indices_or_sections",),
    "tensor_indices_or_sections": ("indices_or_sections",),
    "test_element": ("test_elements",),
    "x": ("input",),
    "x1": ("input",),
    "x2": ("other",),
}
#: those that functions have which take no other keywords
ALIASES = ("axis", "axis0", "axis1", "indices", "input", "keepdims", "sections", "tensor_indices_or_sections")


def own_name(op: Op, given: str) -> str:
    """The op's own name of an argument that was given so; the name itself where it means nothing else."""
    names = [p.name for p in op.parameters[: 1 if given == "input" else None]]
    if given in (p.name for p in op.parameters):
        return given
    return next((name for name in OTHER_NAMES.get(given, ()) if name in names), given)


def _fits(op: Op) -> bool:
    return bool(op.public) and not op.update and "options" not in {p.name for p in op.parameters}


def takes_options(op: Op) -> bool:
    """Whether the generated function of an op takes any keywords, NumPy's names among them. That costs nothing where it
    has arguments that cannot be given by position, and much elsewhere."""
    named = [p for p in op.parameters if p.keyword_only]
    if not _fits(op) or not (op.takes_out or named) or any(p.default is REQUIRED for p in named):
        return False
    return any(own_name(op, name) != name for name in OTHER_NAMES)


def aliases(op: Op) -> tuple[str, ...]:
    """The other names that other generated functions of an op have as arguments behind their own."""
    return tuple(name for name in ALIASES if _fits(op) and own_name(op, name) != name)


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
        name = own_name(op, given)
        if value is None and name != given:
            continue
        if name in named:
            if named[name] is not defaults[name]:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}', also called '{given}'")
            named[name] = value
        elif value is not None or given not in ("dtype", "out"):
            raise TypeError(f"{op.name}() got an unexpected keyword argument '{given}'")
    missing = [f"'{name}'" for name, value in named.items() if value is REQUIRED]
    if missing:
        s = "s" if len(missing) > 1 else ""
        raise TypeError(f"{op.name}() missing {len(missing)} required positional argument{s}: {' and '.join(missing)}")
    return function(**named)
