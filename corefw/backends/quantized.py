"""PyTorch's question about engines of quantized kernels, of which there are none."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Engines(ModuleType):
    """A module whose variable `engine` takes one of `supported_engines`."""

    engine, supported_engines = "none", ["none"]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "engine" and value not in self.supported_engines:
            raise RuntimeError(f"{value} is not a valid value for quantized engine: there are no quantized kernels")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Engines
