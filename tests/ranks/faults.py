"""What goes wrong between ranks is told, within the time that was given."""

from __future__ import annotations

from datetime import timedelta

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw.distributed.groups import world


def a_rank_that_does_not_come(rank, size):
    group = dist.new_group(timeout=timedelta(seconds=0.3))
    if rank == 0:
        told = rf"rank 0 of {size}: all_reduce #1 of group \d+ \(\[2, 3\] torch.float32\) did not end within 0.3 s"
        with pytest.raises(dist.DistBackendError, match=told):
            dist.all_reduce(torch.ones(2, 3), group=group)
        assert world.broken  # the job will be ended
        world.broken = False
    dist.barrier()


def a_missing_rank_is_named(rank, size):
    group = dist.new_group(timeout=timedelta(seconds=5))
    dist.barrier()
    if rank == size - 1:
        dist.barrier()
        return
    told = rf"Ranks {size - 1} failed" if rank == 0 else "did not end"
    with pytest.raises(RuntimeError, match=told):
        dist.monitored_barrier(group, timedelta(seconds=2 if rank else 1))
    world.broken = False
    dist.barrier()


def differing_calls(rank, size):
    group = dist.new_group()
    dist.barrier()
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    told = r"(?s)different collectives.*rank 0: #1 all_reduce\(\[2\] torch.float32, sum\).*rank 1: #1 broadcast\(\[2\]"
    with pytest.raises(dist.DistBackendError, match=told):
        if rank == 0:
            dist.all_reduce(torch.ones(2), group=group)
        else:
            dist.broadcast(torch.ones(2), 0, group=group)
    with pytest.raises(dist.DistBackendError, match=r"(?s)rank 0: #2 .*\[1\].*rank 1: #2 .*\[2\]"):
        dist.all_reduce(torch.ones(min(rank, 1) + 1), group=group)
    with pytest.raises(dist.DistBackendError, match="float64"):
        dist.all_reduce(torch.ones(2, dtype=torch.float32 if rank else torch.float64), group=group)
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [size, size]
    dist.barrier()
    dist.set_debug_level(dist.DebugLevel.OFF)


SCENARIOS = [a_rank_that_does_not_come, a_missing_rank_is_named, differing_calls]
