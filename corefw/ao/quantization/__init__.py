"""Models whose linear layers multiply in int8."""

from __future__ import annotations

from corefw.ao.quantization.dynamic import (
    QConfigDynamic,
    default_dynamic_qconfig,
    per_channel_dynamic_qconfig,
    quantize_dynamic,
)

__all__ = ["QConfigDynamic", "default_dynamic_qconfig", "per_channel_dynamic_qconfig", "quantize_dynamic"]
