"""Process-wide settings: threads, determinism."""

from __future__ import annotations

from corefw.dispatch.registry import registry
from corefw.dispatch.settings import settings


def get_num_threads() -> int:
    """How many threads kernels may use.

    >>> get_num_threads() >= 1
    True
    """
    return registry.threads


def set_num_threads(num: int) -> None:
    """Set how many threads kernels may use; backends that have threads of their own are told. ValueError unless
    positive."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, but got {num}")
    registry.set_num_threads(num)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for kernels whose results do not depend on the order of execution; those of corefw's own CPU backends never
    do. Kernels that their backend declares not to be deterministic are not asked, as if they were not there."""
    settings.deterministic = bool(mode)
    registry.forget()


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic kernels were asked for."""
    return settings.deterministic


_PRECISIONS = ("highest", "high", "medium")


def get_float32_matmul_precision() -> str:
    """The precision asked for in `set_float32_matmul_precision`.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return "high" if settings.allow_tf32 else "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Set how precise matrix products of float32 must be.

    Args:
        precision: "highest" computes in float32; "high" and "medium" let devices that can (not the CPU) round the
            factors to TensorFloat-32, with 10 bits after the binary point.
    """
    if precision not in _PRECISIONS:
        raise RuntimeError(f"set_float32_matmul_precision expects one of {', '.join(_PRECISIONS)}, got {precision!r}")
    settings.allow_tf32 = precision != "highest"
