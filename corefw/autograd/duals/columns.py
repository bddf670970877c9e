"""Jacobians by columns: a function of tangents for all unit vectors at once, and its results as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from corefw.dispatch.batching.arrays import HiddenElementsError, Level, depths, levels
from corefw.dispatch.batching.tensors import enter, leave
from corefw.dispatch.declare import ops
from corefw.tensor import Tensor, next_sequence


def unit_vectors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """For each tensor, along a first dimension, its parts of the unit vectors of all elements of all tensors."""
    total = sum(one.numel() for one in tensors)
    found, start = [], 0
    for one in tensors:
        part = one.detach().new_zeros((total, one.numel()))
        part[start : start + one.numel()].fill_diagonal_(1) if one.numel() else None
        found.append(part.reshape((total, *one.shape)))
        start += one.numel()
    return found


def columns(push: Callable[[list[Tensor]], list[Tensor]], vectors: list[Tensor], randomness: str) -> list[Tensor]:
    """What a function of vectors gives for all of them, along a first dimension: by one call or, where the function
    looks at elements, by one call for each. Where there are none it is what the function gives for zeros."""
    count = vectors[0].shape[0]
    if not count:
        return [one.unsqueeze(0) for one in push([v.new_zeros(v.shape[1:]) for v in vectors])]
    depth = levels.next_depth() + 0.25  # not that of a `vmap` that ended, through whose graph the function may go back
    levels.running[depth] = Level(count, randomness, next_sequence())
    try:
        return [_left(one, depth, count) for one in push([enter(v, depth) for v in vectors])]
    except HiddenElementsError:
        pass
    finally:
        del levels.running[depth]
    return [ops.stack(list(parts)) for parts in zip(*(push([v[i] for v in vectors]) for i in range(count)))]


def _left(tensor: Tensor, depth: float, count: int) -> Tensor:
    if depth in depths(tensor.dispatch_key.device):
        return leave(tensor, depth)
    return tensor.unsqueeze(0).expand(count, *tensor.shape)


def jacobian_blocks(pushed: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The columns of one output as its derivatives by each input, of both shapes."""
    return list(_blocks(pushed, inputs))


def _blocks(pushed: Tensor, inputs: Sequence[Tensor]) -> Iterator[Tensor]:
    start = 0
    for one in inputs:
        part = pushed.narrow(0, start, one.numel())
        yield part.movedim(0, -1).reshape((*pushed.shape[1:], *one.shape))
        start += one.numel()
