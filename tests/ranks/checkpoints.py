"""Checkpoints of several ranks, read by other numbers of them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed import checkpoint
from corefw.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from corefw.distributed.fsdp import FullyShardedDataParallel, fully_shard
from tests.ranks.sharded import Layers, part, same, sharded, square


def in_a_folder(scenario):
    """Give a scenario a new folder, the same on all ranks."""

    @functools.wraps(scenario)
    def run(rank, size):
        held = [tempfile.mkdtemp() if rank == 0 else None]
        dist.broadcast_object_list(held, 0)
        scenario(rank, size, Path(held[0]))
        dist.barrier()
        if rank == 0:
            shutil.rmtree(held[0])

    return run


def trained(rank, size, layers=True):
    """A sharded and a plain model after one step, with their optimizers."""
    model, single = Layers(), Layers()
    sharded(model, model.blocks if layers else ())
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, single)]
    step(rank, size, model, single, optimizers)
    return model, single, optimizers


def step(rank, size, model, single, optimizers):
    for m, optimizer, cut in zip((model, single), optimizers, (lambda t: part(rank, t), lambda t: t)):
        optimizer.zero_grad()
        square(size)(m, cut).backward()
        optimizer.step()


def whole_states(rank, size):
    """On rank 0 the state is that of the plain model and optimizer, and goes on elsewhere."""
    model, single, (ours, plain) = trained(rank, size)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    found, states = get_state_dict(model, ours, options=options)
    wanted = single.state_dict()
    assert list(found) == (list(wanted) if rank == 0 else [])
    assert all(torch.allclose(found[name], value, atol=1e-6) for name, value in wanted.items() if found)
    fresh = fully_shard(Layers())  # one unit instead of several
    again = torch.optim.AdamW(fresh.parameters(), lr=1.0)
    sent = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_state_dict(fresh, again, model_state_dict=found, optim_state_dict=states, options=sent)
    step(rank, size, fresh, single, (again, plain))
    same(fresh, single)
    with pytest.raises(RuntimeError, match=r"size mismatch for first\.bias"):
        set_model_state_dict(fresh, {**wanted, "first.bias": torch.zeros(9)}, options=StateDictOptions(True))
    with pytest.raises(RuntimeError, match="Missing key"):
        set_model_state_dict(fresh, {"scale": wanted["scale"]}, options=StateDictOptions(True))
    assert set(get_model_state_dict(nn.Linear(2, 2))) == {"weight", "bias"}


@in_a_folder
def other_numbers(rank, size, place):
    """What all ranks wrote is read by units of another cut, by one rank, by a plain model; and back."""
    model, single, (ours, plain) = trained(rank, size)
    parts, states = get_state_dict(model, ours)
    checkpoint.save({"model": parts, "optim": states, "epoch": 3, "names": ["a", None]}, checkpoint_id=place)
    assert len(os.listdir(place)) == size + 1
    alone = dist.new_subgroups(1)[0]
    for make in (
        lambda: fully_shard(Layers()),
        lambda: fully_shard(Layers(), mesh=alone),
        lambda: FullyShardedDataParallel(Layers()),
    ):
        fresh = make()
        with torch.no_grad():
            for p in fresh.parameters():
                p.zero_()
        optimizer = torch.optim.AdamW(fresh.parameters(), lr=0.5)
        found = {"model": get_model_state_dict(fresh), "optim": get_optimizer_state_dict(fresh, optimizer)}
        found.update({"epoch": 0, "names": ["b", 1]})
        checkpoint.load(found, checkpoint_id=place)
        set_model_state_dict(fresh, found["model"])
        set_optimizer_state_dict(fresh, optimizer, found["optim"])
        assert found["epoch"] == 3 and found["names"] == ["a", None]
        same(fresh, single, gradients=False)
        assert optimizer.param_groups[0]["lr"] == 0.01 and len(optimizer.state) == len(plain.state)
    bare = Layers()
    held = {"model": bare.state_dict()}
    checkpoint.load(held, storage_reader=checkpoint.FileSystemReader(place), no_dist=True)
    for p, q in zip(bare.parameters(), single.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-6)
    step(rank, size, model, single, (ours, plain))
    restarted = fully_shard(Layers())
    optimizer = torch.optim.AdamW(restarted.parameters(), lr=0.5)
    found = {"model": restarted.state_dict(), "optim": get_optimizer_state_dict(restarted, optimizer)}
    checkpoint.load(found, checkpoint_id=place)
    set_optimizer_state_dict(restarted, optimizer, found["optim"])
    square(size)(restarted, lambda t: part(rank, t)).backward()
    optimizer.step()
    same(restarted, single)


@in_a_folder
def crashes(rank, size, place):
    """A save that fails on one rank, or stops before its end, leaves the checkpoint before it whole."""
    model, _, _ = trained(rank, size)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=place)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)
    bad = {"model": model.state_dict()}
    if rank == size - 1:
        name = next(name for name, value in bad["model"].items() if value.numel())
        piece = bad["model"][name].piece
        bad["model"][name] = Unwritable(piece)
        bad["model"][name].piece = piece
    told = rf"(?s)keeps what was there.*rank {size - 1}: OSError: full"
    with pytest.raises(checkpoint.CheckpointException, match=told):
        checkpoint.save(bad, checkpoint_id=place)
    dist.barrier()
    found = {"model": model.state_dict()}
    checkpoint.load(found, checkpoint_id=place)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=place)
    named = json.loads((place / ".metadata").read_text())["files"]
    assert sorted(os.listdir(place)) == sorted([".metadata", *named]) and len(named) == size
    with pytest.raises(checkpoint.CheckpointException, match="Missing key in checkpoint state_dict: other"):
        checkpoint.load({"other": torch.ones(1)}, checkpoint_id=place)
    with pytest.raises(checkpoint.CheckpointException, match=r"size mismatch .*\[6\] and current \[2\]"):
        checkpoint.load({"model": {"first.bias": torch.ones(2)}}, checkpoint_id=place)
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        checkpoint.save({})


class Unwritable(nn.Parameter):
    """A tensor that cannot be written."""

    def detach(self):
        raise OSError("full")


SCENARIOS = [whole_states, other_numbers, crashes]
