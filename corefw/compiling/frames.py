"""Which functions of the program run in a call, and the global names that they use."""

from __future__ import annotations

import gc
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from corefw.dispatch.registry import registry

_LIBRARIES = str(Path(sysconfig.get_paths()["stdlib"]))
_INSTALLED = ("site-packages", "dist-packages")


_PACKAGES_WITHOUT_STATE = ("corefw", "numpy", "ml_dtypes")
_GENERATED = "<corefw "  # so begin the names of files of functions that corefw writes
_PACKAGE = str(Path(__file__).parent.parent)
_TUPLES = "namedtuple_"  # so begin the names of what namedtuple takes for modules


@cache
def _kernels(backends: tuple[str, ...]) -> tuple[frozenset[str], frozenset[CodeType], dict[int, CodeType]]:
    """The modules of kernels and runtimes, whose functions the frontend calls, the code of kernels and of runtimes'
    methods: what these call is none of the program's; and by `id` code of corefw's files that was seen and is neither.
    """
    modules: set[Any] = set()
    codes: set[Any] = set()
    for backend in map(registry.backends.__getitem__, backends):
        functions = [kernel.function for kernels in backend.kernels.values() for kernel in kernels]
        modules.update(getattr(thing, "__module__", None) for thing in functions)
        modules.update(type(runtime).__module__ for runtime in backend.runtimes.values())
        runtimes = {part for runtime in backend.runtimes.values() for part in type(runtime).__mro__}
        functions += [f for part in runtimes for f in vars(part).values() if callable(f)]
        codes.update(getattr(f, "__code__", None) or getattr(type(f).__call__, "__code__", None) for f in functions)
    return frozenset(modules - {None, "__main__"}), frozenset(codes - {None}), {}


def _is_pythons(filename: str) -> bool:
    """Whether code is of Python's own library."""
    return filename.startswith("<frozen") or (
        filename.startswith(_LIBRARIES) and not any(part in filename for part in _INSTALLED)
    )


def _is_generated(frame: FrameType | None) -> bool:
    """Whether it is of a function that corefw writes: those of ops call kernels."""
    return frame is not None and frame.f_code.co_filename.startswith(_GENERATED)


def can_watch() -> bool:
    """Whether frames can be watched: not while a profiler written in C is, which could not be set again."""
    profiler = sys.getprofile()
    return profiler is None or callable(profiler)


class Watching:
    """A with-block that notes which functions of the program run in this thread, outside of kernels.

    The garbage collector waits, since what it calls may be anybody's and is no part of the call.

    Attributes: ``functions`` {code: globals}.
    """

    def __init__(self) -> None:
        self.functions: dict[CodeType, dict[str, Any]] = {}
        self._modules, self._kernels, self._own = _kernels(tuple(registry.backends))

    def __enter__(self) -> Watching:
        self._before, self._collecting = sys.getprofile(), gc.isenabled()
        gc.disable()
        sys.setprofile(self._noting())
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(self._before)
        if self._collecting:
            gc.enable()

    def _noting(self) -> Callable[[FrameType, str, Any], None]:
        """What Python tells of each call, those in C too: a closure, and codes are known by `id`, for it is told of
        thousands."""
        own = self._own
        known: dict[int, CodeType] = {}  # that are none of the program's, or noted
        shims: dict[int, CodeType] = {}  # kernels
        kernel: FrameType | None = None  # that is running

        def note(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal kernel
            if kernel is not None:
                if frame is kernel and event == "return":
                    kernel = None
                return
            if event != "call":
                return
            code = frame.f_code
            if id(code) in own or id(code) in known:
                return
            if id(code) not in shims and not self._is_kernel(frame):
                known[id(code)] = code
                if not self._is_known(frame):
                    self.functions[code] = frame.f_globals
                elif code.co_filename.startswith(_PACKAGE):
                    own[id(code)] = code
                return
            shims[id(code)] = code
            kernel = frame

        return note

    def _is_kernel(self, frame: FrameType) -> bool:
        """Whether it is a kernel's, also of those that objects of C call."""
        return frame.f_code in self._kernels or (_module(frame) in self._modules and _is_generated(frame.f_back))

    def _is_known(self, frame: FrameType) -> bool:
        """Whether it is of a function that is none of the program's."""
        module, file = _module(frame), frame.f_code.co_filename
        return (
            module.partition(".")[0] in _PACKAGES_WITHOUT_STATE
            or module in self._modules
            or module.startswith(_TUPLES)
            or file.startswith(_GENERATED)
            or _is_pythons(file)
        )


def _module(frame: FrameType) -> str:
    """The name of the module that a function is of; functions without warnings are nameless."""
    return frame.f_globals.get("__name__", "__main__") or "corefw"


def names_of(code: CodeType, namespace: dict) -> list[str]:
    """The global names that a function's code may use."""
    return [name for name in code.co_names if name in namespace]
