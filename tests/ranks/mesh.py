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
    assert (flat.size(), flat.shape, flat.ndim, flat.get_local_rank(), flat.get_rank()) == (size, (size,), 1, rank, rank)
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
    assert again == mesh and DeviceMesh.from_group(mesh.get_group("tp"), "cpu").mesh.tolist() == mesh["tp"].mesh.tolist()
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
    "mul": _row("mul", (5, 6), (5, 6), kept={(P, R): P, (R, P): P, (S0, S0): S0}),
    "numbers": Case(lambda a: 2 * a / 3 + 1, ((5, 6),), {(S0,): S0, (P,): R}),
    "scaled": Case(lambda a: -a * 2 / 3, ((5, 6),), {(S1,): S1, (P,): P}),
    "div": _row("div", (5, 6), (5, 6), positive=True, kept={(P, R): P, (R, P): R}),
    "exp": _row("exp", (5, 6), kept={(S1,): S1, (P,): R}),
    "relu": _row("relu", (5, 6), kept={(S1,): S1}),
    "gelu": _row("gelu", (5, 6), kept={(S0,): S0}),
    "silu": _row("silu", (5, 6), kept={(S0,): S0}),
    "where": Case(lambda a, b: torch.where(a > 0, a, b), ((5, 6), (5, 6)), {(S0, S0): S0}),
    "clamp": Case(lambda a: a.clamp(-0.5, 0.5), ((5, 6),), {(S0,): S0}),
    "masked_fill": Case(lambda a: a.masked_fill(a > 0.5, 0.0), ((5, 6),), {(S0,): S0}),
    "matmul": _row("matmul", (5, 6), (6, 7), kept={(S0, R): S0, (R, S1): S1, (S1, S0): P, (P, R): P, (S1, R): P}),
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
        gradients = torch.autograd.grad((wanted * slopes).sum(), plain)
        every = list(itertools.product(*[[R, P, *map(Shard, range(len(s)))] for s in case.shapes]))
        for ways in every if len(every) < 30 else [*case.kept, *every[rank * 0 :: 7]]:
            given = [laid(p, mesh, [way], rank) for p, way in zip(plain, ways)]
            found = case.function(*given)
            told = f"{name} {ways}"
            assert found.shape == wanted.shape and found.dtype is wanted.dtype, told
            if ways in case.kept:
                assert found.placements == (case.kept[ways],), (told, found.placements)
            assert torch.allclose(found.full_tensor(), wanted, atol=1e-5), told
            (found * distribute_tensor(slopes, mesh, [R])).sum().backward()
            for own, p, gradient, way in zip(given, plain, gradients, ways):
                assert own.grad.placements == ((R if way.is_partial() else way),), told
                assert torch.allclose(own.grad.full_tensor(), gradient, atol=1e-5), told


SCENARIOS = [meshes, redistributions, local_parts, ops_on_one_dimension]
