"""FullyShardedDataParallel: which modules become units, strategies, whole parameters, states."""

from __future__ import annotations

import functools

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from corefw.distributed.fsdp.units import units_of
from corefw.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    always_wrap_policy,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
)
from tests.ranks.sharded import Layers, Transformer, part, same, square, steps, tokens

BLOCKS = ModuleWrapPolicy({nn.Sequential})


def policies(rank, size):
    encoder = {nn.TransformerEncoderLayer}
    by_class = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls=encoder)
    by_function = functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: type(m) in encoder)
    for policy in (ModuleWrapPolicy(encoder), by_class, by_function):
        model = FullyShardedDataParallel(Transformer(), auto_wrap_policy=policy)
        assert len(FullyShardedDataParallel.fsdp_modules(model)) == 3
        assert isinstance(model.module.layers[1], FullyShardedDataParallel)
        assert [n for n, _ in model.named_parameters()] == [n for n, _ in Transformer().named_parameters()]
    by_size = functools.partial(size_based_auto_wrap_policy, min_num_params=80)
    model = FullyShardedDataParallel(Layers(), auto_wrap_policy=by_size)
    assert [isinstance(m, FullyShardedDataParallel) for m in model.module.children()] == [False, False, False]
    assert all(isinstance(block, FullyShardedDataParallel) for block in model.blocks)
    own = CustomPolicy(
        lambda m: {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP} if type(m) is nn.Sequential else False
    )
    model = FullyShardedDataParallel(Layers(), auto_wrap_policy=own)
    assert model.blocks[0].sharding_strategy is ShardingStrategy.SHARD_GRAD_OP
    steps(rank, size, model, Layers(), square(size), 2)
    every = FullyShardedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), auto_wrap_policy=always_wrap_policy)
    assert len(units_of(every)) == 3 and isinstance(every[0], FullyShardedDataParallel)


def strategies(rank, size):
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        model = FullyShardedDataParallel(
            Layers(), sharding_strategy=strategy, auto_wrap_policy=BLOCKS, forward_prefetch=True
        )
        steps(rank, size, model, Layers(), square(size), 3)
    model = FullyShardedDataParallel(Transformer(), auto_wrap_policy=ModuleWrapPolicy({nn.TransformerEncoderLayer}))
    steps(rank, size, model, Transformer(), tokens(size))
    with pytest.raises(ValueError, match="HYBRID_SHARD goes with"):
        FullyShardedDataParallel(Layers(), sharding_strategy=ShardingStrategy.HYBRID_SHARD)


def beginning(rank, size):
    """Parameters and buffers of rank 0 for all; what is ignored stays whole."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    with torch.no_grad():
        for tensor in (*model.parameters(), model[1].running_mean):
            tensor.fill_(rank + 1.0)
    model = FullyShardedDataParallel(model, sync_module_states=True, ignored_modules=[model[1]])
    assert model[1].weight.shape == (4,) and (model[1].running_mean == 1).all()
    with FullyShardedDataParallel.summon_full_params(model):
        assert (model[0].weight == 1).all()
    low = FullyShardedDataParallel(
        nn.BatchNorm1d(4), mixed_precision=MixedPrecision(torch.bfloat16, buffer_dtype=torch.bfloat16)
    )
    assert low(torch.ones(2, 4)).dtype is torch.bfloat16 and low.running_mean.dtype is torch.bfloat16


def accumulation_and_norms(rank, size):
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD):
        model, single = (
            FullyShardedDataParallel(Layers(), auto_wrap_policy=BLOCKS, sharding_strategy=strategy),
            Layers(),
        )
        with model.no_sync():
            square(size)(model, lambda t: part(rank, t)).backward()
        square(size)(model, lambda t: part(rank, t)).backward()
        (square(size)(single, lambda t: t) * 2).backward()
        same(model, single, 2e-6)
        norm = nn.utils.clip_grad_norm_(single.parameters(), 0.1)
        assert torch.allclose(model.clip_grad_norm_(0.1), norm, atol=1e-5)
        same(model, single)


def whole_parameters(rank, size):
    model, single = FullyShardedDataParallel(Layers(), auto_wrap_policy=BLOCKS), Layers()
    square(size)(model, lambda t: part(rank, t)).backward()
    square(size)(single, lambda t: t).backward()
    summon = FullyShardedDataParallel.summon_full_params
    with summon(model, with_grads=True), torch.no_grad():
        for (name, p), q in zip(model.named_parameters(), single.parameters(), strict=True):
            assert isinstance(p, nn.Parameter) and torch.equal(p, q), name
            assert torch.allclose(p.grad, q.grad, atol=1e-6)
            p.mul_(2)
            q.mul_(2)
            p.grad.zero_()
            q.grad.zero_()
    same(model, single)
    with summon(model, writeback=False), torch.no_grad():
        model.scale.fill_(7)
    same(model, single)
    with summon(model, writeback=False, rank0_only=True):
        assert model.first.weight.ndim == (1 if rank else 2)
    with summon(model, recurse=False):
        assert model.first.weight.ndim == 2 and model.blocks[0].module[0].weight.ndim == 1
    with pytest.raises(NotImplementedError, match="rank0_only"), summon(model, rank0_only=True):
        pass


def _trained(size, rank):
    model = FullyShardedDataParallel(Layers(), auto_wrap_policy=BLOCKS)
    single = Layers()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (model, single)]
    for optimizer, m, cut in zip(optimizers, (model, single), (lambda t: part(rank, t), lambda t: t)):
        square(size)(m, cut).backward()
        optimizer.step()
    return model, single, optimizers


def whole_states(rank, size):
    """A whole state is that of the plain model, and is loaded by any number of ranks, as by one."""
    model, single, _ = _trained(size, rank)
    wanted = single.state_dict()
    found = model.state_dict()
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].shape == value.shape and torch.allclose(found[name], value, atol=1e-6), name
    with FullyShardedDataParallel.state_dict_type(
        model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    ):
        kept = model.state_dict()
    assert set(kept) == (set() if rank else set(wanted))
    held = [kept]
    dist.broadcast_object_list(held, 0)
    alone, _ = dist.new_subgroups(1)
    for group, policy in ((alone, None), (None, BLOCKS), (None, None)):
        fresh = nn.Sequential(FullyShardedDataParallel(Layers(), group, auto_wrap_policy=policy))
        with torch.no_grad():
            for p in fresh.parameters():
                p.zero_()
        fresh[0].load_state_dict(held[0])
        same(fresh[0], single, gradients=False)
        fresh.load_state_dict({f"0.{name}": value for name, value in wanted.items()})
        assert set(fresh.state_dict()) == {f"0.{name}" for name in wanted}
    plain = Layers()
    plain.load_state_dict(held[0])
    with pytest.raises(RuntimeError, match=r"size mismatch for .*first\.bias.*\[7\].*\[6\]"):
        model.load_state_dict({**wanted, "first.bias": torch.zeros(7)})
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({n: v for n, v in wanted.items() if n != "scale"})


def parts_of_states(rank, size):
    model, single, _ = _trained(size, rank)
    for kind in (StateDictType.SHARDED_STATE_DICT, StateDictType.LOCAL_STATE_DICT):
        fresh = FullyShardedDataParallel(Layers(), auto_wrap_policy=BLOCKS)
        with (
            FullyShardedDataParallel.state_dict_type(model, kind),
            FullyShardedDataParallel.state_dict_type(fresh, kind),
        ):
            state = model.state_dict()
            assert set(state) == set(single.state_dict()) and all(value.ndim == 1 for value in state.values())
            assert sum(v.numel() for v in state.values()) <= sum(p.numel() for p in single.parameters()) / size + 20
            fresh.load_state_dict(state)
        same(fresh, single, gradients=False)
    assert FullyShardedDataParallel.get_state_dict_type(model).state_dict_type is StateDictType.FULL_STATE_DICT
    with pytest.raises(RuntimeError, match="ShardedStateDictConfig"):
        FullyShardedDataParallel.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT, FullStateDictConfig())


def optimizers(rank, size):
    model, single, (ours, plain) = _trained(size, rank)
    state = FullyShardedDataParallel.optim_state_dict(model, ours)
    names = [name for name, _ in single.named_parameters()]
    for number, wanted in plain.state_dict()["state"].items():
        found = state["state"][names[number]]
        for key, value in wanted.items():
            assert found[key].shape == value.shape and torch.allclose(found[key], value, atol=1e-6), (
                names[number],
                key,
            )
    assert state["param_groups"][0]["params"] == names and state["param_groups"][0]["lr"] == 0.01
    kept = FullyShardedDataParallel.full_optim_state_dict(model, ours)
    assert bool(kept) == (rank == 0)
    FullyShardedDataParallel.set_state_dict_type(
        model, StateDictType.FULL_STATE_DICT, None, FullOptimStateDictConfig(rank0_only=True)
    )
    assert bool(FullyShardedDataParallel.optim_state_dict(model, ours)) == (rank == 0)
    fresh = FullyShardedDataParallel(Layers())  # units of another cut
    fresh.load_state_dict(single.state_dict())
    again = torch.optim.Adam(fresh.parameters(), lr=1.0)
    again.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(fresh, again, state))
    for m, optimizer, cut in ((fresh, again, lambda t: part(rank, t)), (single, plain, lambda t: t)):
        optimizer.zero_grad()
        square(size)(m, cut).backward()
        optimizer.step()
    same(fresh, single)
    with pytest.raises(ValueError, match="none of the model's"):
        FullyShardedDataParallel.optim_state_dict(model, torch.optim.Adam([torch.zeros(1, requires_grad=True)]))


SCENARIOS = [
    policies, strategies, beginning, accumulation_and_norms, whole_parameters, whole_states, parts_of_states,
    optimizers,
]  # fmt: skip
