"""What the compiler raises; nothing here does."""

__all__ = ["TorchDynamoException", "Unsupported"]


class TorchDynamoException(RuntimeError):
    """A failure of the compiler."""


class Unsupported(TorchDynamoException):
    """What the compiler cannot capture."""
