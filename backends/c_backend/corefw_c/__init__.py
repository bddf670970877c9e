"""The C backend of corefw: fast kernels for the device `cpu`, on the same NumPy arrays as the reference.

One file per family of ops, named as in `corefw.declarations`: ``kernels(lib)`` gives the family's kernels over a loaded
library. What this backend lacks, the NumPy backend computes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

import pluggy

from corefw import dtypes
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.families import families
from corefw.dispatch.pattern import Pattern
from corefw_c import allocator, fusion, library, methods

__version__ = "0.1.0"


def table(lib) -> list[Kernel]:
    """All kernels of a loaded library."""
    return [kernel for family in families(__name__) for kernel in family.kernels(lib)]


def patterns(lib) -> list[Pattern]:
    """All kernels of a loaded library for several ops."""
    offering = [family for family in families(__name__) if hasattr(family, "patterns")]
    return [pattern for family in offering for pattern in family.patterns(lib)]


def executor(level: str, offered: list) -> Callable:
    """What makes runs of plans with what a level offers. Nothing of it is imported before the first plan."""

    @cache
    def maker():
        replay = import_module("corefw_c.replaying.replay")
        return replay.maker(level, offered, lambda lib: [*table(lib), *patterns(lib)])

    return lambda plan: maker()(plan)


def backend(level: str, name: str = "c", priority: int = 10) -> Backend:
    """The kernels compiled for one level, as a backend."""
    lib = library.load(level)
    kernels, joined = table(lib), patterns(lib)
    return Backend(
        name=name,
        version=__version__,
        devices=("cpu",),
        kernels={"cpu": kernels},
        priority=priority,
        detail="; ".join(filter(None, (level, library.refused_level()))),
        compute_dtype={dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32},
        set_num_threads=lib.set_thread_count,
        fuse=fusion.maker(lib, level),
        settings=("C_CACHE", "C_COMPILER", "C_LEVEL", "C_LEVELS"),
        patterns=joined,
        methods=methods.methods(lib),
        executor=executor(level, [*kernels, *joined]),
    )


@pluggy.HookimplMarker("corefw")
def corefw_backend() -> Backend:
    """The plugin hook."""
    level = library.best_level()
    allocator.install(library.load(level))
    return backend(level)
