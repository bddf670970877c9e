"""fully_shard and FullyShardedDataParallel: losses, gradients and memory, against one process on all the data."""

from __future__ import annotations

import copy
import weakref

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from corefw.distributed.fsdp.units import units_of
from corefw.nn.parallel import DistributedDataParallel
from corefw.utils.checkpoint import checkpoint

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


def as_replicated(rank, size):
    """The losses of a model in parts are those of DistributedDataParallel, each rank with its own data."""
    model, whole = Transformer(), Transformer()
    sharded(model, model.layers)
    whole = DistributedDataParallel(whole)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01, eps=1e-4) for m in (model, whole)]
    for _ in range(4):
        losses = [tokens(size)(m, lambda t: part(rank, t)) for m in (model, whole)]
        assert abs(losses[0].item() - losses[1].item()) < 1e-5
        for loss, optimizer in zip(losses, optimizers):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


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
    peaks, reducing, flats = [], [], [flat for u in units_of(model) for flat in u.flats]
    alive = weakref.WeakValueDictionary()  # of the memory of whole parameters, as long as anything holds it

    def note(*_):
        for flat in flats:
            for tensor in (flat.full, None if flat._coming is None else flat._coming[0]):
                if tensor is not None:
                    alive[id(tensor.array)] = tensor.array
        peaks.append(sum(a.nbytes for a in alive.values()))
        reducing.append(sum(bool(flat._reducing) for flat in flats))

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
    assert max(reducing) == 1, "whole gradients of one unit are on their way"
    states = sum(t.array.nbytes for s in optimizer.state.values() for t in s.values() if t.ndim)
    own = sum(p.array.nbytes + p.grad.array.nbytes for p in model.parameters()) + states
    assert own <= 4 * total / size * 1.1


def freed(rank, size):
    """Views of parameters that the graph wants, as attention has, do not keep the whole ones in memory."""
    model, single = Transformer(), Transformer()
    sharded(model, model.layers)
    flat = model.layers[1]._unit.flats[0]
    seen = []
    model.layers[1].register_forward_hook(lambda *_: seen.append(weakref.ref(flat.full.array)))
    loss = tokens(size)(model, lambda t: part(rank, t))
    assert len(seen) == 1 and seen[0]() is None
    loss.backward()
    tokens(size)(single, lambda t: t).backward()
    same(model, single)
    assert all(f.full is None for u in units_of(model) for f in u.flats)


def ahead_of_need(rank, size):
    """The next unit is on its way while one computes, in the forward and in the backward, from the second time on."""
    model = Layers()
    sharded(model, model.blocks)
    units, events = [b._unit for b in model.blocks], []

    def there(kind):
        return lambda m, *_: events.append((kind, [f"{u.flats[0].full is not None or u.flats[0]._coming is not None:d}"
                                                   for u in units]))  # fmt: skip

    for _ in range(2):
        events.clear()
        for block in model.blocks:
            block[0].register_forward_pre_hook(there("forward"))
            block[2].register_full_backward_pre_hook(there("backward"))
        model(part(rank, samples(size))).sum().backward()
    found = ["".join(here) for _, here in events]
    assert found[0] == "110" and "011" in found and found[-1] == "100" and "111" not in found
    model.blocks[0].set_modules_to_forward_prefetch([model.blocks[2]])
    events.clear()
    model(part(rank, samples(size)))
    assert "".join(events[0][1]) == "101"


def accumulation(rank, size):
    model, single = Layers(), Layers()
    sharded(model, model.blocks)
    model.set_requires_gradient_sync(False)
    square(size)(model, lambda t: part(rank, t)).backward()
    assert all(p.grad is None for p in model.parameters())
    model.set_requires_gradient_sync(True)
    (square(size)(model, lambda t: part(rank, t)) * 2).backward()
    (square(size)(single, lambda t: t) * 3).backward()
    same(model, single, 2e-6)
    square(size)(model, lambda t: part(rank, t)).backward()
    square(size)(single, lambda t: t).backward()
    same(model, single, 2e-6)


def frozen(rank, size):
    """Parameters that want no gradient, alone in a unit and beside others."""
    model, single = Layers(), Layers()
    for m in (model, single):
        m.blocks[1].requires_grad_(False)
        m.blocks[2][0].weight.requires_grad_(False)
        m.first.requires_grad_(False)
    sharded(model, model.blocks)
    for _ in range(2):
        square(size)(model, lambda t: part(rank, t)).backward()
        square(size)(single, lambda t: t).backward()
    found = wholes(model)
    for name, p in single.named_parameters():
        assert (p.grad is None) == (dict(model.named_parameters())[name].grad is None), name
        assert p.grad is None or torch.allclose(found[name][1], p.grad, atol=2e-6), name
    assert all(f.full is None for u in units_of(model) for f in u.flats)


def computed_again(rank, size):
    """Checkpoints inside of units and around them, of both kinds."""

    class Checkpointed(Layers):
        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = x + self.run(block, x)
            return self.last(x) * self.scale + F.linear(x, self.first.weight.t())

    class Inner(nn.Module):
        def __init__(self, block, again):
            super().__init__()
            self.block, self.again = block, again

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=self.again)

    for again in (False, True):
        single = Layers()
        square(size)(single, lambda t: t).backward()
        around = Checkpointed()
        around.run = lambda block, x, again=again: checkpoint(block, x, use_reentrant=again)
        sharded(around, around.blocks)
        inside = Layers()
        inside.blocks = nn.ModuleList(Inner(block, again) for block in inside.blocks)
        sharded(inside, inside.blocks)
        for model in (around, inside):
            for _ in range(2):
                model.zero_grad()
                square(size)(model, lambda t: part(rank, t)).backward()
            for (_, grad), p in zip(wholes(model).values(), single.parameters(), strict=True):
                assert torch.allclose(grad, p.grad, atol=1e-6)


def uses(rank, size):
    """A unit that is used twice, whole parameters on request, no graph, a forward that fails."""
    model, single = nn.Linear(4, 4), nn.Linear(4, 4)
    formula(model), formula(single)
    weight = model.weight.detach().clone()
    fully_shard(model)
    for m, x in ((model, part(rank, samples(size))), (single, samples(size))):
        m(torch.tanh(m(x))).square().mean().backward()
    same(model, single)
    with pytest.raises(Exception, match="4"):
        model(torch.ones(3, 5))
    assert model.weight.ndim == 1 and model._unit.flats[0].full is None
    with torch.no_grad():
        assert torch.allclose(model(samples(size)), single(samples(size)), atol=1e-6)
        model.weight.mul_(2)
        single.weight.mul_(2)
        assert torch.allclose(model(samples(size)), single(samples(size)), atol=1e-6)
    x = part(rank, samples(size)).requires_grad_()
    torch.autograd.grad(model(x).sum(), x)  # does not come to the parameters
    assert torch.allclose(model(x), single(x), atol=1e-6) and model._unit.flats[0].pieces[0] is model.weight
    handle = model.unshard(async_op=True)
    handle.wait()
    assert torch.equal(model.weight, 2 * weight)
    model.reshard()
    assert model.weight.numel() < 16 and sum(1 for _ in model.parameters()) == 2
    pair = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    formula(pair)
    weight = pair[0].weight.detach().clone()
    fully_shard(pair[0], reshard_after_forward=False)
    fully_shard(pair)(x)
    pair[0](x)
    with torch.no_grad():
        pair[0].weight.mul_(2)  # what is kept whole is out of date
    assert torch.allclose(pair[0](x), F.linear(x, 2 * weight, pair[0]._unit.flats[0].whole()[1]), atol=1e-6)
    model.to(torch.float64)
    assert torch.allclose(model(samples(size).double()), single.double()(samples(size).double()), atol=1e-6)


def changed_in_place(rank, size):
    """What the graph wants may not be changed inside of a unit either; after the error the unit goes on."""
    model = fully_shard(Layers())
    model.blocks[0][1].register_forward_hook(lambda m, given, out: out.add_(1) if m.training else None)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        model(part(rank, samples(size))).sum().backward()
    model.eval()
    single = Layers()
    square(size)(model, lambda t: part(rank, t)).backward()
    square(size)(single, lambda t: t).backward()
    same(model, single)


def mixed_precision(rank, size):
    model, single = Layers(), Layers()
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32)
    seen = []
    model.blocks[0].register_forward_hook(lambda m, given, out: seen.append((given[0].dtype, out.dtype)))
    for block in model.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    fully_shard(model, mp_policy=policy)
    model.blocks[1][0].register_forward_hook(lambda m, given, out: seen.append(m.weight.dtype))
    loss = square(size)(model, lambda t: part(rank, t))
    assert loss.dtype is torch.float32 and seen == [(torch.bfloat16, torch.bfloat16), torch.bfloat16]
    loss.backward()
    square(size)(single, lambda t: t).backward()
    assert all(p.dtype is torch.float32 and p.grad.dtype is torch.float32 for p in model.parameters())
    for name, (_, grad) in wholes(model).items():
        wanted = single.get_parameter(name).grad
        assert (grad - wanted).norm() <= 0.03 * wanted.norm() + 0.01, name


def refused(rank, size):
    model = Layers()
    fully_shard(model.first)
    with pytest.raises(ValueError, match="sharded already"):
        fully_shard(model.first)
    with pytest.raises(NotImplementedError, match="state dict"):
        copy.deepcopy(model)
    tied = Transformer()
    fully_shard(tied.embedding)
    with pytest.raises(ValueError, match="shared with a unit"):
        fully_shard(tied)
    with pytest.raises(NotImplementedError, match="one module at a time"):
        fully_shard([model.last])
    with pytest.raises(ValueError, match="ModuleList has no forward"):
        fully_shard(model.blocks)
    with pytest.raises(ValueError, match="call the module once before"):
        fully_shard(nn.LazyLinear(3))
    group = dist.new_group([0])
    if rank:
        with pytest.raises(ValueError, match="not in the process group"):
            fully_shard(model.last, mesh=group)


def clipping(rank, size):
    for order in (2.0, 1.0, float("inf")):
        model, single = Layers(), Layers()
        sharded(model, model.blocks)
        square(size)(model, lambda t: part(rank, t)).backward()
        square(size)(single, lambda t: t).backward()
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.1, order) for m in (model, single)]
        assert torch.allclose(*norms, atol=1e-5) and norms[1] > 0.1
        same(model, single)


SCENARIOS = [
    layers, transformer, as_replicated, memory, freed, ahead_of_need, accumulation, frozen, computed_again, uses,
    changed_in_place, mixed_precision, refused, clipping,
]  # fmt: skip
