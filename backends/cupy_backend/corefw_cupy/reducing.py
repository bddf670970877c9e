"""Reductions over any dimensions: which elements lie together, and which threads reduce them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from corefw import shapes
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import THREADS, Function, argument

WARP = 32
BLOCKS = 132 * 4  # that run at once on an H100: as many as reduction.cuh makes sure that fit on a processor
STATE = 32  # bytes, the most that an operation holds of what was reduced so far
LONGEST = 64  # packs of a row that one lane of a warp reads, if there are rows for all warps
ENOUGH = BLOCKS * THREADS // WARP  # rows that keep all warps busy

Types = Mapping[Any, str]
Results = Mapping[Any, np.dtype] | None

_DIMENSIONS = ("outer", "inner", "slow", "fast")
_STRIDES = tuple(f"{name}_stride" for name in _DIMENSIONS)
WALK = np.dtype([(name, "i8") for name in (*_DIMENSIONS, *_STRIDES, "outer_place", "inner_place", "packed")])


@dataclass(frozen=True)
class Plan:
    """How an array of a certain shape is reduced."""

    shape: tuple[int, ...]  # of the result
    results: int
    count: int  # elements reduced to one
    columns: bool  # whether neighbouring threads read neighbouring results' elements
    walk: Any  # the struct Walk; None for an array that must be copied first
    grid: tuple[int, int]
    block: tuple[int, int]

    @property
    def parts(self) -> int:
        """Blocks that share the work for a result."""
        return self.grid[1]


def _joined(dims: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Dimensions, given as size and strides, from the farthest steps to the nearest; those walked evenly are one."""
    joined: list[tuple[int, ...]] = []
    for size, *strides in sorted(dims, key=lambda d: (d[1] != 0, -abs(d[1]))):
        if size == 1:
            continue
        if joined and list(joined[-1][1:]) == [size * stride for stride in strides]:
            joined[-1] = (joined[-1][0] * size, *strides)
        else:
            joined.append((size, *strides))
    return joined


def power_of_two(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << max(0, n - 1).bit_length()


def _rows(rows: int, count: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Grid and block for rows whose elements lie together, in packs of `width`."""
    packs = -(-count // width)
    threads = min(WARP, power_of_two(-(-packs // 2)))
    if packs > 8 * WARP and not (rows >= ENOUGH and packs <= LONGEST * WARP):
        threads = THREADS
    together = THREADS // threads
    blocks = -(-rows // together)
    parts = min(-(-BLOCKS // blocks), packs // (8 * THREADS)) if threads == THREADS else 1
    return (blocks, max(1, parts)), (threads, together)


def _columns(outer: int, inner: int, count: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Grid and block for columns that lie together, `width` of which a thread reads at once."""
    lanes = min(WARP, power_of_two(-(-inner // width)))
    along = THREADS // lanes
    blocks = outer * -(-inner // (lanes * width))
    parts = min(-(-BLOCKS // blocks), count // (8 * along))
    return (blocks, max(1, parts)), (lanes, along)


@lru_cache(maxsize=1 << 14)
def plan(
    shape: tuple[int, ...], strides: tuple[int, ...], size: int, aligned: bool, dims: tuple | None, keepdim: bool
) -> Plan:
    """The plan for an array reduced over `dims`, None for all.

    Args:
        strides: in bytes.
        size: bytes of an element.
        aligned: whether the first element's address is a multiple of 16.
    """
    over = range(len(shape)) if dims is None or not shape else dims
    without = [d for d in range(len(shape)) if d not in over]
    result = shapes.reduced(shape, tuple(over), keepdim)
    places = shapes.contiguous_strides(tuple(shape[d] for d in without))
    kept = _joined([(shape[d], strides[d] // size, place) for d, place in zip(without, places)])
    reduced = _joined([(shape[d], strides[d] // size) for d in over])
    results, count = prod(result), prod(shape[d] for d in over)
    if not results or not count:
        kept, reduced = [(results, 0, 1)], [(count, 1)]
    if len(kept) > 2 or len(reduced) > 2:
        return Plan(result, results, count, False, None, (0, 0), (0, 0))
    (outer, outer_stride, outer_place), (inner, inner_stride, inner_place) = [(1, 0, 0)] * (2 - len(kept)) + kept
    (slow, slow_stride), (fast, fast_stride) = [(1, 0)] * (2 - len(reduced)) + reduced
    columns = fast > 1 < inner and (not fast_stride or 0 < abs(inner_stride) < abs(fast_stride))
    width = min(4 if columns else 8, 16 // size)
    near, *far = (inner_stride, fast_stride, inner) if columns else (fast_stride, inner_stride, fast)
    packed = aligned and near == 1 and all(n % width == 0 for n in (*far, outer_stride, slow_stride))
    grid, block = _columns(outer, inner, count, width if packed else 1) if columns else _rows(results, count, width)
    numbers = (outer, inner, slow, fast, outer_stride, inner_stride, slow_stride, fast_stride, outer_place, inner_place)
    return Plan(result, results, count, columns, argument(np.array([(*numbers, packed)], WALK)), grid, block)


class Along:
    """An operation of a file in source/ along dimensions.

    Args:
        cuda: what compiles it.
        file: where the operation is.
        operation: its name.
        types: of the elements, as in launch.py.
        result: the dtypes of results by those of elements, None if they are the same.
    """

    #: what the names of the file's functions begin with, and the functions
    kind: ClassVar[str]
    functions: ClassVar[tuple[str, ...]] = ("rows", "columns")
    rows: Function
    columns: Function

    def __init__(self, cuda: Cuda, file: str, operation: str, types: Types, result: Results = None):
        self.empty, self.dense = cuda.empty, cuda.dense
        self.operation, self.result = operation, result
        for function in self.functions:
            made = cuda.function(file, f"{self.kind}_{function}", T=types, OPERATION={operation: operation})
            setattr(self, function, made)


class Reduction(Along):
    """A reduction: `empty` says whether there is a result for no elements."""

    kind = "reduce"
    functions = ("rows", "columns", "parts")
    parts: Function

    def __init__(self, cuda: Cuda, file: str, operation: str, types: Types, result: Results = None, empty=True):
        super().__init__(cuda, file, operation, types, result)
        self.takes_nothing = empty

    def __call__(self, input, dim, keepdim=False, number=0.0):
        """The results over the dimensions `dim`, None for all; `number` is what the operation depends on besides."""
        planned = self._plan(input, dim, keepdim)
        dtype = input.dtype
        results = self.empty(planned.shape, dtype if self.result is None else self.result[dtype])
        self._launch(planned, input, dim, results, 0, number)
        return results

    def positions(self, input, dim, keepdim):
        """The positions of the elements found."""
        planned = self._plan(input, dim, keepdim)
        positions = self.empty(planned.shape, np.int64)
        self._launch(planned, input, dim, 0, positions, 0.0)
        return positions

    def elements(self, input, dim, keepdim):
        """The elements found, and their positions."""
        planned = self._plan(input, dim, keepdim)
        elements, positions = self.empty(planned.shape, input.dtype), self.empty(planned.shape, np.int64)
        self._launch(planned, input, dim, elements, positions, 0.0)
        return elements, positions

    def _plan(self, input, dim, keepdim) -> Plan:
        planned = plan(input.shape, input.strides, input.itemsize, input.data.ptr % 16 == 0, dim, keepdim)
        if not planned.count and not self.takes_nothing:
            raise ValueError("nothing to reduce")
        return planned

    def _launch(self, planned: Plan, input, dim, results, positions, number) -> None:
        if not planned.results:
            return
        if planned.walk is None:
            over = range(input.ndim) if dim is None else dim
            order = [*(d for d in range(input.ndim) if d not in over), *over]
            input = self.dense(input.transpose(order)).reshape(planned.results, planned.count)
            planned = plan(input.shape, input.strides, input.itemsize, True, (1,), False)
        key = input.dtype, self.operation
        launch = (self.columns if planned.columns else self.rows)[key]
        tail = results, positions, planned.count, number
        if planned.parts == 1:
            launch(planned.grid, planned.block, (input, planned.walk, 0, *tail))
        else:
            parts = self.empty((planned.results * planned.parts * STATE,), np.uint8)
            launch(planned.grid, planned.block, (input, planned.walk, parts, *tail))
            threads = min(THREADS, max(WARP, power_of_two(planned.parts)))
            self.parts[key]((planned.results,), (threads,), (parts, planned.parts, *tail))
