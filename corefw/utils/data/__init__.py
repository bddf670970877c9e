"""Data sets, samplers and the loader that makes batches of them."""

from importlib import import_module
from typing import TYPE_CHECKING

from corefw.utils.data.collate import default_collate, default_convert
from corefw.utils.data.dataloader import DataLoader
from corefw.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from corefw.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from corefw.utils.data.worker import get_worker_info

if TYPE_CHECKING:
    from corefw.utils.data.distributed import DistributedSampler


def __getattr__(name: str) -> object:
    if name != "DistributedSampler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("corefw.utils.data.distributed").DistributedSampler  # with all of corefw.distributed


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
