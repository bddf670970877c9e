"""The sampler that gives each of several processes its part of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from corefw.dispatch.declare import ops
from corefw.dispatch.random_generator import Generator
from corefw.distributed.groups import get_rank, get_world_size, is_initialized
from corefw.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Indices ``rank, rank + num_replicas, ...`` of an order that all processes draw alike.

    Args:
        dataset: what is sampled.
        num_replicas: how many processes there are; those that are joined if missing.
        rank: this one's number.
        shuffle: whether each epoch has a random order, drawn from `seed` and the epoch; call `set_epoch` before each.
        seed: the same in all processes.
        drop_last: leave out what does not divide evenly; without, the first indices come again.

    Raises:
        RuntimeError: `num_replicas` or `rank` is not given, and no processes are joined.
        ValueError: `rank` is none of ``0 ... num_replicas - 1``.

    >>> from corefw.utils.data.distributed import DistributedSampler
    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ):  # fmt: skip
        if num_replicas is None or rank is None:
            if not is_initialized():
                raise RuntimeError(
                    "DistributedSampler: requires the distributed package, with processes that init_process_group "
                    "joined; or give num_replicas and rank"
                )
            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = ops.randperm(len(indices), generator=generator).tolist()
        if indices:
            indices *= math.ceil(self.total_size / len(indices))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration."""
        self.epoch = epoch
