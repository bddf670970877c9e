"""Layers with weights of int8. Layers that also pass int8 on to each other are left out."""

from __future__ import annotations

from corefw.ao.nn.quantized import dynamic

__all__ = ["dynamic"]
