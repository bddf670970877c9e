"""What the library was built with, under PyTorch's names: for people and reports, not to be read by programs."""

from __future__ import annotations

from corefw.dispatch.registry import registry
from corefw.settings import get_num_interop_threads, get_num_threads
from corefw.version import __version__

__all__: list[str] = []


def show() -> str:
    """The version, and the backends that have been loaded.

    >>> import corefw as torch
    >>> torch.__config__.show().splitlines()[0] == f"corefw {torch.version.__version__} built with:"
    True
    """
    backends = sorted(registry.backends)
    return "\n".join([f"corefw {__version__} built with:", *(f"  - backend {name}" for name in backends), ""])


def parallel_info() -> str:
    """The numbers of threads.

    >>> "torch.get_num_threads() : " in parallel_info()
    True
    """
    return (
        f"ATen/Parallel:\n\ttorch.get_num_threads() : {get_num_threads()}\n"
        f"\ttorch.get_num_interop_threads() : {get_num_interop_threads()}\n"
    )
