"""Python objects between the ranks of one job, pickled: whoever can send one can run code in the receiver, so this is
for processes that trust each other, as those of one job do."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from corefw.dispatch.declare import ops
from corefw.distributed.collectives import all_gather, all_gather_into_tensor, broadcast, gather
from corefw.distributed.groups import ProcessGroup, chosen_group, get_group_rank
from corefw.distributed.point_to_point import recv, send
from corefw.dtypes import int64, uint8
from corefw.tensor import Tensor
from corefw.tensor_api.interchange import from_numpy


def _packed(value: Any, group: ProcessGroup) -> Tensor:
    return from_numpy(np.frombuffer(pickle.dumps(value), np.uint8).copy()).to(group.home())


def _empty(size: int, group: ProcessGroup) -> Tensor:
    return ops.zeros(size, dtype=uint8, device=group.home())


def _unpacked(data: Tensor, size: int) -> Any:
    return pickle.loads(data[:size].cpu().numpy().tobytes())


def _size(data: Tensor) -> Tensor:
    return ops.full((1,), data.numel(), dtype=int64, device=data.device)


def _padded(data: Tensor, size: int) -> Tensor:
    result = ops.zeros(size, dtype=uint8, device=data.device)
    result[: data.numel()] = data
    return result


def _sizes(data: Tensor, group: Any, ranks: int) -> list[int]:
    sizes = ops.zeros(ranks, dtype=int64, device=data.device)
    all_gather_into_tensor(sizes, _size(data), group)
    return [int(size) for size in sizes.tolist()]


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """`object_list` becomes the objects of all ranks."""
    if (found := chosen_group(group)) is None:
        return
    data = _packed(obj, found)
    sizes = _sizes(data, found, found.size())
    rows = [_empty(max(sizes), found) for _ in sizes]
    all_gather(rows, _padded(data, max(sizes)), found)
    object_list[:] = [_unpacked(row, size) for row, size in zip(rows, sizes)]


def gather_object(
    obj: Any, object_gather_list: list | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """`object_gather_list`, on rank `dst` alone, becomes the objects of all ranks."""
    if (found := chosen_group(group)) is None:
        return
    root = group_dst if group_dst is not None else get_group_rank(found, dst or 0)
    if (found.rank() == root) != (object_gather_list is not None):
        raise ValueError("Argument object_gather_list must be specified on the destination rank, and only there")
    data = _packed(obj, found)
    sizes = _sizes(data, found, found.size())
    rows = [_empty(max(sizes), found) for _ in sizes] if object_gather_list is not None else None
    gather(_padded(data, max(sizes)), rows, group=found, group_dst=root)
    if object_gather_list is not None and rows is not None:
        object_gather_list[:] = [_unpacked(row, size) for row, size in zip(rows, sizes)]


def broadcast_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """`object_list`, of the same length everywhere, becomes that of rank `src`."""
    if (found := chosen_group(group)) is None:
        return
    root = group_src if group_src is not None else get_group_rank(found, src or 0)
    data = _packed(list(object_list), found) if found.rank() == root else _empty(0, found)
    size = _size(data)
    broadcast(size, group=found, group_src=root)
    if found.rank() != root:
        data = _empty(int(size[0]), found)
    broadcast(data, group=found, group_src=root)
    values = _unpacked(data, data.numel())
    if len(values) != len(object_list):
        raise ValueError(f"broadcast_object_list: {len(object_list)} objects here, {len(values)} on rank {root}")
    object_list[:] = values


def scatter_object_list(
    scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """The first element of `scatter_object_output_list` becomes this rank's of `scatter_object_input_list`, which rank
    `src` alone gives."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if (found := chosen_group(group)) is None:
        return
    root = group_src if group_src is not None else get_group_rank(found, src or 0)
    given: list[Any] = [scatter_object_input_list] if found.rank() == root else [None]
    broadcast_object_list(given, group=found, group_src=root)
    if len(given[0]) != found.size():
        raise ValueError(f"scatter_object_input_list needs {found.size()} objects, one for each rank")
    scatter_object_output_list[0] = given[0][found.rank()]


def send_object_list(
    object_list: list, dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None,
    use_batch: bool = False,
) -> None:  # fmt: skip
    """Send objects to rank `dst`."""
    if (found := chosen_group(group)) is None:
        return
    data = _packed(list(object_list), found)
    send(_size(data), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:  # fmt: skip
    """`object_list` becomes the objects that rank `src` sends, or any rank; returns the sender's rank."""
    if (found := chosen_group(group)) is None:
        return -1
    size = ops.zeros(1, dtype=int64, device=found.home())
    source = recv(size, src, group, group_src=group_src)
    data = _empty(int(size[0]), found)
    recv(data, source, group)
    object_list[:] = _unpacked(data, data.numel())
    return source
