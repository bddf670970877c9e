"""Dual tensors below the public names: a tensor and its tangent, which all ops carry along (forward mode)."""
