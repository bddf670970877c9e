"""PyTorch's questions about Apple's Metal, which no backend serves."""


def is_available() -> bool:
    """Always False."""
    return False


def is_built() -> bool:
    """Always False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Always False: no Mac is asked."""
    return False
