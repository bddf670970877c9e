"""Which functions of the program run in a call, and the global names that they use."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from corefw.compiling.tape import Tape
from corefw.dispatch.registry import registry

_LIBRARIES = str(Path(sysconfig.get_paths()["stdlib"]))
_PACKAGES = ("site-packages", "dist-packages")


def _packages() -> set[str]:
    """The packages whose state no result depends on: corefw, its backends, NumPy."""
    found = {"corefw", "numpy", "ml_dtypes"}
    for backend in registry.backends.values():
        functions = [kernel.function for kernels in backend.kernels.values() for kernel in kernels]
        for thing in (*functions, *map(type, backend.runtimes.values())):
            found.add((getattr(thing, "__module__", None) or "corefw").partition(".")[0])
    return found - {"__main__"}


def _is_pythons(filename: str) -> bool:
    """Whether code is of Python's own library, likewise."""
    return filename.startswith("<frozen") or (
        filename.startswith(_LIBRARIES) and not any(part in filename for part in _PACKAGES)
    )


class Watching:
    """A with-block that notes which functions of the program run in this thread.

    Attributes: ``functions`` {code: globals}.
    """

    def __init__(self) -> None:
        self.functions: dict[CodeType, dict[str, Any]] = {}
        self._skipped: set[CodeType] = set()
        self._packages = _packages()

    def __enter__(self) -> Watching:
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(self._before)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self.functions or code in self._skipped:
            return
        if Tape.active is not None and Tape.active.computing:
            return  # inside of a kernel
        package = (frame.f_globals.get("__name__") or "corefw").partition(".")[0]
        if package in self._packages or _is_pythons(code.co_filename):
            self._skipped.add(code)
            return
        self.functions[code] = frame.f_globals


def names_of(code: CodeType, namespace: dict) -> list[str]:
    """The global names that a function's code may use."""
    return [name for name in code.co_names if name in namespace]
