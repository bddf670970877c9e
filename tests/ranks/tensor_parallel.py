"""parallelize_module: models in parts, against one process with the whole model."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import corefw as torch
from corefw import nn
from corefw.distributed import checkpoint
from corefw.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from corefw.distributed.device_mesh import init_device_mesh
from corefw.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from corefw.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from corefw.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from tests.ranks.checkpoints import in_a_folder
from tests.ranks.sharded import formula

F = nn.functional
HEADS, WIDTH, WORDS, LENGTH = 12, 24, 24, 12


class Attention(nn.Module):
    """Causal attention, whose heads are as many as its projections have."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Perceptron(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """A block of a GPT."""

    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2, self.mlp = nn.RMSNorm(WIDTH), Perceptron()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Language(nn.Module):
    """A small GPT."""

    def __init__(self):
        super().__init__()
        self.words, self.block, self.norm = nn.Embedding(WORDS, WIDTH), Block(), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        formula(self)

    def forward(self, tokens):
        return self.head(self.norm(self.block(self.words(tokens))))


TENSOR = {
    "words": RowwiseParallel(input_layouts=Replicate()),
    "block.attention.[qkv]": ColwiseParallel(),
    "block.attention.out": RowwiseParallel(),
    "block.mlp.up": ColwiseParallel(),
    "block.mlp.down": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=Replicate()),
}
HEADS_IN_PARTS = {**TENSOR, "block.attention.[qkv]": ColwiseParallel(use_local_output=False)}
SEQUENCE = {
    "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
    "block.norm?": SequenceParallel(),
    "block.attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
    "block.attention.[qkv]": ColwiseParallel(),
    "block.attention.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    "block.mlp": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
    "block.mlp.up": ColwiseParallel(),
    "block.mlp.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
}


def tokens():
    return (torch.arange(2 * LENGTH) * 7 % WORDS).reshape(2, LENGTH), (torch.arange(2 * LENGTH) * 5 % WORDS).reshape(-1)


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def same(model, single, tolerance=1e-5):
    for (name, p), q in zip(model.named_parameters(), single.parameters(), strict=True):
        assert torch.allclose(whole(p), q, atol=tolerance), name
        assert torch.allclose(whole(p.grad), q.grad, atol=tolerance), name
        if isinstance(p, DTensor):
            assert p.grad.placements == p.placements, name


def trained(model, single, losses, optimizer, count=2):
    """Steps of both, which stay the same; the parameters of the model may be DTensors and plain tensors."""
    both = [optimizer(model.parameters()), optimizer(single.parameters())]
    for _ in range(count):
        found = []
        for m, opt in zip((model, single), both):
            opt.zero_grad()
            found.append(losses(m))
            found[-1].backward()
        assert torch.allclose(whole(found[0]), found[1], atol=1e-5)
        same(model, single)
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 1.0) for m in (model, single)]
        assert torch.allclose(whole(norms[0]), norms[1], atol=1e-5)
        for opt in both:
            opt.step()
        same(model, single)


def perceptrons(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = torch.sin(torch.arange(3.0 * WIDTH)).reshape(3, WIDTH)
    optimizers = (
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    )
    for optimizer in optimizers:
        model, single = Perceptron(), Perceptron()
        formula(model), formula(single)
        parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
        assert model.up.weight.to_local().shape == (2 * WIDTH // size, WIDTH)
        assert model.down.weight.to_local().shape == (WIDTH, 2 * WIDTH // size)
        assert isinstance(model.up.weight, nn.Parameter) and model.down.bias.placements == (Replicate(),)
        trained(model, single, lambda m: (m(x) ** 2).mean(), optimizer)
    # What its layers have no rule for keeps its whole on each process.
    model, single = Perceptron(), Perceptron()
    formula(model), formula(single)
    parallelize_module(model, mesh, {"up": ColwiseParallel(output_layouts=Replicate())})
    trained(model, single, lambda m: (m(x) ** 2).mean(), optimizers[0])


def languages(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    given, wanted = tokens()
    for plan in (TENSOR, HEADS_IN_PARTS, SEQUENCE):
        model, single = parallelize_module(Language(), mesh, plan), Language()

        def losses(m, plan=plan):
            logits = m(given).flatten(0, 1)
            with loss_parallel():
                return F.cross_entropy(logits, wanted)

        # The biases of keys have the gradient zero but for rounding, which a small eps would make steps of.
        trained(model, single, losses, lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-4))


def what_is_sent(rank, size):
    """Gathered is the input of each layer in parts, scattered the sum of its outputs; of logits three numbers for each
    word are sent, and in the backward nothing."""
    mesh = init_device_mesh("cpu", (size,))
    given, wanted = tokens()
    model, group, counts = parallelize_module(Language(), mesh, SEQUENCE), mesh.get_group(), Counter()
    start = group.start
    group.start = lambda name, *rest: (counts.update([name]), start(name, *rest))[1]
    logits = model(given).flatten(0, 1)
    assert counts == {"all_gather": 3, "reduce_scatter": 3}
    counts.clear()
    with loss_parallel():
        loss = F.cross_entropy(logits, wanted)
    assert counts == {"all_reduce": 3}
    counts.clear()
    torch.autograd.grad(loss, logits, retain_graph=True)
    assert counts == {}
    loss.backward()
    # Parameters of normalisations, which see some places of the sequence, have their gradients in terms.
    assert counts == {"all_gather": 3, "reduce_scatter": 3, "all_reduce": 5}
    del group.start


def losses_of_classes(rank, size):
    """cross_entropy of logits that are cut along the classes, or along the samples."""
    mesh = init_device_mesh("cpu", (size,))
    logits = torch.sin(torch.arange(5.0 * 13) * 3).reshape(5, 13) * 4
    target = torch.tensor([0, 12, 5, -100, 7])
    for placement in (Shard(1), Shard(0), Replicate()):
        for reduction in ("mean", "sum", "none"):
            for options in ({}, {"weight": torch.arange(13.0) + 1}):
                plain = logits.clone().requires_grad_()
                loss = F.cross_entropy(plain, target, reduction=reduction, **options)
                x = distribute_tensor(logits.clone().requires_grad_(), mesh, [placement])
                there = {name: distribute_tensor(value, mesh, [Replicate()]) for name, value in options.items()}
                with loss_parallel():
                    goal = distribute_tensor(target, mesh, [Replicate()])
                    found = F.cross_entropy(x, goal, reduction=reduction, **there)
                (found * 2).sum().backward()
                (loss * 2).sum().backward()
                assert torch.allclose(whole(found), loss, atol=1e-5), (placement, reduction)
                assert torch.allclose(x.grad.full_tensor(), plain.grad, atol=1e-6), (placement, reduction)


def embeddings(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    given = tokens()[0]
    for style in (ColwiseParallel(), RowwiseParallel(input_layouts=Replicate())):
        for padding in (None, 3):
            model, single = (nn.Sequential(nn.Embedding(10, 12, padding_idx=padding)) for _ in "ab")
            formula(model), formula(single)
            parallelize_module(model, mesh, {"0": style})
            found, wanted = model(given % 10), single(given % 10)
            if isinstance(style, ColwiseParallel):
                part = 12 // size
                wanted_part = wanted[..., rank * part : rank * part + part]
                assert torch.equal(found, wanted_part)
                (found**2).sum().backward()
            else:
                assert torch.equal(found, wanted)
                (found**2).sum().backward()
            (wanted**2).sum().backward()
            same(model, single)


class Two(nn.Module):
    """Takes and gives two tensors."""

    def forward(self, a, b, *, c=None):
        kinds = [isinstance(t, DTensor) for t in (a, b, c)]
        return a * 2, b + (0 if c is None else c), kinds


def inputs_and_outputs(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    part = torch.full((2, size), float(rank))
    own = DTensor.from_local(part, mesh, [Shard(0)])
    module = parallelize_module(
        Two(), mesh,
        PrepareModuleInput(
            input_layouts=(Shard(0), None), desired_input_layouts=(Replicate(), None),
            input_kwarg_layouts={"c": Shard(0)}, desired_input_kwarg_layouts={"c": Shard(1)},
        ),
    )  # fmt: skip
    a, b, kinds = module(part, own, c=part)
    assert kinds == [True, True, True] and a.placements == (Replicate(),) and a.shape == (2 * size, size)
    outer = parallelize_module(
        Two(), mesh,
        PrepareModuleInputOutput(
            input_layouts=(Shard(0), Shard(0)), desired_input_layouts=(Replicate(), Shard(1)), use_local_input=True,
            output_layouts=(Replicate(), Shard(1), None), desired_output_layouts=(Shard(0), Replicate(), None),
        ),
    )  # fmt: skip
    a, b, kinds = outer(part, part)
    assert kinds == [False, False, False] and a.shape == (2, size) and b.shape == (2 * size, size)
    assert torch.equal(a, part * 2) and torch.equal(b, own.full_tensor())
    last = parallelize_module(
        nn.Linear(size, size), mesh, PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
    )
    assert last(part).shape == (2 * size, size)
    with pytest.raises(ValueError, match="same length, got 1 and 2"):
        outer(part)
    with pytest.raises(NotImplementedError, match=r"nn\.Linear and nn\.Embedding, but got Two"):
        parallelize_module(Two(), mesh, ColwiseParallel())
    with pytest.raises(AssertionError, match="should not be None"):
        PrepareModuleInput(input_layouts=Shard(0))
    with pytest.warns(UserWarning, match="could not be resolved"):
        parallelize_module(nn.Sequential(Two()), mesh, {"1": ColwiseParallel()})
    with pytest.raises(TypeError, match="expected a ParallelStyle"):
        parallelize_module(Two(), mesh, [ColwiseParallel()])
    with pytest.raises(ValueError, match="mesh of one dimension"):
        parallelize_module(Two(), init_device_mesh("cpu", (1, size)), ColwiseParallel())


# -- together with fully_shard ----------------------------------------------------------------------------------------
def two_dimensions(size):
    return init_device_mesh("cpu", (2, size // 2) if size % 2 == 0 else (size, 1), mesh_dim_names=("dp", "tp"))


def part_of_batch(mesh, tensor):
    """The samples of this process's place along "dp"."""
    return tensor.chunk(mesh["dp"].size())[mesh.get_local_rank("dp")]


def whole_state(model):
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))


def same_states(model, single):
    for (name, value), wanted in zip(whole_state(model).items(), single.state_dict().values(), strict=True):
        assert torch.allclose(value, wanted, atol=1e-5), name


def in_rows(count):
    return torch.sin(torch.arange(float(count * WIDTH))).reshape(count, WIDTH)


def two_dimensional(rank, size):
    """Parameters in parts over "tp", whose parts are cut over "dp"."""
    mesh = two_dimensions(size)
    x = in_rows(12)
    model, single = nn.Sequential(Perceptron(), Perceptron()), nn.Sequential(Perceptron(), Perceptron())
    formula(model), formula(single)
    parallelize_module(model, mesh["tp"], {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()})
    for layer in model:
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    count = sum(p.numel() for p in model.parameters())
    assert count <= sum(p.numel() for p in single.parameters()) / size + 6 * WIDTH
    both = [torch.optim.Adam(m.parameters(), lr=0.01, eps=1e-4) for m in (model, single)]
    for _ in range(3):
        for m, opt, given in zip((model, single), both, (part_of_batch(mesh, x), x)):
            opt.zero_grad()
            (m(given) ** 2).mean().backward()
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.1) for m in (model, single)]
        assert torch.allclose(norms[0], norms[1], rtol=1e-4)
        for opt in both:
            opt.step()
        same_states(model, single)
    model[0].unshard()
    if mesh["tp"].size() > 1:
        assert model[0].up.weight.placements == (Shard(0),) and model[0].up.weight.shape == single[0].up.weight.shape
    model[0].reshard()
    states = [whole_state(model), get_optimizer_state_dict(model, both[0], options=StateDictOptions(True))]
    fresh = nn.Sequential(Perceptron(), Perceptron())
    parallelize_module(fresh, mesh["tp"], {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()})
    fully_shard(fresh, mesh=mesh["dp"])
    again = torch.optim.Adam(fresh.parameters(), lr=1.0)
    options = StateDictOptions(full_state_dict=True)
    set_model_state_dict(fresh, states[0], options=options)
    set_optimizer_state_dict(fresh, again, states[1], options=options)
    for m, opt, given in ((fresh, again, part_of_batch(mesh, x)), (single, both[1], x)):
        opt.zero_grad()
        (m(given) ** 2).mean().backward()
        opt.step()
    same_states(fresh, single)


def copies_of_parts(rank, size):
    """A mesh whose first dimension has copies of the parts along the second one."""
    mesh = two_dimensions(size)
    x = in_rows(12)
    own = x.chunk(size)[rank]
    makers = (
        lambda m: fully_shard(m, mesh=mesh),
        lambda m: FullyShardedDataParallel(m, device_mesh=mesh, sharding_strategy=ShardingStrategy.HYBRID_SHARD),
        lambda m: fully_shard(m, mesh=init_device_mesh("cpu", (size,))),
    )
    for make in makers:
        model, single = Perceptron(), Perceptron()
        formula(model), formula(single)
        model = make(model)
        both = [torch.optim.Adam(m.parameters(), lr=0.01, eps=1e-4) for m in (model, single)]
        for _ in range(2):
            for m, opt, given in zip((model, single), both, (own, x)):
                opt.zero_grad()
                (m(given) ** 2).mean().backward()
            norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.1) for m in (model, single)]
            assert torch.allclose(norms[0], norms[1], rtol=1e-4)
            for opt in both:
                opt.step()
            same_states(model, single)
    with pytest.raises(ValueError, match="one or two dimensions"):
        fully_shard(Perceptron(), mesh=init_device_mesh("cpu", (1, 1, size)))
    with pytest.raises(ValueError, match="goes with a device_mesh of two"):
        FullyShardedDataParallel(Perceptron(), sharding_strategy=ShardingStrategy.HYBRID_SHARD)


@in_a_folder
def checkpoints_of_parts(rank, size, place):
    """What models in parts have written is read by ones in other parts, and by plain ones."""
    mesh, flat = two_dimensions(size), init_device_mesh("cpu", (size,))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}

    def both():
        return fully_shard(parallelize_module(Perceptron(), mesh["tp"], plan), mesh=mesh["dp"])

    single = Perceptron()
    formula(single)
    makers = {
        "tensor": lambda: parallelize_module(Perceptron(), flat, plan),
        "turned": lambda: parallelize_module(Perceptron(), flat, {"up": RowwiseParallel(), "down": ColwiseParallel()}),
        "both": both,
        "copies": lambda: fully_shard(Perceptron(), mesh=mesh),
        "plain": Perceptron,
    }
    for written, make in makers.items():
        model = make()
        set_model_state_dict(model, single.state_dict(), options=StateDictOptions(full_state_dict=True))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        state = {"model": get_model_state_dict(model), "optim": get_optimizer_state_dict(model, optimizer)}
        checkpoint.save(state, checkpoint_id=place / written)
        parts = json.loads((place / written / ".metadata").read_text())["tensors"]["model.up.weight"]["parts"]
        assert sum(stop - start for _, start, stop, *_ in parts) == 2 * WIDTH * WIDTH  # each element once
        for read, remake in makers.items():
            fresh = remake()
            found = {"model": get_model_state_dict(fresh)}
            checkpoint.load(found, checkpoint_id=place / written)
            set_model_state_dict(fresh, found["model"])
            for name, value in whole_state(fresh).items():
                assert torch.equal(value, single.state_dict()[name]), (written, read, name)


SCENARIOS = [
    perceptrons, languages, what_is_sent, losses_of_classes, embeddings, inputs_and_outputs, two_dimensional,
    copies_of_parts, checkpoints_of_parts,
]  # fmt: skip
