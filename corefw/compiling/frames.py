"""Which functions of the program run in a call, and the global names that they use."""

from __future__ import annotations

import gc
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from corefw.compiling.tape import Tape
from corefw.dispatch.registry import registry

_LIBRARIES = str(Path(sysconfig.get_paths()["stdlib"]))
_INSTALLED = ("site-packages", "dist-packages")


_PACKAGES_WITHOUT_STATE = ("corefw", "numpy", "ml_dtypes")


def _modules_of_backends() -> set[str]:
    """The modules of kernels and runtimes, whose functions the frontend calls."""
    found = set()
    for backend in registry.backends.values():
        functions = [kernel.function for kernels in backend.kernels.values() for kernel in kernels]
        for thing in (*functions, *map(type, backend.runtimes.values())):
            found.add(getattr(thing, "__module__", None) or "")
    return found - {"__main__"}


def _is_pythons(filename: str) -> bool:
    """Whether code is of Python's own library, likewise."""
    return filename.startswith("<frozen") or (
        filename.startswith(_LIBRARIES) and not any(part in filename for part in _INSTALLED)
    )


class Watching:
    """A with-block that notes which functions of the program run in this thread.

    The garbage collector waits, since what it calls may be anybody's and is no part of the call.

    Attributes: ``functions`` {code: globals}.
    """

    def __init__(self) -> None:
        self.functions: dict[CodeType, dict[str, Any]] = {}
        self._skipped: set[CodeType] = set()
        self._modules = _modules_of_backends()

    def __enter__(self) -> Watching:
        self._before, self._collecting = sys.getprofile(), gc.isenabled()
        gc.disable()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(self._before)
        if self._collecting:
            gc.enable()

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self.functions or code in self._skipped:
            return
        if Tape.active is not None and Tape.active.computing:
            return  # inside of a kernel
        module = frame.f_globals.get("__name__", "__main__") or "corefw"  # functions without warnings are nameless
        if (
            module.partition(".")[0] in _PACKAGES_WITHOUT_STATE
            or module in self._modules
            or _is_pythons(code.co_filename)
        ):
            self._skipped.add(code)
            return
        self.functions[code] = frame.f_globals


def names_of(code: CodeType, namespace: dict) -> list[str]:
    """The global names that a function's code may use."""
    return [name for name in code.co_names if name in namespace]
