"""Several processes that compute together: groups, collectives and messages by PyTorch's names, over engines that are
plug-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NewType, NoReturn

from corefw.distributed import engines as _engines
from corefw.distributed.collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from corefw.distributed.debugging import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from corefw.distributed.errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from corefw.distributed.groups import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from corefw.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from corefw.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, monitored_barrier, recv, send
from corefw.distributed.reduce_op import ReduceOp
from corefw.distributed.reduce_op import _make_nccl_premul_sum as _make_nccl_premul_sum
from corefw.distributed.rendezvous import get_node_local_rank, register_rendezvous_handler, rendezvous
from corefw.distributed.splitting import shrink_group, split_group
from corefw.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from corefw.distributed.work import Work
from corefw.refusals import refusing

if TYPE_CHECKING:
    from corefw.nn.parallel.buckets import GradBucket

reduce_op = ReduceOp  # PyTorch's older name


def is_available() -> bool:
    """Whether an engine that can run here is installed.

    >>> import corefw as torch
    >>> torch.distributed.is_available() == bool([e for e in torch.distributed.installed() if e != "threads"])
    True
    """
    return bool(installed())


def installed() -> list[str]:
    """The names of the engines that can run here."""
    return sorted(name for name, engine in _engines.load().items() if not engine.unusable)


def is_backend_available(backend: str) -> bool:
    """Whether there is an engine of that name that can run here."""
    return _engines.usable(backend.lower())


def is_mpi_available() -> bool:
    """Whether the engine "mpi" can run here."""
    return _engines.usable("mpi")


def is_nccl_available() -> bool:
    """Whether the engine "nccl" can run here."""
    return _engines.usable("nccl")


def is_gloo_available() -> bool:
    """Whether an engine for the CPU can run here, which stands for PyTorch's gloo."""
    return any("cpu" in engine.devices and not engine.unusable for engine in _engines.load().values())


def is_ucc_available() -> bool:
    """False: there is no such engine."""
    return False


is_xccl_available = is_ucc_available


def is_torchelastic_launched() -> bool:
    """Whether `corefw launch` started this process, or torchrun."""
    return "TORCHELASTIC_RUN_ID" in os.environ


class Backend(str):
    """The name of an engine, in lower case.

    >>> import corefw as torch
    >>> torch.distributed.Backend("MPI"), torch.distributed.Backend.NCCL
    ('mpi', 'nccl')
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, but got {name!r}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name: str, func: object, extended_api: bool = False, devices: object = None) -> NoReturn:
        """Refused: an engine is a package with an entry point.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"Backend.register_backend({name!r}): PyTorch's process groups are classes of C++; an engine of corefw is "
            "a package with an entry point in 'corefw.engines' (docs/distributed.md, \"Writing an engine\")"
        )


GroupName = NewType("GroupName", str)


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """A block whose collectives stand under `name` in the profiler.

    Args:
        name: such as what they are for.
    """
    with import_module("corefw.autograd.profiler").record_function(name):
        yield


_skipped: dict[int, int] = {}  # calls of `breakpoint` in each process's rank


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Open the debugger in one process; the others wait for it.

    Args:
        rank: whose debugger it is.
        skip: how many calls to pass by first.
        timeout_s: how many seconds the others wait.
    """
    _skipped[get_rank()] = calls = _skipped.get(get_rank(), 0) + 1
    if calls <= skip:
        return
    if get_rank() == rank:
        import_module("pdb").Pdb().set_trace(sys._getframe(1))
    work = barrier(async_op=True)
    if work is not None:
        work.wait(timeout_s)


def get_default_backend_for_device(device: object) -> str:
    """The name of the engine that moves tensors of a device."""
    return _engines.for_device(str(device).partition(":")[0]).name


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether a reduction takes complex numbers: sums and averages do."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


_ELSEWHERE = {"GradBucket": "corefw.nn.parallel.buckets"}
_missing = refusing(__name__)
_LATER = ("algorithms", "checkpoint", "device_mesh", "fsdp", "nn", "optim", "tensor")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name]), name)
    return _missing(name)


__all__ = [
    "Backend",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "GroupName",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "breakpoint",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "installed",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "record_comm",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "split_group",
    "supports_complex",
]
