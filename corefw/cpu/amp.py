"""Automatic mixed precision on the CPU, under the older names; see `corefw.amp`."""

from __future__ import annotations

from typing import Any

from corefw import amp
from corefw.dtypes import bfloat16, dtype

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`amp.autocast` for "cpu"."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True):
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler` for "cpu"."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__("cpu", *arguments, **options)
