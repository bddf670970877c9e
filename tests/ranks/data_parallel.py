"""DistributedDataParallel: gradients and losses are those of one process on all the data."""

from __future__ import annotations

import copy
import re

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from corefw.nn.parallel import DistributedDataParallel

F = nn.functional


class Model(nn.Module):
    """Layers of two sizes, one used twice, and one that is used on request."""

    def __init__(self, seed):
        super().__init__()
        self.first = nn.Linear(3, 5)
        self.shared = nn.Linear(5, 5)
        self.seldom = nn.Linear(5, 5)
        self.last = nn.Linear(5, 2)
        self.register_buffer("seen", torch.zeros(()))
        with torch.no_grad():  # ranks may be threads, which share the generator
            for i, p in enumerate(self.parameters()):
                p.copy_(torch.sin(torch.arange(float(p.numel())) * (i + 1) + seed).view(p.shape) / 2)

    def forward(self, x, seldom=True):
        self.seen += 1
        x = self.shared(torch.tanh(self.shared(torch.tanh(self.first(x)))))
        return self.last(self.seldom(x) if seldom else x)


def data(size):
    """Samples and targets, four for each rank."""
    samples = torch.linspace(-1, 1, 12 * size).reshape(4 * size, 3)
    return samples, samples[:, :2].square()


def part(rank, tensor):
    """A rank's part of them."""
    return tensor[4 * rank : 4 * rank + 4]


def alone(size, **options):
    """The gradients of one process."""
    model = Model(0)
    samples, targets = data(size)
    F.mse_loss(model(samples, **options), targets).backward()
    return model


def close(model, wanted, tolerance=1e-6):
    """Whether the gradients of two models are equal."""
    for (name, a), b in zip(model.named_parameters(), wanted.parameters(), strict=True):
        assert torch.allclose(a.grad, torch.zeros_like(b) if b.grad is None else b.grad, atol=tolerance), name


def averages(rank, size):
    samples, targets = data(size)
    for options in ({}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 1e-4}, {"static_graph": True}):
        model = DistributedDataParallel(Model(rank), **options)
        assert next(name for name, _ in model.named_parameters()) == "module.first.weight"
        wanted = alone(size)
        for step in range(3):
            model.zero_grad(set_to_none=step != 1)
            F.mse_loss(model(part(rank, samples)), part(rank, targets)).backward()
            close(model.module, wanted)
        assert model.module.seen == 3


def unused(rank, size):
    samples, targets = data(size)
    model = DistributedDataParallel(Model(rank), find_unused_parameters=True)
    F.mse_loss(model(part(rank, samples), seldom=False), part(rank, targets)).backward()
    close(model.module, alone(size, seldom=False))
    strict = DistributedDataParallel(Model(rank))
    F.mse_loss(strict(part(rank, samples), seldom=False), part(rank, targets)).backward()
    with pytest.raises(RuntimeError, match=r"prior iteration.*seldom\.weight"):
        strict(part(rank, samples))


def without_averaging(rank, size):
    samples, targets = data(size)
    model, own = DistributedDataParallel(Model(0)), Model(0)
    with model.no_sync():
        F.mse_loss(model(part(rank, samples)), part(rank, targets)).backward()
    F.mse_loss(own(part(rank, samples)), part(rank, targets)).backward()
    close(model.module, own)
    F.mse_loss(model(part(rank, samples)), part(rank, targets)).backward()
    wanted = alone(size)
    for p in wanted.parameters():
        p.grad *= 2
    close(model.module, wanted)


def overlap(rank, size):
    """Buckets are on their way before the backward has come to the first layer."""
    model = DistributedDataParallel(Model(rank), bucket_cap_mb=1e-5)
    events = []
    model.register_comm_hook("state", lambda state, bucket: (
        events.append((state, bucket.index())), hooks.allreduce_hook(None, bucket))[1])  # fmt: skip
    with pytest.raises(RuntimeError, match="only be called once"):
        model.register_comm_hook(None, hooks.allreduce_hook)
    x = part(rank, data(size)[0]).requires_grad_()
    x.register_hook(lambda grad: events.append("input"))
    first = model.module.first(x)
    first.register_hook(lambda grad: events.append("first layer"))
    assert model.module.first.weight.grad is None
    model(x).sum().backward()
    assert events[0] == ("state", 0) and len({e for e in events if isinstance(e, tuple)}) == len(model.reducer.buckets)
    assert events.index("input") > 2, events


def compressed(rank, size):
    samples, targets = data(size)
    every = (
        (hooks.allreduce_hook, 1e-6), (hooks.fp16_compress_hook, 1e-3), (hooks.bf16_compress_hook, 1e-2),
        (hooks.fp16_compress_wrapper(hooks.allreduce_hook), 1e-3),
    )  # fmt: skip
    for hook, tolerance in every:
        model = DistributedDataParallel(Model(rank))
        model.register_comm_hook(None, hook)
        F.mse_loss(model(part(rank, samples)), part(rank, targets)).backward()
        close(model.module, alone(size), tolerance)


def training(rank, size):
    samples, targets = data(size)
    model, single = DistributedDataParallel(Model(rank)), Model(0)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (model, single)]
    for _ in range(5):
        losses = [F.mse_loss(model(part(rank, samples)), part(rank, targets)), F.mse_loss(single(samples), targets)]
        for optimizer, loss in zip(optimizers, losses):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = losses[0].detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        assert torch.allclose(mean, losses[1], atol=1e-6)
    single.load_state_dict(copy.deepcopy(model.module.state_dict()))
    close(model.module, single, 1.0)


def refused(rank, size):
    with pytest.raises(RuntimeError, match="any parameter that requires a gradient"):
        DistributedDataParallel(nn.ReLU())
    with pytest.raises(RuntimeError, match=re.escape(f"rank {size - 1}")):
        DistributedDataParallel(nn.Linear(2, 3 if rank < size - 1 else 4))


SCENARIOS = [averages, unused, without_averaging, overlap, compressed, training, refused]
