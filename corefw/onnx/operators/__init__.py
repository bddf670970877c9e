"""Entries of the table of ONNX operators, one file per family."""

from __future__ import annotations

from corefw.onnx.operators import elementwise, indexing, layers, networks, reduction, views

__all__ = ["elementwise", "indexing", "layers", "networks", "reduction", "views"]
