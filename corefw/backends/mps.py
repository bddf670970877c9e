"""PyTorch's questions about Apple's Metal, which no backend serves."""


def is_available() -> bool:
    """Always False."""
    return False


def is_built() -> bool:
    """Always False."""
    return False
