"""Lists of tensors that one launch works on: the tables by which CUDA functions find them
(source/optimizer/parameters.cuh)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from corefw_cupy.launch import argument
from corefw_cupy.layouts import memory_order

TABLE_BYTES = 3840  # as in parameters.cuh
CHUNK = 4096  # as there


@dataclass(slots=True)
class Table:
    """What one launch is given for the tensors from `begin` to `end` of a list."""

    begin: int
    end: int
    blocks: int
    struct: Any  # as an argument of the launch
    arrays: np.ndarray  # addresses, by array and tensor
    rates: np.ndarray  # by rate and tensor


@lru_cache(maxsize=64)
def _layout(arrays: int, rates: int, counts: tuple[int, ...]) -> tuple[tuple[int, int, int, np.ndarray], ...]:
    """(begin, end, blocks, struct without addresses and rates) of each launch."""
    rows = arrays + rates + 1
    most = (TABLE_BYTES - 8) // (8 * rows + 4)
    struct_type = np.dtype([("words", "i8", (rows, most)), ("first_blocks", "i4", most + 1)], align=True)
    found = []
    for begin in range(0, len(counts), most):
        own = counts[begin : begin + most]
        struct = np.zeros(1, struct_type)
        ends = np.cumsum([-(-count // CHUNK) for count in own])
        struct["words"][0, -1, : len(own)] = own
        struct["first_blocks"][0] = np.iinfo(np.int32).max
        struct["first_blocks"][0, : len(own)] = [0, *ends[:-1]]
        if ends[-1]:
            found.append((begin, begin + len(own), int(ends[-1]), struct))
    return tuple(found)


def tables(arrays: int, rates: int, counts: Sequence[int]) -> list[Table]:
    """New tables for tensors of so many elements, each with so many arrays and rates."""
    found = []
    for begin, end, blocks, template in _layout(arrays, rates, tuple(counts)):
        struct = template.copy()
        words = struct["words"][0, :, : end - begin]
        addresses, numbers = words[:arrays], words[arrays : arrays + rates].view(np.float64)
        found.append(Table(begin, end, blocks, argument(struct), addresses, numbers))
    return found


def fills_memory(array) -> bool:
    """Whether an array's elements fill a piece of memory."""
    return array.flags.c_contiguous or memory_order(array.shape, array.strides, array.dtype.itemsize) is not None
