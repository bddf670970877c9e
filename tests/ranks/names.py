"""Groups that are divided, checkpoints in the background, and other names that need several ranks."""

from __future__ import annotations

from datetime import timedelta

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed import checkpoint, fsdp
from corefw.distributed.checkpoint.state_dict import get_model_state_dict
from tests.ranks.checkpoints import in_a_folder
from tests.ranks.collectives import own, same


def split(rank, size):
    parts = [[0], list(range(1, size))]
    part = dist.split_group(split_ranks=parts, timeout=timedelta(seconds=9), group_desc="a part")
    assert dist.get_process_group_ranks(part) == parts[min(rank, 1)] and (part.timeout, part.group_desc) == (
        9,
        "a part",
    )
    tensor = own(rank)
    dist.all_reduce(tensor, group=part)
    same(tensor, own(0) if rank == 0 else sum(own(r) for r in range(1, size)))
    if rank:  # ranks are those of the group that is divided
        inner = dist.split_group(part, [[size - 2]])
        assert (inner is None) == (rank != size - 1)
        assert inner is None or dist.get_process_group_ranks(inner) == [size - 1]
    for wrong, told in (
        ([], "empty"),
        ([[]], "empty"),
        ([[0, 0]], "duplicate"),
        ([[0], [0]], "duplicate"),
        ([[size]], "of a group"),
    ):
        with pytest.raises(ValueError, match=told):
            dist.split_group(split_ranks=wrong)

    backwards = dist.new_group([*range(size)][::-1], sort_ranks=False)
    assert dist.get_rank(backwards) == size - 1 - rank and dist.get_global_rank(backwards, 0) == size - 1
    dist.barrier(backwards, timeout=timedelta(seconds=9))
    dist.broadcast(tensor, 0, group=backwards)
    same(tensor, own(0))


def shrink(rank, size):
    group = dist.new_group()
    before = dist.get_pg_count()
    if rank == size - 1:
        with pytest.raises(ValueError, match="is excluded"):
            dist.shrink_group([rank], group)
        dist.barrier()
        return
    for wrong in ([], [size]):
        with pytest.raises(ValueError, match="ranks_to_exclude"):
            dist.shrink_group(wrong, group)
    smaller = dist.shrink_group([size - 1], group)
    assert dist.get_world_size(smaller) == size - 1 and dist.get_rank(smaller) == rank
    tensor = own(rank)
    dist.all_reduce(tensor, group=smaller)
    same(tensor, sum(own(r) for r in range(size - 1)))
    assert dist.get_pg_count() == before
    with pytest.raises(ValueError, match="destroyed"):
        group.rank()
    dist.barrier()


def coalesced(rank, size):
    rows = [[torch.zeros(2, 3), torch.zeros(1)] for _ in range(size)]
    dist.all_gather_coalesced(rows, [own(rank), torch.full((1,), float(rank))])
    for r, (first, second) in enumerate(rows):
        same(first, own(r))
        same(second, torch.full((1,), float(r)))
    tensors = [own(rank), own(rank, torch.int64)]
    dist.all_reduce_coalesced(tensors)
    same(tensors[0], sum(own(r) for r in range(size)))
    same(tensors[1], sum(own(r, torch.int64) for r in range(size)))
    joined = torch.zeros(2 * size, 3)
    dist.all_gather_single(joined, own(rank))
    same(joined[2 * rank : 2 * rank + 2], own(rank))
    part = torch.zeros(2, 3)
    dist.reduce_scatter_single(part, joined)
    same(part, size * own(rank))
    subgroup, every = dist.new_subgroups_by_enumeration([[r] for r in range(size)])
    assert dist.get_world_size(subgroup) == 1 and len(every) == size


def told(rank, size):
    """What is asked of the group of all."""
    engine = dist.get_backend()
    assert dist.get_backend_config() == f"cpu:{engine}" and dist.is_backend_available(engine)
    assert dist.get_default_backend_for_device("cpu") == engine
    assert isinstance(dist.group.WORLD, dist.ProcessGroup) and dist.GroupName("0") == dist.group.WORLD.group_name


@in_a_folder
def in_the_background(rank, size, place):
    layer = fsdp.fully_shard(nn.Linear(3, 2))
    state = {"model": get_model_state_dict(layer), "epoch": 1}
    wanted = {name: value.clone() for name, value in state["model"].items()}
    futures = []
    for number in range(2):
        future = checkpoint.async_save(state, checkpoint_id=place / str(number))
        with torch.no_grad():
            for p in layer.parameters():
                p.add_(1)
        tensor = own(rank)
        dist.all_reduce(tensor)  # beside the messages of the thread
        same(tensor, sum(own(r) for r in range(size)))
        assert future.result(20) is None
        futures.append(future)
    checkpoint.load(state, checkpoint_id=place / "0")
    for name, value in get_model_state_dict(layer).items():
        same(value, wanted[name])
    found = {"model": state["model"], "more": torch.full((1,), 5.0), "epoch": 0}
    planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    checkpoint.load_state_dict(found, checkpoint.FileSystemReader(place / "1"), planner=planner)
    assert found["epoch"] == 1 and found["more"].item() == 5.0
    for name, value in get_model_state_dict(layer).items():
        assert torch.allclose(value, wanted[name] + 1)
    told = checkpoint.FileSystemReader(place / "1").read_metadata()
    assert isinstance(told, checkpoint.Metadata)
    assert told.state_dict_metadata["epoch"] == checkpoint.BytesStorageMetadata()
    weight = told.state_dict_metadata["model.weight"]
    assert isinstance(weight, checkpoint.TensorStorageMetadata) and (weight.size, weight.properties.dtype) == (
        (2, 3), torch.float32,
    )  # fmt: skip
    assert sum(chunk.sizes.numel() for chunk in weight.chunks) == 6
    assert all(isinstance(chunk, checkpoint.ChunkStorageMetadata) for chunk in weight.chunks)
    bad = checkpoint.async_save({"a": lambda: 0}, checkpoint_id=place / "2")
    with pytest.raises(checkpoint.CheckpointException):
        bad.result(20)
    dist.barrier()
    checkpoint.save_state_dict(
        {"a": 1}, checkpoint.FileSystemWriter(place / "3"), planner=checkpoint.DefaultSavePlanner()
    )
    found = {"a": 0}
    checkpoint.load(found, checkpoint_id=place / "3")
    assert found == {"a": 1}


class Two(nn.Module):
    """A module with two ways forward."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.copy_(torch.arange(6.0).view(2, 3))

    def forward(self, x):
        return self.layer(x)

    def twice(self, x):
        return 2 * x @ self.layer.weight.mT


def another_forward(rank, size):
    plain = Two()
    fsdp.register_fsdp_forward_method(plain, "twice")
    assert "twice" not in vars(plain)
    model = fsdp.fully_shard(Two())
    assert isinstance(model, fsdp.FSDPModule)
    fsdp.share_comm_ctx([model])
    fsdp.register_fsdp_forward_method(model, "twice")
    x = torch.ones(1, 3) * (rank + 1)
    result = model.twice(x)
    same(result, plain.twice(x))
    result.sum().backward()
    gradient = model.layer.weight.grad
    assert gradient.shape == model.layer.weight.shape
    assert torch.equal(gradient, torch.full(gradient.shape, float(size + 1)))
    with pytest.raises(ValueError, match="does not have a method thrice"):
        fsdp.register_fsdp_forward_method(model, "thrice")
    with pytest.raises(ValueError, match="Two"):
        fsdp.share_comm_ctx([plain])


def optimizer_states(rank, size):
    model = fsdp.FullyShardedDataParallel(Two())
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    numbered = optimizer.state_dict()
    keys = fsdp.OptimStateKeyType
    named = model.rekey_optim_state_dict(numbered, keys.PARAM_NAME, model)
    assert set(named["state"]) == set(named["param_groups"][0]["params"]) == {"layer.weight", "layer.bias"}
    again = model.rekey_optim_state_dict(named, keys.PARAM_ID, model)
    assert again["param_groups"] == numbered["param_groups"] and again["state"].keys() == numbered["state"].keys()
    assert all(again["state"][i] is numbered["state"][i] for i in again["state"])
    with pytest.raises(ValueError, match="no parameter 'other'"):
        model.rekey_optim_state_dict({"state": {"other": {}}, "param_groups": []}, keys.PARAM_ID, model)


SCENARIOS = [split, shrink, coalesced, told, in_the_background, another_forward, optimizer_states]
