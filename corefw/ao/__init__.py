"""PyTorch's namespace of numbers of few bits: linear layers with weights of int8."""

from __future__ import annotations

from corefw.ao import nn, quantization

__all__ = ["nn", "quantization"]
