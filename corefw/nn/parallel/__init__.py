"""A model on several devices of one process."""

from corefw.nn.parallel.data_parallel import DataParallel, data_parallel
from corefw.nn.parallel.distributed import DistributedDataParallel
from corefw.nn.parallel.replicas import parallel_apply, replicate
from corefw.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
