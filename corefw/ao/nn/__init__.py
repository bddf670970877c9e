"""Quantized layers."""

from __future__ import annotations

from corefw.ao.nn import quantized

__all__ = ["quantized"]
