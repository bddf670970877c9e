"""PyTorch's switches for cuDNN, kept where a CUDA backend reads them: in the settings."""

from __future__ import annotations

from contextlib import AbstractContextManager

from corefw.backends.switches import make_switches, switched
from corefw.dispatch.registry import registry
from corefw.dispatch.settings import settings


def is_available() -> bool:
    """Whether a CUDA backend offers cuDNN."""
    return version() is not None


def version() -> int | None:
    """The version of cuDNN in use, None without it."""
    runtime = registry.runtimes.get("cuda", ("", None))[1]
    return getattr(runtime, "cudnn_version", None)


def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
    allow_tf32: bool = True,
) -> AbstractContextManager[None]:  # fmt: skip
    """A block in which the switches have other values; `benchmark_limit` is without effect.

    >>> import corefw as torch
    >>> with torch.backends.cudnn.flags(deterministic=True):
    ...     torch.backends.cudnn.deterministic
    True
    """
    wanted = {"enabled": enabled, "benchmark": benchmark, "deterministic": deterministic, "allow_tf32": allow_tf32}
    return switched(settings.library, wanted)


make_switches(__name__, settings.library)
