"""Ops on DTensors, against one process with all elements."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import corefw as torch
from corefw import nn
from corefw.distributed.device_mesh import init_device_mesh
from corefw.distributed.tensor import Shard, distribute_tensor
from tests.ranks.mesh import S0, S1, S2, P, R, laid, wave

F = nn.functional


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


SCENARIOS = [ops_on_one_dimension, ops_on_two_dimensions]
