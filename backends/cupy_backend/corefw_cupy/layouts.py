"""How elements lie in memory: the order of dimensions, and which of them are walked as one."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1 << 12)
def memory_order(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, ...] | None:
    """The dimensions from the outermost in memory to the innermost, if elements lie without gaps; else None."""
    if 0 in shape:
        return tuple(range(len(shape)))
    order = tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d], d)))
    expected = size
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != expected:
                return None
            expected *= shape[d]
    return order


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """The order that turns dimensions back which were put into `order`."""
    return tuple([order.index(d) for d in range(len(order))])


def merged(sizes: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Dimensions of size 1 dropped, and neighbours joined that all operands step through evenly."""
    kept: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d, size in enumerate(sizes):
        if size == 1:
            continue
        if kept and all(step[-1] == own[d] * size for step, own in zip(steps, strides)):
            kept[-1] *= size
            for step, own in zip(steps, strides):
                step[-1] = own[d]
        else:
            kept.append(size)
            for step, own in zip(steps, strides):
                step.append(own[d])
    return kept, steps
