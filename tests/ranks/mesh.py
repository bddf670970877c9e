"""Device meshes and DTensors: where their elements lie, and what can be done with them as with other tensors."""

from __future__ import annotations

import copy
import io
import itertools
import pickle

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw import nn
from corefw.distributed import tensor as tensors
from corefw.distributed.device_mesh import DeviceMesh, init_device_mesh
from corefw.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)

F = nn.functional
R, P = Replicate(), Partial()
S0, S1, S2 = Shard(0), Shard(1), Shard(2)


def wave(*shape, shift=0.0):
    """A tensor without two equal elements, the same on all ranks."""
    return torch.sin(torch.arange(float(torch.Size(shape).numel())) * 1.7 + shift + 0.3).reshape(shape)


def laid(tensor, mesh, placements, rank):
    """A tensor on a mesh, as a leaf; a term of it is what is not a term of the other ranks."""
    wanted = [R if p.is_partial() else p for p in placements]
    made = distribute_tensor(tensor.detach(), mesh, wanted)
    coordinate = mesh.get_coordinate()
    local = made.to_local().clone()
    for dim, p in enumerate(placements):
        if p.is_partial("sum"):
            n = mesh.size(dim)
            local = local * (2.0 if coordinate[dim] == 0 else -1 / (n - 1))  # they sum to the whole
            local = local if n > 1 else local / 2
    return DTensor.from_local(local, mesh, placements, shape=tensor.shape).requires_grad_(tensor.requires_grad)


# -- meshes -----------------------------------------------------------------------------------------------------------
def meshes(rank, size):
    flat = init_device_mesh("cpu", (size,))
    assert flat.mesh.tolist() == list(range(size)) and flat.get_group() is dist.group.WORLD
    assert (flat.size(), flat.shape, flat.ndim, flat.get_local_rank(), flat.get_rank()) == (
        size,
        (size,),
        1,
        rank,
        rank,
    )
    rows = size // 2 if size % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (rows, size // rows), mesh_dim_names=("dp", "tp"))
    columns = size // rows
    assert mesh.get_coordinate() == (rank // columns, rank % columns)
    assert mesh["tp"].mesh.tolist() == [rank // columns * columns + i for i in range(columns)]
    assert mesh["dp"].get_group().ranks == [i * columns + rank % columns for i in range(rows)]
    assert mesh["tp"].get_group() is mesh.get_group("tp") is mesh.get_group(1) is mesh.get_all_groups()[1]
    assert mesh["tp"].get_local_rank() == mesh.get_local_rank("tp") == rank % columns
    assert mesh["dp", "tp"] is mesh and mesh == init_device_mesh("cpu", mesh.shape, mesh_dim_names=("dp", "tp"))
    assert mesh != flat and hash(mesh["tp"]) == hash(mesh["tp"])
    total = torch.tensor(float(rank))
    dist.all_reduce(total, group=mesh.get_group("dp"))
    assert total.item() == sum(mesh["dp"].mesh.tolist())
    joined = mesh._flatten("all")
    assert joined.size() == size and mesh["all"] is joined and joined.mesh_dim_names == ("all",)
    again = DeviceMesh.from_group(mesh.get_all_groups(), "cpu", mesh.mesh, mesh_dim_names=("dp", "tp"))
    assert (
        again == mesh and DeviceMesh.from_group(mesh.get_group("tp"), "cpu").mesh.tolist() == mesh["tp"].mesh.tolist()
    )
    assert repr(mesh) == f"DeviceMesh((dp={rows}, tp={columns}), 'cpu', stride=({columns if rows > 1 else 1}, 1))"
    with pytest.raises(RuntimeError, match="`mesh_dim` needs to be specified"):
        mesh.get_group()
    with pytest.raises(KeyError, match="Invalid mesh_dim_names"):
        mesh["pp"]
    with pytest.raises(RuntimeError, match="should not be bigger"):
        init_device_mesh("cpu", (size + 1,))
    with pytest.raises(ValueError, match="must ascend"):
        DeviceMesh("cpu", list(reversed(range(size))))
    with pytest.raises(ValueError, match="a name for each"):
        DeviceMesh("cpu", list(range(size)), mesh_dim_names=("a", "b"))
    assert pickle.loads(pickle.dumps(mesh)) is mesh and copy.deepcopy(mesh["tp"]) == mesh["tp"]


# -- placements -------------------------------------------------------------------------------------------------------
def redistributions(rank, size):
    """Every pair, of sizes that the ranks do not divide; the gradient of one is one."""
    mesh = init_device_mesh("cpu", (size,))
    whole = wave(5, 7)
    weights = wave(5, 7, shift=1.0)
    for source in (R, Shard(0), Shard(1), P, Partial("avg"), Partial("max")):
        for target in (R, Shard(0), Shard(-1)):
            x = laid(whole, mesh, [source], rank).requires_grad_()
            y = x.redistribute(mesh, [target])
            assert torch.allclose(y.full_tensor(), whole, atol=1e-6), (source, target)
            assert y.shape == whole.shape and y.placements[0].is_shard() is target.is_shard()
            (y * distribute_tensor(weights, mesh, [target])).sum().backward()
            assert x.grad.placements == ((source if not source.is_partial() else R),)
            assert torch.allclose(x.grad.full_tensor(), weights, atol=1e-6), (source, target)
    x = laid(whole, mesh, [Shard(0)], rank)
    assert [x.to_local().shape[0]] == [max(0, min(-(-5 // size), 5 - rank * -(-5 // size)))]
    with pytest.raises(RuntimeError, match="Can not redistribute"):
        x.redistribute(mesh, [P])
    with pytest.raises(ValueError, match="no such dimension"):
        x.redistribute(mesh, [Shard(2)])
    with pytest.raises(ValueError, match="must have the same length"):
        x.redistribute(mesh, [R, R])
    if size == 4:
        square = init_device_mesh("cpu", (2, 2))
        ways = list(itertools.product((R, Shard(0), Shard(1), P), repeat=2))
        for source in ways:
            x = laid(whole, square, source, rank)
            for target in ways:
                if not any(p.is_partial() for p in target):
                    assert torch.allclose(x.redistribute(square, target).full_tensor(), whole, atol=1e-6)


def local_parts(rank, size):
    """Gradients through from_local and to_local, as they are said to lie."""
    mesh = init_device_mesh("cpu", (size,))
    part = wave(2, 3, shift=rank).requires_grad_()
    x = DTensor.from_local(part, mesh, [Shard(0)])
    assert x.shape == (2 * size, 3) and x.stride() == (3, 1) and x.dtype is torch.float32
    (x.full_tensor() * wave(2 * size, 3)).sum().backward()
    assert torch.allclose(part.grad, wave(2 * size, 3)[2 * rank : 2 * rank + 2])
    whole = distribute_tensor(wave(3, 2).requires_grad_(), mesh, [R])
    (whole.to_local(grad_placements=[P]) * (rank + 1.0)).sum().backward()
    assert torch.allclose(whole.grad.full_tensor(), torch.full((3, 2), size * (size + 1) / 2))
    term = torch.ones(2, requires_grad=True)
    summed = DTensor.from_local(term, mesh, [P])
    assert summed.full_tensor().tolist() == [size, size]
    (summed.redistribute(mesh, [R]).to_local() * 3).sum().backward()
    assert term.grad.tolist() == [3, 3]
    same = DTensor.from_local(torch.full((2,), float(rank)), mesh, [R], run_check=True)
    assert same.to_local().tolist() == [0, 0]
    uneven = DTensor.from_local(wave(rank == 0, 2), mesh, [Shard(0)], shape=(1, 2), stride=(2, 1))
    assert torch.equal(uneven.full_tensor(), wave(1, 2))
    with pytest.raises(ValueError, match=r"has shape \[1, 2\], but got \[3, 2\]"):
        DTensor.from_local(torch.ones(3, 2), mesh, [Shard(0)], shape=(size, 2))
    source = distribute_tensor(torch.full((size,), float(rank)), mesh, [Shard(0)], src_data_rank=size - 1)
    assert source.to_local().tolist() == [size - 1]
    own = distribute_tensor(torch.full((size,), float(rank)), mesh, [Shard(0)], src_data_rank=None)
    assert own.to_local().tolist() == [rank]
    with pytest.raises(RuntimeError, match="leaf tensors"):
        distribute_tensor(torch.ones(2, requires_grad=True) * 2, mesh)
    with pytest.raises(ValueError, match="redistribute it"):
        distribute_tensor(source, mesh, [R])
    with mesh:
        assert distribute_tensor(torch.ones(2)).placements == (R,)
    with pytest.raises(RuntimeError, match="No device mesh"):
        distribute_tensor(torch.ones(2))


# -- as of other tensors ---------------------------------------------------------------------------------------------
def changes_in_place(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.zeros(5, 6), mesh, [S0])
    part = x.to_local()
    version = x._version
    x.add_(1).mul_(distribute_tensor(torch.full((5, 6), 3.0), mesh, [R]))
    x[:, 2] = 7.0
    x[:, 3:].sub_(1)
    assert x._version > version and x.full_tensor()[0].tolist() == [3, 3, 7, 2, 2, 2]
    assert part.shape[0] == 0 or part[0].tolist() == [3, 3, 7, 2, 2, 2]
    x.copy_(distribute_tensor(wave(5, 6), mesh, [S1])).relu_()
    assert torch.equal(x.full_tensor(), wave(5, 6).relu()) and x.placements == (S0,)
    turned = distribute_tensor(wave(4, 6), mesh, [R]).t()
    with pytest.raises(RuntimeError, match="the change would be lost"):
        turned.reshape(-1).zero_()
    turned.view(6, 4)[0].zero_()
    assert turned.full_tensor()[0].tolist() == [0] * 4
    x.zero_()
    assert torch.equal(x.full_tensor(), torch.zeros(5, 6))
    with pytest.raises(RuntimeError, match="the change would be lost"):
        x[2].add_(1)
    with pytest.raises(NotImplementedError, match="are not recorded"):
        (x.clone().requires_grad_() * 1)[:, 2].add_(1)
    with pytest.raises(RuntimeError, match="got mixed"):
        x.add_(torch.ones(5, 6))
    with pytest.raises(RuntimeError, match="distribute it first"):
        torch.ones(5, 6).copy_(x)
    leaf = distribute_tensor(wave(4, 3).requires_grad_(), mesh, [S0])
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.add_(1)
    y = leaf * 1
    y.mul_(leaf)
    (y.sum() * 2).backward()
    assert torch.allclose(leaf.grad.full_tensor(), 4 * wave(4, 3), atol=1e-6)
    squares = leaf * leaf
    with torch.no_grad():
        leaf.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.sum().backward()


def gradients(rank, size):
    """Derivatives of derivatives, hooks, what is no leaf, sums of gradients."""
    mesh = init_device_mesh("cpu", (size,))
    plain, x = wave(4, 6).requires_grad_(), distribute_tensor(wave(4, 6).requires_grad_(), mesh, [S1])
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.placements))
    for t in (plain, x):
        y = (t**3).sum(1)
        y.retain_grad()
        (first,) = torch.autograd.grad((y * y).sum(), t, create_graph=True)
        (first * first).sum().backward()
        (t * 2).sum().backward()
    assert torch.allclose(x.grad.full_tensor(), plain.grad, rtol=1e-4, atol=1e-4)
    assert x.grad.placements == (S1,) and seen == [(S1,)] * 3
    with torch.no_grad():
        assert not (x * 2).requires_grad
    assert not x.detach().requires_grad and isinstance(x.detach(), DTensor) and isinstance(x.data, DTensor)
    with pytest.raises(RuntimeError, match="expected a DTensor, such as the gradient of one"):
        (x * 2).backward(torch.ones(4, 6))
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward()
    total = (x.detach().sum() * 2).item()  # for which all ranks ask
    assert total == pytest.approx(2 * wave(4, 6).sum().item(), abs=1e-5) and float(x.sum()) == pytest.approx(
        total / 2, abs=1e-5
    )
    for keepdim, function in itertools.product((False, True), (torch.amax, torch.amin)):
        found = function(x.detach(), 1, keepdim)
        assert found.placements[0].is_partial() or size == 4
        assert torch.equal(found.full_tensor(), function(wave(4, 6), 1, keepdim))
    assert x.detach().numpy().shape == (4, 6) and torch.equal(torch.tensor(x.tolist()), wave(4, 6))


def making(rank, size):
    """Functions that make tensors, in the image of one or anew."""
    mesh = init_device_mesh("cpu", (size,))
    for made, value in (
        (tensors.zeros(5, 3, device_mesh=mesh, placements=[S0]), 0),
        (tensors.ones((5, 3), device_mesh=mesh, placements=[S1], dtype=torch.float64), 1),
        (tensors.full((5, 3), 2.5, device_mesh=mesh, requires_grad=True), 2.5),
    ):
        assert made.shape == (5, 3) and torch.equal(made.full_tensor().float(), torch.full((5, 3), float(value)))
    assert tensors.empty(5, device_mesh=mesh, placements=[S0], dtype=torch.int64).dtype is torch.int64
    x = distribute_tensor(wave(5, 6), mesh, [S1])
    for made in (
        torch.zeros_like(x),
        torch.empty_like(x),
        x.new_zeros(5, 6),
        x.clone(),
        torch.ones_like(x, dtype=torch.int64),
    ):
        assert isinstance(made, DTensor) and made.placements == (S1,) and made.shape == (5, 6)
    assert x.new_full((3,), 2.0).full_tensor().tolist() == [2, 2, 2]


def chance(rank, size):
    """Random numbers are those of one process; ranks that are threads share a generator, so they are not asked."""
    if dist.get_backend() != "mpi":
        return
    mesh = init_device_mesh("cpu", (size,))
    for name in ("rand", "randn"):
        torch.manual_seed(3)
        wanted = getattr(torch, name)(5, 6)
        torch.manual_seed(3)
        assert torch.equal(getattr(tensors, name)(5, 6, device_mesh=mesh, placements=[S0]).full_tensor(), wanted)
    functions = (
        lambda t: F.dropout(t, 0.4), lambda t: t.clone().uniform_(-1, 1), lambda t: nn.init.xavier_normal_(t.clone()),
        torch.rand_like, torch.randn_like,
    )  # fmt: skip
    for function, placement in itertools.product(functions, (S0, S1, R)):
        torch.manual_seed(3)
        wanted = function(wave(5, 6))
        torch.manual_seed(3)
        found = function(distribute_tensor(wave(5, 6), mesh, [placement]))
        assert torch.equal(found.full_tensor(), wanted) and found.placements == (placement,)


def copies(rank, size):
    """Copies, pickles, saved files and state dicts."""
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(wave(5, 6).requires_grad_(), mesh, [S0])
    p = nn.Parameter(x.detach())
    assert isinstance(p, nn.Parameter) and isinstance(p, DTensor) and p.requires_grad and p.is_leaf
    assert repr(p).startswith("Parameter containing:\nDTensor(local_tensor=tensor(")
    held = io.BytesIO()
    torch.save({"x": x, "p": p}, held)
    held.seek(0)
    read = torch.load(held, weights_only=False)
    for made in (
        copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), copy.deepcopy(p), pickle.loads(pickle.dumps(p)),
        read["x"], read["p"],
    ):  # fmt: skip
        assert type(made) in (DTensor, type(p)) and made.device_mesh == mesh and made.placements == (S0,)
        assert made.requires_grad and made.is_leaf and torch.equal(made.full_tensor(), wave(5, 6))
    assert copy.deepcopy(x).to_local().data_ptr() != x.to_local().data_ptr()

    def cut(name, module, mesh):
        for key, value in module.named_parameters(recurse=False):
            module.register_parameter(key, nn.Parameter(distribute_tensor(value, mesh, [S0])))

    model, other = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)), nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))
    with torch.no_grad():
        for one in (model, other):
            for i, value in enumerate(one.parameters()):
                value.copy_(wave(*value.shape, shift=i))
    distribute_module(model, mesh, cut, lambda m, given, mesh: (distribute_tensor(given[0], mesh, [R]),),
                      lambda m, found, mesh: found.full_tensor())  # fmt: skip
    assert torch.allclose(model(wave(3, 6)), other(wave(3, 6)), atol=1e-5)
    assert isinstance(model[1].running_mean, DTensor) and model[0].weight.placements == (S0,)
    state = model.state_dict()
    assert all(isinstance(value, DTensor) for value in state.values())
    again = copy.deepcopy(model)
    with torch.no_grad():
        for value in again.parameters():
            value.zero_()
    again.load_state_dict(state)
    assert torch.allclose(again(wave(3, 6)), other(wave(3, 6)), atol=1e-5)
    assert again.double()[0].weight.dtype is torch.float64 and again[0].weight.placements == (S0,)


def refusals(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(wave(5, 6), mesh, [S0])
    plain = torch.ones(5, 6)
    for function in (
        lambda: x + plain,
        lambda: plain @ x.t(),
        lambda: torch.cat([plain, x]),
        lambda: F.linear(x, plain),
        lambda: plain.masked_fill(x > 0, 0.0),
        lambda: F.embedding(x.long(), plain),
        lambda: F.cross_entropy(x, torch.zeros(5, dtype=torch.int64)),
    ):
        with pytest.raises(RuntimeError, match="got mixed"):
            function()
    assert (x + torch.tensor(1.0)).placements == (S0,)  # a plain number is the same everywhere
    other = init_device_mesh("cpu", (1, size))
    with pytest.raises(NotImplementedError, match="different meshes"):
        x + distribute_tensor(plain, other)
    with pytest.raises(ValueError, match='expected "sum"'):
        Partial("mean")
    with pytest.raises(AttributeError, match="cannot be changed"):
        S0.dim = 1
    with pytest.raises(RuntimeError, match="shape"):
        x + distribute_tensor(torch.ones(4, 6), mesh, [S0])
    with pytest.raises(NotImplementedError, match="to_local"):
        x.array.strides
    assert (repr(S0), str(S1), repr(R), str(R), repr(P), str(Partial("avg"))) == (
        "Shard(dim=0)", "S(1)", "Replicate()", "R", "Partial(sum)", "P(avg)",
    )  # fmt: skip
    assert S0 == Shard(0) != S1 and len({S0, Shard(0), R, Replicate(), P, Partial("sum")}) == 3
    assert f"{x.sum():.1f}" == f"{x.full_tensor().sum():.1f}"


SCENARIOS = [
    meshes, redistributions, local_parts, changes_in_place, gradients, making, chance, copies, refusals,
]  # fmt: skip
