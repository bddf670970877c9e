"""PyTorch's switches for cuDNN, kept where a CUDA backend reads them: in the registry."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from corefw.dispatch.registry import registry
from corefw.dispatch.settings import settings

SWITCHES = ("allow_tf32", "benchmark", "deterministic", "enabled")


def is_available() -> bool:
    """Whether a CUDA backend offers cuDNN."""
    return version() is not None


def version() -> int | None:
    """The version of cuDNN in use, None without it."""
    runtime = registry.runtimes.get("cuda", ("", None))[1]
    return getattr(runtime, "cudnn_version", None)


class _Switches(ModuleType):
    """A module some of whose variables stand in the registry."""

    __doc__ = __doc__

    def __getattr__(self, name: str) -> Any:
        if name in SWITCHES:
            return settings.library[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SWITCHES:
            settings.library[name] = bool(value)
        else:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Switches
