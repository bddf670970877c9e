"""What is computed on parts: batch statistics over ranks, and optimizers whose states are spread over them."""

from __future__ import annotations

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.optim import ZeroRedundancyOptimizer
from tests.ranks.data_parallel import Model

F = nn.functional


def batch_statistics(rank, size):
    """SyncBatchNorm on parts of uneven sizes, one of them empty, is BatchNorm on the whole."""
    sizes = [0, *range(1, size)] if size > 2 else [1, 3]
    samples = torch.sin(torch.arange(sum(sizes) * 3 * 5.0)).reshape(-1, 3, 5)
    weights = torch.cos(torch.arange(float(samples.numel()))).reshape(samples.shape)
    own = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    for momentum in (0.3, None):
        whole = nn.BatchNorm1d(3, momentum=momentum)
        with torch.no_grad():
            whole.weight.copy_(torch.tensor([0.5, 1.5, -1.0]))
            whole.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
        layer = nn.SyncBatchNorm(3, momentum=momentum)
        layer.load_state_dict(whole.state_dict())
        for _ in range(2):
            x, part = samples.clone().requires_grad_(), samples[own].clone().requires_grad_()
            wanted, found = whole(x), layer(part)
            assert torch.allclose(found, wanted[own], atol=1e-6)
        (wanted * weights).sum().backward()
        (found * weights[own]).sum().backward()
        assert torch.allclose(part.grad, x.grad[own], atol=1e-5)
        for p, q in zip(layer.parameters(), whole.parameters()):
            dist.all_reduce(p.grad)
            assert torch.allclose(p.grad, q.grad, atol=1e-5)
        for name, value in whole.named_buffers():
            assert torch.allclose(layer.get_buffer(name), value), name
        assert torch.allclose(layer.eval()(samples), whole.eval()(samples), atol=1e-6)
    alone = dist.new_subgroups(1)[0]
    x = samples + rank
    assert torch.allclose(nn.SyncBatchNorm(3, process_group=alone)(x), nn.BatchNorm1d(3)(x), atol=1e-6)
    half = nn.SyncBatchNorm(3)(samples.to(torch.bfloat16))
    assert half.dtype is torch.bfloat16
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.SyncBatchNorm(3)(torch.ones(int(rank == 0), 3))


def _train(model, optimizer, steps, start=0):
    for step in range(start, start + steps):
        optimizer.zero_grad()
        model(torch.linspace(-1, 1, 12).reshape(4, 3) * (step + 1)).square().mean().backward()
        optimizer.step()


def _same(model, other):
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)


def spread_states(rank, size):
    """The states of each parameter are on one rank; steps are those of the optimizer itself."""
    classes = [
        (torch.optim.Adam, {"lr": 0.01}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    ]  # fmt: skip
    for kind, options in classes:
        model, single = Model(0), Model(0)
        ours, plain = ZeroRedundancyOptimizer(model.parameters(), kind, **options), kind(single.parameters(), **options)
        scheduler = torch.optim.lr_scheduler.StepLR(ours, 2)
        other = torch.optim.lr_scheduler.StepLR(plain, 2)
        for step in range(4):
            _train(model, ours, 1, step)
            _train(single, plain, 1, step)
            scheduler.step()
            other.step()
        _same(model, single)
        held = sum(t.numel() for s in ours.state.values() for t in s.values() if t.ndim)
        everyone = [None] * size
        dist.all_gather_object(everyone, held)
        total = sum(t.numel() for s in plain.state.values() for t in s.values() if t.ndim)
        largest = max(p.numel() for p in model.parameters()) * (total // sum(p.numel() for p in model.parameters()))
        assert sum(everyone) == total and max(everyone) <= total / size + largest


def states_gathered_and_loaded(rank, size):
    model, single = Model(0), Model(0)
    ours = ZeroRedundancyOptimizer(model.named_parameters(), torch.optim.Adam, lr=0.01)
    plain = torch.optim.Adam(single.named_parameters(), lr=0.01)
    _train(model, ours, 2)
    _train(single, plain, 2)
    last = size - 1
    with pytest.raises(RuntimeError, match=rf"consolidate_state_dict\(to={rank}\)"):
        ours.state_dict()
    ours.consolidate_state_dict(to=last)
    given = [ours.state_dict() if rank == last else None]
    dist.broadcast_object_list(given, last)
    wanted = plain.state_dict()
    assert given[0]["param_groups"] == wanted["param_groups"] and list(given[0]["state"]) == list(wanted["state"])
    for number, state in wanted["state"].items():
        for key, value in state.items():
            assert torch.equal(given[0]["state"][number][key], value)
    fresh = ZeroRedundancyOptimizer(model.named_parameters(), torch.optim.Adam, lr=0.5)
    fresh.load_state_dict(given[0])
    restarted = torch.optim.Adam(single.named_parameters(), lr=0.5)
    restarted.load_state_dict(given[0])
    _train(model, fresh, 2, 2)
    _train(single, restarted, 2, 2)
    _same(model, single)
    assert len(fresh.state) < len(plain.state)


def groups_of_parameters(rank, size):
    model, single = Model(0), Model(0)
    makers = (lambda g: ZeroRedundancyOptimizer(g, torch.optim.Adam, lr=0.01), lambda g: torch.optim.Adam(g, lr=0.01))
    for trained, make in zip((model, single), makers):
        optimizer = make([{"params": trained.first.parameters(), "lr": 0.1}, {"params": [trained.shared.weight]}])
        assert optimizer.param_groups[1]["lr"] == 0.01 and optimizer.param_groups[0]["betas"] == (0.9, 0.999)
        _train(trained, optimizer, 1)
        optimizer.add_param_group({"params": trained.last.parameters(), "weight_decay": 0.1})
        _train(trained, optimizer, 2, 1)
    _same(model, single)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [single.last.weight]})
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, overlap_with_ddp=True)


SCENARIOS = [batch_statistics, spread_states, states_gathered_and_loaded, groups_of_parameters]
