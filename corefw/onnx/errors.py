"""What goes wrong in an export, under PyTorch's names."""

from __future__ import annotations

from corefw.errors import CorefwError

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterError(CorefwError, RuntimeError):
    """A model that cannot be written as ONNX; the text tells why."""


class OnnxExporterWarning(UserWarning):
    """A graph that may compute something else than the model for other inputs."""


class UnsupportedOperatorError(OnnxExporterError):
    """A model with an op that has no entry in the table of ONNX operators."""
