"""A model on several devices of one process, or in several processes."""

from importlib import import_module
from typing import TYPE_CHECKING

from corefw.nn.parallel.data_parallel import DataParallel, data_parallel
from corefw.nn.parallel.replicas import parallel_apply, replicate
from corefw.nn.parallel.scatter_gather import gather, scatter

if TYPE_CHECKING:
    from corefw.nn.parallel.distributed import DistributedDataParallel


def __getattr__(name: str) -> object:
    if name != "DistributedDataParallel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("corefw.nn.parallel.distributed").DistributedDataParallel  # with all of corefw.distributed


__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
