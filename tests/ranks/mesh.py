"""Device meshes and DTensors: where their elements lie, and ops on them, against one process with all elements."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
from dataclasses import dataclass, field
from typing import Any

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


# -- ops --------------------------------------------------------------------------------------------------------------
@dataclass
class Case:
    """A function of tensors, that is done on meshes with all ways to cut those of `shapes`; `kept` are results without
    a redistribution, {placements of the arguments: that of the result}."""

    function: Any
    shapes: tuple
    kept: dict = field(default_factory=dict)
    partial: bool = True
    positive: bool = False


def _row(name, *shapes, **options):
    return Case(getattr(torch, name, None) or getattr(F, name), shapes, **options)


S0, S1, S2 = Shard(0), Shard(1), Shard(2)
CASES = {
    "add": _row("add", (4, 6), (4, 6), kept={(S0, R): S0, (P, P): P, (R, S1): S1, (P, R): R}),
    "add_broadcast": _row("add", (4, 6), (6,), kept={(S0, R): S0, (S1, S0): S1, (R, S0): S1}),
    "add_column": _row("add", (4, 6), (4, 1), kept={(S0, S0): S0, (S1, R): S1}),
    "sub_scaled": Case(lambda a, b: torch.sub(a, b, alpha=2), ((4, 6), (4, 6)), {(P, P): P}),
    "mul": _row("mul", (5, 6), (5, 6), kept={(P, R): R, (S0, S0): S0}),
    "numbers": Case(lambda a: 2 * a / 3 + 1, ((5, 6),), {(S0,): S0, (P,): R}),
    "scaled": Case(lambda a: -a * 2 / 3, ((5, 6),), {(S1,): S1, (P,): P}),
    "div": _row("div", (5, 6), (5, 6), positive=True, kept={(P, R): R, (S0, S0): S0}),
    "exp": _row("exp", (5, 6), kept={(S1,): S1, (P,): R}),
    "relu": _row("relu", (5, 6), kept={(S1,): S1}),
    "gelu": _row("gelu", (5, 6), kept={(S0,): S0}),
    "silu": _row("silu", (5, 6), kept={(S0,): S0}),
    "where": Case(lambda a, b: torch.where(a > 0, a, b), ((5, 6), (5, 6)), {(S0, S0): S0}),
    "clamp": Case(lambda a: a.clamp(-0.5, 0.5), ((5, 6),), {(S0,): S0}),
    "masked_fill": Case(lambda a: a.masked_fill(a > 0.5, 0.0), ((5, 6),), {(S0,): S0}),
    "matmul": _row("matmul", (5, 6), (6, 7), kept={(S0, R): S0, (R, S1): S1, (S1, S0): P, (P, R): R, (S1, R): P}),
    "vectors": _row("matmul", (6,), (6,), kept={(S0, S0): P}),
    "matrix_vector": _row("matmul", (5, 6), (6,), kept={(S0, R): S0, (S1, S0): P}),
    "batches": _row("matmul", (4, 2, 5, 6), (2, 6, 3), kept={(S1, S0): S1, (S0, R): S0, (S2, R): S2}),
    "bmm": _row("bmm", (4, 5, 6), (4, 6, 3), kept={(S0, S0): S0, (S2, S1): P}),
    "addmm": _row("addmm", (3,), (5, 6), (6, 3), kept={(R, S0, R): S0, (S0, R, S1): S1, (R, S1, S0): P}),
    "linear": _row("linear", (2, 5, 6), (7, 6), (7,), kept={(S0, R, R): S0, (R, S0, S0): S2, (S2, S1, R): P}),
    "sum": Case(lambda a: a.sum(), ((5, 6),), {(S0,): P, (P,): P}),
    "sum_dims": Case(lambda a: a.sum((0, 2)), ((4, 5, 6),), {(S0,): P, (S1,): S0}),
    "sum_keepdim": Case(lambda a: a.sum(1, keepdim=True), ((4, 5, 6),), {(S1,): P, (S2,): S2}),
    "mean": Case(lambda a: a.mean(-1), ((5, 6),), {(S1,): P, (S0,): S0, (P,): P}),
    "var": Case(lambda a: a.var(-1), ((5, 6),)),
    "norm": Case(lambda a: a.norm(), ((5, 6),), {(S0,): R}),
    "norm_dim": Case(lambda a: torch.linalg.vector_norm(a, 3, 1), ((5, 6),), {(S0,): S0, (S1,): R}),
    "amax": Case(lambda a: a.amax(1), ((5, 6),), {(S0,): S0, (S1,): R}),
    "max": Case(lambda a: a.max(1)[0], ((5, 6),), {(S0,): S0}),
    "softmax": Case(lambda a: a.softmax(-1), ((5, 6),), {(S0,): S0, (S1,): R}),
    "log_softmax": Case(lambda a: a.log_softmax(0), ((5, 6),), {(S1,): S1}),
    "layer_norm": Case(
        lambda x, w, b: F.layer_norm(x, (6,), w, b), ((4, 5, 6), (6,), (6,)), {(S1, R, R): S1, (S2, R, R): R}
    ),
    "rms_norm": Case(lambda x, w: F.rms_norm(x, (6,), w), ((4, 5, 6), (6,)), {(S0, R): S0}),
    "view": Case(lambda a: a.view(4, 12, 2), ((4, 24),), {(S0,): S0, (S1,): S1}),
    "flatten": Case(lambda a: a.flatten(1), ((5, 12, 3),), {(S0,): S0, (S1,): S1, (S2,): R}),
    "unflatten": Case(lambda a: a.unflatten(0, (12, 2)), ((24, 5),), {(S0,): S0, (S1,): S2}),
    "reshape": Case(lambda a: a.reshape(-1), ((12, 3),), {(S0,): S0}),
    "turned": Case(lambda a: a.transpose(0, 1).reshape(3, -1), ((5, 6),)),
    "transpose": Case(lambda a: a.transpose(0, 1), ((5, 6),), {(S0,): S1, (P,): P}),
    "permute": Case(lambda a: a.permute(2, 0, 1), ((5, 6, 4),), {(S0,): S1, (S2,): S0}),
    "squeeze": Case(lambda a: a.squeeze(1).unsqueeze(0), ((5, 1, 4),), {(S0,): S1, (S2,): S2}),
    "expand": Case(lambda a: a.expand(3, 4, 5), ((4, 1),), {(S0,): S1}),
    "slice": Case(lambda a: a[:, 1:3, None], ((5, 6),), {(S0,): S0, (S1,): R}),
    "integer": Case(lambda a: a[2], ((5, 6),), {(S1,): S0}),
    "select": Case(lambda a: a.select(1, -1), ((5, 6),), {(S0,): S0}),
    "chunk": Case(lambda a: torch.cat([part * i for i, part in enumerate(a.chunk(3, -1))], 1), ((5, 6),), {(S0,): S0}),
    "split": Case(lambda a: sum(part.sum(1) for part in a.split([2, 4], 1)), ((5, 6),), {(S0,): S0}),
    "stack": Case(lambda a, b: torch.stack([a, b], 1), ((5, 6), (5, 6)), {(S0, S0): S0, (S1, S1): S2}),
    "tril": Case(lambda a: a.tril(), ((4, 5, 5),), {(S0,): S0}),
    "flip": Case(lambda a: a.flip(1), ((5, 6),), {(S0,): S0}),
    "roll": Case(lambda a: a.roll(1, 1) - a.roll(2), ((5, 6),), {}),
    "cumsum": Case(lambda a: a.cumsum(1), ((5, 6),), {(S0,): S0}),
    "attention": Case(
        F.scaled_dot_product_attention, ((2, 4, 5, 6),) * 3, {(S0, S0, S0): S0, (S1, S1, S1): S1, (S2, R, R): S2}
    ),
    "causal": Case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ((4, 5, 6),) * 3,
        {(S0, S0, S0): S0, (S1, S1, S1): R},
    ),
    "to": Case(lambda a: a.double() * 2, ((5, 6),), {(S0,): S0, (P,): P}),
    "sort": Case(lambda a: a.sort(0)[0], ((5, 6),), {(S0,): R}),
    "einsum": Case(lambda a, b: torch.einsum("bi,ij->bj", a, b), ((5, 6), (6, 3))),
    "topk": Case(lambda a: a.topk(2)[0], ((5, 6),), {(S0,): S0}),
    "conv": Case(F.conv2d, ((5, 3, 5, 5), (12, 3, 3, 3), (12,)), {(S0, R, R): S0, (R, S0, S0): S1}),
    "groups": Case(lambda x, w: F.conv1d(x, w, groups=2), ((4, 6, 5), (6, 3, 3)), {(S0, R): S0}),
    "pools": Case(lambda x: F.avg_pool2d(F.max_pool2d(x, 2), 2), ((5, 12, 4, 4),), {(S0,): S0, (S1,): S1}),
    "mse": _row("mse_loss", (5, 6), (5, 6)),
}


def ops_on_one_dimension(rank, size):
    """Values and gradients of each case, whatever way its arguments lie; what is said to need no redistribution lies as
    it is said."""
    mesh = init_device_mesh("cpu", (size,))
    for name, case in CASES.items():
        plain = [wave(*s, shift=i).add(2.0 * case.positive).requires_grad_() for i, s in enumerate(case.shapes)]
        wanted = case.function(*plain)
        slopes = wave(*wanted.shape, shift=5.0).to(wanted.dtype)
        gradients = torch.autograd.grad((wanted * slopes).sum(), plain, create_graph=True)
        second = squares(plain, gradients)
        every = list(itertools.product(*[[R, P, *map(Shard, range(len(s)))] for s in case.shapes]))
        for ways in dict.fromkeys([*case.kept, *every[:: max(1, len(every) // 3)]]):
            given = [laid(p, mesh, [way], rank) for p, way in zip(plain, ways)]
            found = case.function(*given)
            told = f"{name} {ways}"
            assert found.shape == wanted.shape and found.dtype is wanted.dtype, told
            if ways in case.kept:
                assert found.placements == (case.kept[ways],), (told, found.placements)
            assert torch.allclose(found.full_tensor(), wanted, atol=1e-5), told
            (found * distribute_tensor(slopes, mesh, [R])).sum().backward(create_graph=size == 2 and ways in case.kept)
            for own, gradient, way in zip(given, gradients, ways):
                assert own.grad.placements == ((R if way.is_partial() else way),), told
                assert torch.allclose(own.grad.full_tensor(), gradient, atol=1e-5), told
            if size == 2 and ways in case.kept:
                for own, wished in zip(squares(given, [own.grad for own in given]), second, strict=True):
                    assert torch.allclose(own.full_tensor(), wished, rtol=1e-4, atol=1e-4), told


def squares(tensors, gradients):
    """The gradients of the sum of the squares of gradients, as far as they have any."""
    total = sum(gradient.square().sum() for gradient in gradients)
    if not total.requires_grad:
        return []
    return [g for g in torch.autograd.grad(total, tensors, allow_unused=True) if g is not None]


def ops_on_two_dimensions(rank, size):
    """Some of the cases on a mesh of two dimensions, of which both may cut the same one of a tensor."""
    if size != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2))
    ways = list(itertools.product((R, S0, S1, P), repeat=2))
    for number, name in enumerate(
        ["add", "mul", "matmul", "linear", "layer_norm", "softmax", "view", "sum_dims", "norm"]
    ):
        case = CASES[name]
        plain = [wave(*s, shift=i).requires_grad_() for i, s in enumerate(case.shapes)]
        wanted = case.function(*plain)
        slopes = wave(*wanted.shape, shift=5.0)
        gradients = torch.autograd.grad((wanted * slopes).sum(), plain)
        for turn in range(0, len(ways), 3):
            chosen = [ways[(turn + number + 5 * i) % len(ways)] for i in range(len(plain))]
            chosen = [tuple(R if p.is_shard() and p.dim >= t.ndim else p for p in w) for w, t in zip(chosen, plain)]
            given = [laid(p, mesh, way, rank) for p, way in zip(plain, chosen)]
            found = case.function(*given)
            assert torch.allclose(found.full_tensor(), wanted, atol=1e-5), (name, chosen)
            (found * distribute_tensor(slopes, mesh)).sum().backward()
            for own, gradient in zip(given, gradients):
                assert torch.allclose(own.grad.full_tensor(), gradient, atol=1e-5), (name, chosen)


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
    meshes, redistributions, local_parts, ops_on_one_dimension, ops_on_two_dimensions, changes_in_place, gradients,
    making, chance, copies, refusals,
]  # fmt: skip
