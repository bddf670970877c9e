"""PyTorch's export to ONNX, which is not here: programs may ask whether it runs, and are told no."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


class ONNXProgram:
    """An exported model, of which none can be made: NotImplementedError."""

    def __new__(cls, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse."""
        raise NotImplementedError("ONNXProgram: nothing is exported to ONNX here")


def is_in_onnx_export() -> bool:
    """False: nothing is exported.

    >>> import corefw as torch
    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return False


def export(model: Any, *arguments: Any, **options: Any) -> NoReturn:
    """Refused: a model is not captured as a graph of ONNX's operators.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "onnx.export: models are not captured as graphs of ONNX's operators here; save the state dict "
        "(torch.save(model.state_dict(), ...)), which PyTorch loads and exports"
    )
