"""Collectives, messages, objects and groups: what each rank ends with, by arithmetic of the ranks alone."""

from __future__ import annotations

import functools
import operator

import pytest

import corefw as torch
import corefw.distributed as dist
from corefw.distributed.nn import functional

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.int64, torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip


def own(rank, dtype=torch.float32):
    """A rank's numbers."""
    return (torch.arange(6).reshape(2, 3) + 1 + rank).to(dtype)


def same(a, b):
    """Whether tensors are equal, of one shape and dtype."""
    assert a.shape == b.shape and a.dtype is b.dtype, (a, b)
    assert torch.equal(a, b), (a, b)


def all_reduce(rank, size):
    for dtype in DTYPES:
        tensor = own(rank, dtype)
        assert dist.all_reduce(tensor) is None
        wanted = sum(own(r, torch.complex128 if dtype.is_complex else torch.float64) for r in range(size))
        same(tensor, wanted.to(dtype))


def reductions(rank, size):
    words = {
        dist.ReduceOp.PRODUCT: operator.mul, dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum,
        dist.ReduceOp.BAND: operator.and_, dist.ReduceOp.BOR: operator.or_, dist.ReduceOp.BXOR: operator.xor,
    }  # fmt: skip
    for op, function in words.items():
        tensor = own(rank, torch.int64)
        if op.name[0] == "B" and dist.get_backend() == "nccl":
            told = rf"rank {rank} of {size}: all_reduce #\d+ of group 0 \(\[2, 3\] torch.int64, \w+\): .* no reduction"
            with pytest.raises(ValueError, match=told):
                dist.all_reduce(tensor, op)
            continue
        dist.all_reduce(tensor, op)
        same(tensor, functools.reduce(function, [own(r, torch.int64) for r in range(size)]))
    for dtype in (torch.float64, torch.bfloat16):
        tensor = own(rank, dtype)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        same(tensor, own(0, dtype) + (size - 1) / 2)
    tensor = own(rank)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    same(tensor, sum(own(r) for r in range(size)) / 2)
    with pytest.raises(TypeError, match="ReduceOp"):
        dist.all_reduce(own(rank), "sum")


def strides_and_background(rank, size):
    whole = torch.zeros(3, 4)
    part = whole[:, ::2].t()
    part.fill_(rank + 1.0)
    work = dist.all_reduce(part, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    same(whole[:, ::2], torch.full((3, 2), size * (size + 1) / 2))
    same(whole[:, 1::2], torch.zeros(3, 2))
    future = dist.all_reduce(own(rank), async_op=True).get_future()
    same(future.wait()[0], sum(own(r) for r in range(size)))
    parameter = torch.nn.Parameter(torch.ones(2))
    before = parameter._version
    dist.broadcast(parameter, 0)
    assert parameter._version > before and parameter.grad_fn is None


def rooted(rank, size):
    last = size - 1
    tensor = own(rank)
    dist.broadcast(tensor, last)
    same(tensor, own(last))
    tensor = own(rank)
    dist.reduce(tensor, last)
    if rank == last:
        same(tensor, sum(own(r) for r in range(size)))
    gathered = [torch.zeros(2, 3) for _ in range(size)] if rank == last else None
    dist.gather(own(rank), gathered, dst=last)
    for r, part in enumerate(gathered or ()):
        same(part, own(r))
    target = torch.zeros(2, 3)
    dist.scatter(target, [own(10 * r) for r in range(size)] if rank == last else None, src=last)
    same(target, own(10 * rank))
    with pytest.raises(ValueError, match="source rank" if rank == last else "non-source"):
        dist.scatter(target, None if rank == last else [target] * size, src=last)
    with pytest.raises(ValueError, match="destination"):
        dist.gather(target, None if rank == last else [target] * size, dst=last)


def gathering(rank, size):
    everyone = [own(r) for r in range(size)]
    listed = [torch.zeros(2, 3) for _ in range(size)]
    dist.all_gather(listed, own(rank))
    for part, wanted in zip(listed, everyone, strict=True):
        same(part, wanted)
    joined, stacked = torch.zeros(2 * size, 3), torch.zeros(size, 2, 3)
    dist.all_gather_into_tensor(joined, own(rank))
    dist.all_gather_into_tensor(stacked, own(rank).t().contiguous().t())
    same(joined, torch.cat(everyone))
    same(stacked, torch.stack(everyone))
    with pytest.raises(ValueError, match="elements"):
        dist.all_gather_into_tensor(torch.zeros(1), own(rank))
    uneven = [torch.zeros(r + 1) for r in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    for r, part in enumerate(uneven):
        same(part, torch.full((r + 1,), float(r)))
    part = torch.zeros(3)
    dist.reduce_scatter_tensor(part, torch.arange(3.0 * size) + rank)
    same(part, (torch.arange(3.0) + 3 * rank) * size + sum(range(size)))
    dist.reduce_scatter(part, [torch.full((3,), float(r + rank)) for r in range(size)], dist.ReduceOp.MAX)
    same(part, torch.full((3,), rank + size - 1.0))


def exchanges(rank, size):
    target = torch.zeros(size, 2)
    dist.all_to_all_single(target, torch.stack([torch.tensor([rank, r]) for r in range(size)]).float())
    same(target, torch.stack([torch.tensor([r, rank]) for r in range(size)]).float())
    sent, received = [r + 1 for r in range(size)], [rank + 1] * size
    target = torch.zeros(sum(received), 2)
    source = torch.cat([torch.full((n, 2), 10.0 * rank + r) for r, n in enumerate(sent)])
    dist.all_to_all_single(target, source, received, sent)
    same(target, torch.cat([torch.full((rank + 1, 2), 10.0 * r + rank) for r in range(size)]))
    outputs = [torch.zeros(r + 1, 2) for r in range(size)]
    dist.all_to_all(outputs, [torch.full((rank + 1, 2), 10.0 * rank + r) for r in range(size)])
    for r, part in enumerate(outputs):
        same(part, torch.full((r + 1, 2), 10.0 * r + rank))
    with pytest.raises(ValueError, match="split_sizes"):
        dist.all_to_all_single(target, source, [1] * size, [0] * size)


def messages(rank, size):
    if rank < 2:
        other, tensor = 1 - rank, torch.zeros(2, 3)
        if rank == 0:
            dist.send(own(7), 1, tag=5)
            if dist.get_backend() == "nccl":
                with pytest.raises(ValueError, match=r"receive #.*from a rank that is named"):
                    dist.recv(tensor)
                assert dist.recv(tensor, 1) == 1
            else:
                assert dist.recv(tensor) == 1
        else:
            assert dist.recv(tensor, 0, tag=5) == 0
            dist.send(tensor + 1, 0)
        same(tensor, own(8 - rank))
        here, there = own(rank), torch.zeros(2, 3)
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, here, other), dist.P2POp(dist.irecv, there, other)])
        for work in works:
            work.wait()
        same(there, own(other))
    with pytest.raises(ValueError, match="same process"):
        dist.send(torch.zeros(1), rank)
    dist.barrier()
    if dist.get_backend() == "nccl":
        with pytest.raises(NotImplementedError, match=r"monitored_barrier: the host does not wait.*'nccl'"):
            dist.monitored_barrier()
    else:
        dist.monitored_barrier()


def objects(rank, size):
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(size)]
    listed = [None] * size if rank == 1 else None
    dist.gather_object((rank, "é"), listed, dst=1)
    assert listed in (None, [(r, "é") for r in range(size)])
    given = [rank, "a", [rank]] if rank == 0 else [None] * 3
    dist.broadcast_object_list(given, 0)
    assert given == [0, "a", [0]]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(size)] if rank == 0 else None)
    assert mine == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list([1, {2: 3}], 1)
    if rank == 1:
        kept = [None, None]
        assert dist.recv_object_list(kept, 0) == 0 and kept == [1, {2: 3}]


def groups(rank, size):
    assert dist.is_initialized() and dist.get_rank() == rank and dist.get_world_size() == size
    one = dist.new_group([size - 1])
    assert dist.get_rank(one) == (0 if rank == size - 1 else -1)
    assert dist.all_reduce(own(rank), group=one) is None
    pair = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        tensor = own(rank)
        dist.all_reduce(tensor, group=pair)
        same(tensor, own(0) + own(size - 1))
        dist.broadcast(tensor, size - 1, group=pair)
        assert dist.get_process_group_ranks(pair) == [0, size - 1]
        assert dist.get_group_rank(pair, size - 1) == 1 and dist.get_global_rank(pair, 1) == size - 1
        with pytest.raises(ValueError, match="not part of group"):
            dist.get_group_rank(pair, size)
        dist.destroy_process_group(pair)
        with pytest.raises(ValueError, match="destroyed"):
            pair.rank()
    own_group, everyone = dist.new_subgroups(1)
    assert dist.get_world_size(own_group) == 1 and len(everyone) == size
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="unique"):
        dist.new_group([0, 0])


def gradients(rank, size):
    weight = torch.arange(3.0, dtype=torch.float64) + 1
    wanted = weight * size

    def grad_of(function, value=None):
        leaf = (own(rank, torch.float64)[0] if value is None else value).requires_grad_()
        (function(leaf) * weight).sum().backward()
        return leaf.grad

    same(grad_of(functional.all_reduce), wanted)
    same(grad_of(lambda x: functional.all_reduce(x, dist.ReduceOp.AVG)), weight)
    same(grad_of(lambda x: functional.broadcast(x, 0)), wanted if rank == 0 else 0 * weight)
    same(grad_of(lambda x: functional.reduce(x, 1)), weight)
    same(grad_of(lambda x: sum(functional.all_gather(x))), wanted)
    same(grad_of(lambda x: sum(functional.gather(x, 1))), weight)
    rows = torch.stack([own(rank + r, torch.float64)[0] for r in range(size)])
    same(grad_of(lambda x: functional.scatter(list(x), 0), rows), weight.expand(size, 3) * (rank == 0))
    same(grad_of(lambda x: functional.reduce_scatter(x[0], list(x)), rows.detach()), weight.expand(size, 3))
    same(grad_of(lambda x: sum(functional.all_to_all(list(x), list(x))), rows.detach()), weight.expand(size, 3))
    same(
        grad_of(lambda x: functional.all_to_all_single(x, x).sum(0), rows.detach()), weight.expand(size, 3).contiguous()
    )
    leaf = own(rank).requires_grad_()
    with pytest.raises(NotImplementedError, match="sum or avg"):
        functional.all_reduce(leaf, dist.ReduceOp.MAX).sum().backward()


SCENARIOS = [
    all_reduce, reductions, strides_and_background, rooted, gathering, exchanges, messages, objects, groups, gradients,
]  # fmt: skip
