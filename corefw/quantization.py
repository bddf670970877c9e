"""The former place of `corefw.ao.quantization`."""

from __future__ import annotations

from corefw.ao.quantization import (
    QConfigDynamic,
    default_dynamic_qconfig,
    per_channel_dynamic_qconfig,
    quantize_dynamic,
)

__all__ = ["QConfigDynamic", "default_dynamic_qconfig", "per_channel_dynamic_qconfig", "quantize_dynamic"]
