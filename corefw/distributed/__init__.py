"""Several processes that compute together: groups, collectives and messages by PyTorch's names, over engines that are
plug-ins."""

from __future__ import annotations

import os
from importlib import import_module

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
from corefw.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from corefw.distributed.work import Work

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


def get_default_backend_for_device(device: object) -> str:
    """The name of the engine that moves tensors of a device."""
    return _engines.for_device(str(device).partition(":")[0]).name


def supports_complex(op: ReduceOp) -> bool:
    """Whether a reduction takes complex numbers: sums and averages do."""
    return op in (ReduceOp.SUM, ReduceOp.AVG)


_LATER = ("algorithms", "checkpoint", "device_mesh", "fsdp", "nn", "optim", "tensor")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
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
    "supports_complex",
]
