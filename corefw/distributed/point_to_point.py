"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.collectives import checked
from corefw.distributed.errors import DistBackendError
from corefw.distributed.groups import ProcessGroup, chosen_group, default_group, get_group_rank, seconds
from corefw.distributed.work import Work
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor


def _peer(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    if (rank is None) == (group_rank is None):
        raise ValueError(f"Must specify {name} or group_{name}, and not both")
    peer = get_group_rank(group, rank) if rank is not None else int(group_rank)  # type: ignore[arg-type]
    if peer == group.rank():
        raise ValueError(f"Invalid {name} rank: a message to or from the same process")
    return peer


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor to rank `dst`; it must not change until the Work has ended."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    to = _peer(found, dst, group_dst, "dst")
    held = [tensor.detach().contiguous()]
    return Work(found, f"send to rank {found.ranks[to]}", held, found.start("send", held, to, tag)).left_going()


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive a tensor from rank `src`, from any if it is missing."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    source = None if src is None and group_src is None else _peer(found, src, group_src, "src")
    held = tensor.detach() if tensor.is_contiguous() else tensor.detach().contiguous()

    def finish() -> None:
        if not tensor.is_contiguous():
            with no_recording():
                tensor.detach().copy_(held)

    where = "any rank" if source is None else f"rank {found.ranks[source]}"
    started = found.start("receive", [held], source, tag)
    return Work(found, f"receive from {where}", [tensor], started, finish).left_going()


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to rank `dst`.

    Args:
        tensor: what is sent; the receiver's has as many elements, of the same dtype.
        dst: the receiver, by its rank in the world; or `group_dst`, by its rank in the group.
        tag: tells messages apart.
    """
    if (work := isend(tensor, dst, group, tag, group_dst)) is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from rank `src`, from any if it is missing; returns the sender's rank, -1 outside the group."""
    if (work := irecv(tensor, src, group, tag, group_src)) is None:
        return -1
    work.wait()
    if src is None and group_src is None:
        return work.source_rank()
    found = chosen_group(group)
    assert found is not None
    return src if src is not None else found.ranks[int(group_src)]  # type: ignore[arg-type]


class P2POp:
    """A message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent, or where it is received.
        peer: the other rank, in the world; or `group_peer`, in the group.
    """

    def __init__(
        self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ):  # fmt: skip
        if op not in (isend, irecv):
            raise RuntimeError("Invalid ``op``. Expected ``op`` to be of type ``isend`` or ``irecv``")
        checked("tensor", tensor)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer, self.group_peer = peer, group_peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} peer={self.peer}, tensor={list(self.tensor.shape)})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages at once; returns their Works."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    groups = [(chosen_group(op.group), op.tensor.dispatch_key.device.type) for op in p2p_op_list]
    communicators = {id(c): c for group, kind in groups if group is not None for c in (group.communicator(kind),)}
    with ExitStack() as stack:
        for communicator in communicators.values():
            stack.enter_context(communicator.together())
        works = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in works if work is not None]


_HERE, _ALL_HERE = 987_001, 987_002  # tags


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """As `barrier`, but rank 0 tells which ranks did not come.

    Args:
        timeout: how long to wait for them; the group's if missing.
        wait_all_ranks: tell all that are missing, not the first.

    Raises:
        RuntimeError: on rank 0 the missing ranks; on the others that rank 0 did not answer.
        NotImplementedError: the group has no engine whose messages the host waits for.
    """
    if (found := chosen_group(group)) is None:
        return
    if not found.communicator(found.home()).host_waits:
        raise NotImplementedError(
            f"monitored_barrier: the host does not wait for messages of the engine '{found.name()}'; join the "
            f'processes with one for the CPU too: init_process_group("cpu:mpi,cuda:nccl")'
        )
    limit = found.timeout if timeout is None else seconds(timeout)
    word = ops.zeros(1, device=found.home())
    if found.rank():
        here = isend(word, group=found, tag=_HERE, group_dst=0)
        answer = irecv(word, group=found, tag=_ALL_HERE, group_src=0)
        assert here is not None and answer is not None
        here.wait(limit)
        answer.wait(limit)
        return
    missing = []
    for rank in range(1, found.size()):
        work = irecv(word, group=found, tag=_HERE, group_src=rank)
        assert work is not None
        try:
            work.wait(limit)
        except DistBackendError:
            missing.append(found.ranks[rank])
            if not wait_all_ranks:
                break
    if missing:
        told = ", ".join(map(str, missing))
        raise RuntimeError(f"[Rank 0]: Ranks {told} failed to pass monitoredBarrier in {int(limit * 1000)} ms")
    for rank in range(1, found.size()):
        send(word, group=found, tag=_ALL_HERE, group_dst=rank)


__all__ = [
    "P2POp",
    "batch_isend_irecv",
    "default_group",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "send",
]
