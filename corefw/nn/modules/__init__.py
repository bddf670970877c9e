"""The layers, one file per family; the classes of `nn` are found here too."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "utils":  # not `nn.utils`
        return import_module(f"{__name__}.{name}")
    layers = import_module("corefw.nn")
    if name.startswith("_") or name not in layers.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(layers, name)
