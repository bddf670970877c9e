"""The engine "nccl": processes with a GPU each, joined through CuPy's NCCL."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pluggy

from corefw import __version__
from corefw.dispatch.registry import registry
from corefw.distributed.engine import Communicator, Engine, Meeting
from corefw_cupy import unusable
from corefw_cupy.nccl_communicator import NcclCommunicator


def _missing() -> str | None:
    """Why NCCL cannot be used here, or None."""
    if reason := unusable():
        return reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy's, where the library is missing: the reason below says it
        from cupy.cuda import nccl
    return None if nccl.available else "CuPy finds no NCCL: `pip install nvidia-nccl-cu13` (or cu12) brings it"


def _library() -> Any:
    from cupy.cuda import nccl

    return nccl


def engine(library: Callable[[], Any], device_type: str, unusable: str | None = None) -> Engine:
    """The engine over a library and the runtime of a device.

    Args:
        library: gives CuPy's module of NCCL, or what stands in for it.
        device_type: whose arrays it moves.
        unusable: why it cannot be used here.
    """

    def join(meeting: Meeting) -> Communicator:
        assert meeting.meet is not None
        store, rank, size = meeting.meet()
        runtime = registry.runtime(device_type)
        return NcclCommunicator(library(), runtime, store, "nccl", rank, size, meeting.timeout, meeting.device)

    return Engine("nccl", __version__, (device_type,), join, unusable=unusable)


@pluggy.HookimplMarker("corefw")
def corefw_engine() -> Engine:
    """What this plug-in offers."""
    return engine(_library, "cuda", _missing())
