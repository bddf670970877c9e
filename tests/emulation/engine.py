"""The engine "nccl" for arrays of the emulated device, over what stands in for the library."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import pluggy

from corefw.distributed import engines
from corefw.distributed.engine import Engine
from corefw_cupy import nccl_engine
from tests.emulation import nccl


@cache
def _registered() -> Engine:
    hook = pluggy.HookimplMarker("corefw")
    plugin = SimpleNamespace(corefw_engine=hook(lambda: nccl_engine.engine(lambda: nccl, "emulated")))
    return engines.register(plugin, "nccl on the emulated device")


@contextmanager
def installed() -> Iterator[None]:
    """A block in which the engine is there."""
    before = engines._engines.get("nccl")
    engines._engines["nccl"] = _registered()
    try:
        yield
    finally:
        del engines._engines["nccl"]
        if before is not None:
            engines._engines["nccl"] = before
