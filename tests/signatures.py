"""Comparison of signatures with PyTorch's: whether each call that PyTorch takes means the same here."""

import importlib
import inspect
import warnings
from typing import Any, NamedTuple

import corefw
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry
from corefw.dispatch.spelling import own_name
from tests.parity import import_torch

REQUIRED = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
#: where the functions of a namespace have schemas, and what their names begin with there
_SCHEMAS = {
    "torch": "",
    "torch.Tensor": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.special": "special_",
    "torch.fft": "fft_",
}


class Argument(NamedTuple):
    """An argument of PyTorch's function; `position` is None if it has to be named."""

    name: str
    position: int | None
    default: Any


def owners(heading: str) -> tuple[Any, Any]:
    """PyTorch's module or class of that name, and ours."""
    torch = import_torch()
    if heading == "torch.Tensor":
        return torch.Tensor, corefw.Tensor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of PyTorch's modules use what it deprecates
        theirs = importlib.import_module(heading)
    return theirs, importlib.import_module("corefw" + heading.removeprefix("torch"))


def reached(owner, path: str):
    """What a dotted path leads to, None if nowhere."""
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner


def _schemas(name: str) -> list:
    """The schemas of a function in C++ that Python's reaches, without those that write into a given tensor or name
    dimensions."""
    torch = import_torch()
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        try:
            torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
        except RuntimeError:
            continue  # of the compiler alone
        if not any(a.is_out or "Dimname" in str(a.type) for a in schema.arguments):
            found.append(schema)
    return found


def forms(heading: str, name: str, function) -> list[list[Argument]]:
    """The ways to call PyTorch's function; [] where it does not tell."""
    if inspect.isclass(function) or inspect.isfunction(function):
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return []
        found = [Argument(p.name, i if p.kind in _POSITIONAL else None, p.default) for i, p in enumerate(parameters)]
        return [[argument for argument, p in zip(found, parameters) if p.kind not in _ANY and p.name[0] != "_"]]
    if heading not in _SCHEMAS:
        return []
    found = []
    for schema in _schemas(_SCHEMAS[heading] + name):
        default = [a.default_value if a.has_default_value() else REQUIRED for a in schema.arguments]
        names = ["input" if a.name == "self" else a.name for a in schema.arguments]
        places = [None if a.kwarg_only else i for i, a in enumerate(schema.arguments)]
        found.append([Argument(*facts) for facts in zip(names, places, default, strict=True)])
    return found


def _same(ours, theirs) -> bool:
    """Whether two defaults mean the same."""
    if isinstance(theirs, (list, tuple)):
        if isinstance(ours, (list, tuple)):
            return list(ours) == list(theirs)
        return ours is None if len(theirs) == 0 else all(_same(ours, one) for one in theirs)  # one number for all
    if theirs is None and ours in (False, ()):
        return True  # `pin_memory`; all dimensions
    if ours is None and (str(theirs) == "torch.strided" or type(theirs).__name__ == "Generator"):
        return True  # the only layout of what these functions make; the common generator
    if callable(theirs) and isinstance(ours, str):
        return theirs.__name__ == ours  # activations
    return (
        ours is theirs
        or str(ours).replace("corefw", "torch") == str(theirs)
        or ours == theirs
        or repr(ours) == repr(theirs)
    )


def differences(ours, theirs: list[Argument], op: Op | None, is_method: bool) -> list[str]:
    """What a call of PyTorch's form would find otherwise. What we have beyond it is of no account.

    Args:
        ours: our function.
        theirs: the arguments of PyTorch's.
        op: the op that ours is a form of, if it is.
        is_method: whether the first argument is the tensor before the dot.
    """
    parameters = inspect.signature(registry.own(ours)).parameters
    positional = [p.name for p in parameters.values() if p.kind in _POSITIONAL]
    takes_any = {p.kind for p in parameters.values() if p.kind in _ANY}
    found = []
    for argument in theirs[is_method:]:
        p = parameters.get(own_name(op, argument.name) if op else argument.name)
        if p is None:
            if not takes_any and not (argument.name == "out" and op and op.takes_out):
                found.append(f"{argument.name} is missing")
        elif argument.position is not None and (
            p.name not in positional or positional.index(p.name) != argument.position
        ):
            if p.kind not in _ANY and inspect.Parameter.VAR_POSITIONAL not in takes_any:
                found.append(f"{argument.name} is not the argument {argument.position}")
        elif argument.default is not REQUIRED and p.kind not in _ANY and not _same(p.default, argument.default):
            found.append(f"{argument.name} is {p.default!r} instead of {argument.default!r}")
    return found
