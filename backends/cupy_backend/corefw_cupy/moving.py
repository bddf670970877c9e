"""How a result reads an input at shifted positions: the struct Walk of moves.cu."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from corefw_cupy.cuda import Cuda
from corefw_cupy.division import MOST, divisor_type, divisors
from corefw_cupy.launch import BITS, THREADS, Function, argument, blocks
from corefw_cupy.pointwise_function import SIZES
from corefw_cupy.walks import MAX_DIMS


def joined(dims: list[tuple[int, ...]], kept: int) -> list[tuple[int, ...]]:
    """Dimensions (size, limit, offset, stride) with neighbours joined where the inner one is read as a whole and in
    step with the outer one; the last `kept` stay as they are."""
    found: list[tuple[int, ...]] = []
    for d, (size, limit, offset, stride) in enumerate(dims):
        if len(dims) - d > kept and (size, limit, offset) == (1, 1, 0):
            continue
        if found and len(dims) - d > kept and size == limit and not offset and found[-1][3] == stride * size:
            found[-1] = (*(size * value for value in found[-1][:3]), stride)
        else:
            found.append((size, limit, offset, stride))
    return found


def widened(dims: list[tuple[int, ...]], unit: int, alignment: int) -> tuple[list[tuple[int, ...]], int]:
    """The same dimensions of elements of twice the size as often as neighbours move together, and that size."""
    while (
        unit < alignment
        and dims
        and dims[-1][3] == 1
        and not any(number % 2 for number in (*dims[-1][:3], *(stride for *_, stride in dims[:-1])))
    ):
        size, limit, offset, _ = dims[-1]
        dims = [(*outer, stride // 2) for *outer, stride in dims[:-1]] + [(size // 2, limit // 2, offset // 2, 1)]
        unit *= 2
    return dims, unit


class Walk(NamedTuple):
    """How a kernel moves elements."""

    n: int
    size: int  # bytes of what is moved at once
    wide: bool  # whether positions need 64 bits
    struct: Any  # Walk in moves.cu


@lru_cache(maxsize=4096)
def walk(
    shape: tuple[int, ...], limits: tuple[int, ...], offsets: tuple[int, ...], strides: tuple[int, ...], itemsize: int,
    kept: int, alignment: int,
) -> Walk:  # fmt: skip
    """The walk for a result of `shape` that reads an input of shape `limits` and `strides` (in bytes) at `offsets`, up
    to `alignment` bytes at once."""
    dims = joined(list(zip(shape, limits, offsets, [step // itemsize for step in strides], strict=True)), kept)
    if len(dims) > MAX_DIMS:
        raise ValueError(f"an array of {len(dims)} dimensions that cannot be joined; at most {MAX_DIMS} are walked")
    dims, unit = (dims, itemsize) if kept else widened(dims, itemsize, alignment)
    n = prod(shape) * itemsize // unit
    wide = max(n, sum((size + abs(offset)) * max(abs(stride), 1) for size, _, offset, stride in dims)) > MOST
    size = np.dtype("i8" if wide else "i4")
    numbers = [(name, size, MAX_DIMS) for name in ("strides", "offsets", "limits")]
    made = np.zeros(1, [("n", "i8"), ("dims", "i8"), ("sizes", divisor_type(wide), MAX_DIMS), *numbers])
    made["n"], made["dims"] = n, len(dims)
    made["sizes"][0, : len(dims)] = divisors([dim[0] for dim in dims], wide)
    for name, column in (("limits", 1), ("offsets", 2), ("strides", 3)):
        made[name][0, : len(dims)] = [dim[column] for dim in dims]
    return Walk(n, unit, wide, argument(made))


class Move:
    """A function of moves.cu for elements of any type."""

    def __init__(self, cuda: Cuda, name: str):
        self.empty = cuda.empty
        self.function: Function = cuda.function("data_movement/moves.cu", name, T=BITS, SIZE=SIZES)

    def __call__(self, input, shape: tuple[int, ...], offsets: tuple[int, ...], *numbers, kept: int = 0):
        """A new array of `shape`, which reads position i of a dimension at position i + offset; a value among the
        numbers comes as 16 bytes that repeat it."""
        result = self.empty(shape, input.dtype)
        if result.size:
            pointer = input.data.ptr | 16
            found = walk(shape, input.shape, offsets, input.strides, input.dtype.itemsize, kept, pointer & -pointer)
            launch = self.function[found.size, found.wide]
            launch(blocks(found.n), (THREADS,), (input, result, found.struct, *numbers))
        return result
