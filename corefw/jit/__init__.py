"""PyTorch's `jit` without a compiler: what it decorates and scripts stays the Python that it is.

`script` and `trace` give their argument back, so programs compute what they would, at the speed of Python. There is no
TorchScript, so nothing can be saved, loaded or frozen in its form: those functions refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from corefw.nn.modules.module import Module

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
]

T = TypeVar("T")
_isinstance = isinstance


class ScriptModule(Module):
    """A module that TorchScript compiled; nothing is one, and it cannot be made."""

    def __init__(self) -> None:
        raise NotImplementedError(f"jit.ScriptModule: {_REASON}; derive from nn.Module")


class ScriptFunction:
    """A function that TorchScript compiled; nothing is one, and it cannot be made."""

    def __init__(self, *arguments: Any) -> None:
        raise NotImplementedError(f"jit.ScriptFunction: {_REASON}; call the Python function")


class Error(Exception):
    """An error of TorchScript's, for programs that catch it; nothing raises it."""


class TracerWarning(Warning):
    """A warning of PyTorch's tracer, for programs that silence it; nothing gives it."""


_REASON = "there is no TorchScript here, and functions run as the Python that they are"


def script(obj: T, *unused: Any, **options: Any) -> T:
    """The function, class or module itself: it is not compiled.

    Args:
        obj: what PyTorch would compile.
        unused, options: PyTorch's further arguments, which concern the compiler.

    >>> import corefw as torch
    >>> @torch.jit.script
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    return obj


def trace(func: T, example_inputs: Any = None, **options: Any) -> T:
    """The function or module itself, which is not called with the examples: branches keep their meaning.

    Args:
        func: what PyTorch would trace.
        example_inputs: its arguments there.
        options: PyTorch's further arguments.
    """
    return func


def script_method(fn: T, *unused: Any) -> T:
    """The method itself."""
    return fn


def trace_module(mod: T, inputs: Any = None, **options: Any) -> T:
    """The module itself, none of whose methods is called.

    Args:
        mod: what PyTorch would trace.
        inputs: the arguments of its methods there, by name.
        options: PyTorch's further arguments.
    """
    return mod


script_if_tracing = script_method
export = script_method
interface = script_method


def unused(fn: T) -> T:
    """The function itself, which PyTorch's compiler would leave out."""
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """A decorator, with or without arguments, of what PyTorch's compiler would leave to Python."""
    return drop if callable(drop) else unused


def annotate(the_type: Any, the_value: T) -> T:
    """The value; the type is the compiler's."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's own `isinstance`."""
    return _isinstance(obj, target_type)


def is_scripting() -> bool:
    """False: nothing is compiled."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def _overload(fn: Callable) -> Callable:
    return fn


def _overload_method(fn: Callable) -> Callable:
    return fn


def _refuse(name: str, instead: str) -> NoReturn:
    raise NotImplementedError(f"jit.{name}: {_REASON}. {instead}")


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Refused: there is no TorchScript to write.

    Raises:
        NotImplementedError: always.
    """
    _refuse("save", "Save the state with corefw.save(module.state_dict(), file).")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> NoReturn:
    """Refused: a file of TorchScript is a program for an interpreter that is not here.

    Raises:
        NotImplementedError: always.
    """
    _refuse("load", "Where PyTorch is, take the file's state_dict(), save that, and load it into a module here.")
