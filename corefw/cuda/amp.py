"""Automatic mixed precision on GPUs, under the older names; see `corefw.amp`."""

from __future__ import annotations

import functools
from typing import Any

from corefw import amp
from corefw.dtypes import dtype, float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`amp.autocast` for "cuda"."""

    def __init__(self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler` for "cuda"."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__("cuda", *arguments, **options)


custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")
