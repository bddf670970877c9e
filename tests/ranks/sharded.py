"""fully_shard and FullyShardedDataParallel: losses, gradients and memory, against one process on all the data."""

from __future__ import annotations

import weakref

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from corefw.distributed.fsdp.units import units_of

F = nn.functional


class Layers(nn.Module):
    """Blocks of layers, the last of which shares its weight with the first."""

    def __init__(self, blocks=3, width=6):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width + 1), nn.Tanh(), nn.Linear(width + 1, width))
                                    for _ in range(blocks))  # fmt: skip
        self.last = nn.Linear(width, 4, bias=False)
        self.last.weight = nn.Parameter(self.first.weight.detach().t().contiguous())
        self.scale = nn.Parameter(torch.ones(()))
        formula(self)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x) * self.scale + F.linear(x, self.first.weight.t())


class Transformer(nn.Module):
    """An embedding, encoder layers, and a head that shares its weight."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in "ab")
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight
        formula(self)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def formula(model):
    """Parameters that are the same on all ranks: threads share the random generator."""
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.sin(torch.arange(float(p.numel())) * (i + 1) + i).view(p.shape) / 3 + (p.ndim == 1))


def samples(size):
    """Four for each rank."""
    return torch.cos(torch.arange(16.0 * size)).reshape(4 * size, 4)


def part(rank, tensor):
    """A rank's part of them."""
    return tensor[4 * rank : 4 * rank + 4]


def sharded(model, layers, **options):
    """A model, its layers and itself sharded."""
    for layer in layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def wholes(model):
    """{name: the whole parameter and gradient} of a sharded model."""
    found = {}
    for name, piece in model.named_parameters():
        flat = piece.across
        index = next(i for i, p in enumerate(flat.pieces) if p is piece)
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in flat.pieces]
        found[name] = flat.whole()[index], flat.whole(grads)[index]
    return found


def same(model, single, tolerance=1e-6, gradients=True):
    """Whether a sharded model is another one."""
    found = wholes(model)
    assert list(found) == [name for name, _ in single.named_parameters()]
    for name, p in single.named_parameters():
        assert torch.allclose(found[name][0], p, atol=tolerance), name
        if gradients:
            assert torch.allclose(found[name][1], p.grad, atol=tolerance), name


def steps(rank, size, model, single, losses, count=5):
    """Steps of Adam on both, whose losses and gradients are the same."""
    # The biases of keys have the gradient zero but for rounding, which a small eps would make steps of.
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01, eps=1e-4) for m in (model, single)]
    for _ in range(count):
        for optimizer in optimizers:
            optimizer.zero_grad()
        own, wanted = losses(model, lambda t: part(rank, t)), losses(single, lambda t: t)
        own.backward()
        wanted.backward()
        same(model, single)
        mean = own.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        assert torch.allclose(mean, wanted, atol=1e-6)
        for optimizer in optimizers:
            optimizer.step()
        same(model, single)


def square(size):
    """A loss of a part of the samples."""
    return lambda model, cut: model(cut(samples(size))).square().mean()


def tokens(size):
    """A loss of a part of a text."""
    text = (torch.arange(20 * size) * 7 % 11).reshape(4 * size, 5)
    return lambda model, cut: F.cross_entropy(model(cut(text)).flatten(0, 1), cut(text.roll(1, 1)).flatten())


def layers(rank, size):
    for reshard in (None, True, False):
        model = Layers()
        steps(rank, size, sharded(model, model.blocks, reshard_after_forward=reshard), Layers(), square(size))
    assert type(model).__name__ == "FSDPLayers" and isinstance(model, Layers)


def transformer(rank, size):
    model = Transformer()
    steps(rank, size, sharded(model, model.layers), Transformer(), tokens(size))


class Wide(nn.Module):
    """Blocks whose parameters are most of the memory; and are used as they are and as views."""

    def __init__(self, blocks=6, width=60):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        formula(self)

    def forward(self, x):
        for block in self.blocks:
            x = torch.tanh(block(x))
        return x


def memory(rank, size):
    """Whole parameters are there for one unit and the next; all else is a part."""
    model = Wide()
    total = sum(p.numel() * 4 for p in model.parameters())
    unit = total // len(model.blocks)
    sharded(model, model.blocks)
    peaks, flats = [], [flat for u in units_of(model) for flat in u.flats]
    alive = weakref.WeakValueDictionary()  # of the memory of whole parameters, as long as anything holds it

    def note(*_):
        for flat in flats:
            for tensor in (flat.full, None if flat._coming is None else flat._coming[0]):
                if tensor is not None:
                    alive[id(tensor.array)] = tensor.array
        peaks.append(sum(a.nbytes for a in alive.values()))

    for block in model.blocks:
        block.register_forward_hook(note)
        block.register_full_backward_pre_hook(note)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        loss = model(torch.ones(2, 60)).square().mean()
        note()
        assert peaks[-1] == 0, "after the forward all whole parameters are given back, though the graph is there"
        loss.backward()
        note()
        assert peaks[-1] == 0
        optimizer.step()
    padded = -(-unit // (4 * size)) * 4 * size
    assert len(peaks) == 2 * (2 * len(model.blocks) + 2) and padded <= max(peaks) <= 2 * padded
    states = sum(t.array.nbytes for s in optimizer.state.values() for t in s.values() if t.ndim)
    own = sum(p.array.nbytes + p.grad.array.nbytes for p in model.parameters()) + states
    assert own <= 4 * total / size * 1.1


SCENARIOS = [layers, transformer, memory]
