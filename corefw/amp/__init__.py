"""Automatic mixed precision: ops that choose their dtypes, and losses that are scaled against underflow."""

from __future__ import annotations

from corefw.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from corefw.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
