"""Collectives as functions: they return new tensors, and gradients flow back to the ranks that their inputs came from.

All ranks must run the backward, since it calls collectives too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.autograd.function import Function
from corefw.dispatch.declare import ops
from corefw.distributed.groups import ProcessGroup, chosen_group, get_group_rank, word_of
from corefw.distributed.groups import group as group
from corefw.distributed.reduce_op import ReduceOp
from corefw.tensor import Tensor


def _members(group: Any) -> ProcessGroup:
    found = chosen_group(group)
    if found is None:
        raise ValueError("this process is not in the group")
    return found


def _averaged(result: Tensor, op: ReduceOp, group: ProcessGroup) -> Tensor:
    return result / group.size() if op is ReduceOp.AVG else result


def _word(op: ReduceOp) -> str:
    return "sum" if op is ReduceOp.AVG else word_of(op)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or another reduction) of the tensors of all ranks; those of sums and averages have gradients."""
    found = _members(group)
    return _averaged(ops.all_reduced(tensor, _word(op), found), op, found)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """As `all_reduce` on rank `dst`, zeros on the others."""
    found = _members(group)
    return _averaged(ops.reduced(tensor, _word(op), get_group_rank(found, dst), found), op, found)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`."""
    found = _members(group)
    return ops.broadcasted(tensor, get_group_rank(found, src), found)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    return tuple(ops.all_gathered(tensor, _members(group)).unbind())


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank `dst`, zeros on the others."""
    found = _members(group)
    return tuple(ops.gathered(tensor, get_group_rank(found, dst), found).unbind())


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This rank's of the tensors on rank `src`; the others give tensors of the same shapes."""
    found = _members(group)
    return ops.scattered(ops.stack(list(tensors)), get_group_rank(found, src), found)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The reduction of what all ranks have for this one in `input_list`; `output` is left as it is."""
    found = _members(group)
    return _averaged(ops.reduce_scattered(ops.stack(list(input_list)), _word(op), found), op, found)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What all ranks have for this one, shaped as `output_tensor_list`; tensor i of `input_tensor_list` goes to rank
    i."""
    received = [tensor.numel() for tensor in output_tensor_list]
    sent = tuple(tensor.numel() for tensor in input_tensor_list)
    flat = ops.cat([tensor.reshape(-1) for tensor in input_tensor_list])
    result = ops.exchanged(flat, tuple(received), sent, _members(group))
    return tuple(part.reshape(t.shape) for part, t in zip(result.split(received), output_tensor_list))


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None,
) -> Tensor:  # fmt: skip
    """The parts that all ranks have for this one along the first dimension."""
    found = _members(group)

    def sizes(given: Sequence[int] | None, tensor: Tensor) -> tuple[int, ...]:
        return tuple(given) if given else (tensor.shape[0] // found.size(),) * found.size()

    return ops.exchanged(input, sizes(output_split_sizes, output), sizes(input_split_sizes, input), found)


__all__ = [
    "Function",
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
