"""Models written as ONNX graphs, which other runtimes run."""

from __future__ import annotations

from corefw.onnx import errors
from corefw.onnx.errors import OnnxExporterError
from corefw.onnx.export import TrainingMode, export, is_in_onnx_export, select_model_mode_for_export
from corefw.onnx.program import ExportableModule, ONNXProgram

__all__ = [
    "ExportableModule",
    "ONNXProgram",
    "OnnxExporterError",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "select_model_mode_for_export",
]
