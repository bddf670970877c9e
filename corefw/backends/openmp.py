"""PyTorch's question about OpenMP, which no kernel here is made with: the C backend has threads of its own."""


def is_available() -> bool:
    """Always False."""
    return False
