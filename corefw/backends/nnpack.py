"""PyTorch's question about NNPACK, which no kernel here is made with."""

from contextlib import AbstractContextManager, nullcontext


def is_available() -> bool:
    """Always False."""
    return False


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """A block in which NNPACK would be used or not."""
    return nullcontext()
