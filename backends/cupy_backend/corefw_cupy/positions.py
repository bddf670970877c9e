"""Reading, writing and combining the elements of arrays at the positions that index arrays give.

All ops that take positions are one walk over a grid of elements: for each, a place in the array that is indexed, in
the index array and in a third array (what is read to, or written from). Neighbours that one position stands for are
moved as one wider element.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from corefw.shapes import broadcast, contiguous_strides
from corefw_cupy.cuda import Cuda
from corefw_cupy.division import MOST, divisor_type, divisors
from corefw_cupy.launch import BITS, THREADS, argument, blocks
from corefw_cupy.layouts import merged
from corefw_cupy.planned import Planned
from corefw_cupy.pointwise_function import SIZES
from corefw_cupy.walks import MAX_DIMS

BLOCK = (THREADS,)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
INDICES = {INT64: "int64", INT32: "int32"}


class Axis(NamedTuple):
    """The dimension that positions are for: its size, its stride in bytes, its number in messages, and whether
    negative positions are counted from its end."""

    size: int
    step: int
    dim: int
    from_end: bool


class Grid(NamedTuple):
    """The elements that are walked over: strides in bytes of the array that is indexed and of the index array."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    index_steps: tuple[int, ...]
    axis: Axis


@dataclass(frozen=True)
class Walk:
    """How a kernel steps through a grid."""

    n: int
    size: int  # bytes of what is moved at once
    wide: bool  # whether offsets need 64 bits
    together: int  # neighbours that a thread works on
    struct: Any  # Walk in positions.cuh


@lru_cache(maxsize=1 << 13)
def walk(
    grid: Grid, other: tuple[int, ...], size: int, index_size: int, other_size: int, alignment: int = 0,
    wide: bool = False, together: int = 1,
) -> Walk:  # fmt: skip
    """The walk over a grid.

    Args:
        grid: where positions are.
        other: strides in bytes of the third array.
        size: bytes of an element.
        index_size: bytes of a position.
        other_size: bytes of an element of the third array.
        alignment: bytes that may be moved at once, where the pointers allow it.
        wide: whether offsets of 64 bits are wanted in any case.
        together: neighbours of the array that a thread may work on, where one position stands for all of them.
    """
    strides = [
        [step // unit for step in steps]
        for steps, unit in ((grid.steps, size), (grid.index_steps, index_size), (other, other_size))
    ]
    sizes, strides = merged(list(grid.shape), strides)
    array, index, third = strides
    step = grid.axis.step // size
    while (
        size < alignment
        and sizes
        and (array[-1], index[-1], third[-1]) == (1, 0, 1)
        and not any(number % 2 for number in (sizes[-1], step, *array[:-1], *third[:-1]))
    ):
        size, step = 2 * size, step // 2
        sizes[-1] //= 2
        array[:-1], third[:-1] = ([s // 2 for s in own[:-1]] for own in (array, third))
    neighbours = bool(sizes) and (array[-1], index[-1], third[-1]) == (1, 0, 1)
    if neighbours and not any(number % together for number in (sizes[-1], step, *array[:-1])):
        sizes[-1] //= together
        array[-1] = third[-1] = together
    else:
        together = 1
    if len(sizes) > MAX_DIMS:
        raise ValueError(f"a grid of {len(sizes)} dimensions that cannot be joined; at most {MAX_DIMS} are walked")
    n, limit = prod(sizes), max(0, grid.axis.size - 1) * abs(step)
    reach, *others = (sum(abs(s) * (m - 1) for s, m in zip(own, sizes)) for own in strides)
    wide = wide or max(n, reach + limit, *others) > MOST
    kind = np.int64 if wide else np.int32
    names, lines = ("n", "dims", "size", "step", "wrap", "dim"), ("array", "index", "other")
    struct = np.zeros(
        1,
        [
            *((name, "i8") for name in names),
            ("sizes", divisor_type(wide), MAX_DIMS),
            *((name, kind, MAX_DIMS) for name in lines),
        ],
    )
    axis = grid.axis
    for name, value in zip(names, (n, len(sizes), axis.size, step, axis.size if axis.from_end else 0, axis.dim)):
        struct[name] = value
    if n:
        struct["sizes"][0, : len(sizes)] = divisors(sizes, wide)
    for name, own in zip(lines, strides):
        struct[name][0, : len(sizes)] = own
    return Walk(n, size, wide, together, argument(struct))


def along_slices(array, dim: int, index, from_end: bool = False) -> Grid:
    """The grid of whole slices of `array` at the positions `index` of a dimension, which the index's dimensions
    replace."""
    return _slices(array.shape, array.strides, dim, index.shape, index.strides, from_end)


def _slices(shape, steps, dim, index_shape, index_steps, from_end) -> Grid:
    before, after = (0,) * dim, (0,) * (len(shape) - dim - 1)
    return Grid(
        shape[:dim] + index_shape + shape[dim + 1 :],
        steps[:dim] + (0,) * len(index_shape) + steps[dim + 1 :],
        before + index_steps + after,
        Axis(shape[dim], steps[dim], dim, from_end),
    )


def along_elements(array, dim: int, index) -> Grid:
    """The grid of single elements: `index` has their positions along a dimension, at their other coordinates."""
    if index.ndim != array.ndim:
        raise ValueError("the index has another number of dimensions")
    steps, shape = array.strides, array.shape
    for i, size in enumerate(index.shape):
        if i != dim and size > shape[i]:
            raise ValueError("the index is larger than the input")
    return Grid(
        index.shape, steps[:dim] + (0,) + steps[dim + 1 :], index.strides, Axis(shape[dim], steps[dim], dim, False)
    )


def at_offsets(array, first: int, count: int, offsets) -> Grid:
    """The grid in which the dimensions of `offsets` replace `count` dimensions of the array."""
    steps, shape, size, end = array.strides, array.shape, array.dtype.itemsize, first + count
    reach = sum(step // size * (n - 1) for step, n in zip(steps[first:end], shape[first:end])) + 1
    return Grid(
        shape[:first] + offsets.shape + shape[end:],
        steps[:first] + (0,) * offsets.ndim + steps[end:],
        (0,) * first + offsets.strides + (0,) * (array.ndim - end),
        Axis(reach, size, first, False),
    )


def steps_over(array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array broadcast to a shape."""
    lead = len(shape) - array.ndim
    if lead < 0 or any(own not in (1, size) for own, size in zip(array.shape, shape[lead:])):
        raise ValueError(f"an array of shape {array.shape} cannot be broadcast to {shape}")
    own = [step if size != 1 else 0 for step, size in zip(array.strides, array.shape)]
    return (0,) * lead + tuple(own)


def check_index(dtype: np.dtype) -> None:
    """Refuse index arrays that are not int32 or int64."""
    if dtype not in INDICES:
        raise IndexError("Expected dtype int32/int64 for index")


@lru_cache(maxsize=1 << 10)
def _indices(shape, strides, sizes, steps, dims) -> np.ndarray:
    """The struct Indices in offsets.cu, but for the pointers."""
    d, table = MAX_DIMS, np.dtype(np.int64)
    names = [(name, "i8") for name in ("n", "dims", "count")]
    lines = [("sizes", table, d), ("arrays", "u8", d), ("strides", table, (d, d))]
    struct = np.zeros(1, [*names, *lines, *((name, table, d) for name in ("size", "step", "dim"))])
    struct["n"], struct["dims"], struct["count"] = prod(shape), len(shape), len(strides)
    struct["sizes"][0, : len(shape)] = shape
    for k, own in enumerate(strides):
        struct["strides"][0, k, : len(shape)] = own
    for name, values in (("size", sizes), ("step", steps), ("dim", dims)):
        struct[name][0, : len(values)] = values
    return struct


class Positions:
    """Functions that read and write at positions."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.empty, self.copying = cuda, cuda.empty, cuda.copying
        self.device_asserts = cuda.device_asserts.address
        macros: dict[str, Any] = {"T": BITS, "I": INDICES, "SIZE": SIZES}
        self.read_at = cuda.function("indexing/positions.cu", "read_at", **macros)
        self.write_at = cuda.function("indexing/positions.cu", "write_at", **macros)
        self.combine_indices = cuda.function("indexing/offsets.cu", "combine_indices")
        self.of_slices = Planned(self._plan_slices)

    def read_slices(self, array, dim: int, index, from_end: bool, kind: int):
        """The slices of an array at positions along a dimension, which the dimensions of `index` replace: new."""
        address = array.data.ptr | 16
        seen = array.shape, array.strides, array.dtype, dim, index.shape, index.strides, index.dtype, from_end
        shape, launch, grid, struct = self.of_slices[*seen, address & -address]
        out = self.empty(shape, array.dtype)
        if launch:
            launch(grid, BLOCK, (array, index, out, struct, self.device_asserts, kind))
        return out

    def _plan_slices(self, shape, steps, dtype, dim, index_shape, index_steps, index_dtype, from_end, alignment):
        """The shape of slices, and what launches their reading (None if there are none), the blocks and the walk."""
        check_index(index_dtype)
        if dim >= len(shape):
            raise IndexError("too many indices")
        size, grid = dtype.itemsize, _slices(shape, steps, dim, index_shape, index_steps, from_end)
        dense = tuple([step * size for step in contiguous_strides(grid.shape)])
        found = walk(grid, dense, size, index_dtype.itemsize, size, alignment)
        launch = self.read_at[found.size, index_dtype, found.wide] if found.n else None
        return grid.shape, launch, blocks(found.n), found.struct

    def read(self, array, grid: Grid, index, kind: int):
        """The elements of a grid, as a new array."""
        out = self.cuda.empty(grid.shape, array.dtype)
        self._move(self.read_at, array, grid, index, out, out.strides, kind)
        return out

    def write(self, array, grid: Grid, index, values, kind: int) -> None:
        """Write `values`, which broadcast to the grid, to its elements; they have the dtype of the array."""
        if values.dtype != array.dtype:
            raise ValueError("the values have another dtype than the array")
        index, values = self.apart(array, index), self.apart(array, values)
        self._move(self.write_at, array, grid, index, values, steps_over(values, grid.shape), kind)

    def _move(self, function, array, grid, index, other, steps, kind):
        check_index(index.dtype)
        pointers = array.data.ptr | other.data.ptr | 16
        size = array.dtype.itemsize
        found = walk(grid, steps, size, index.dtype.itemsize, size, pointers & -pointers)
        if found.n:
            function[found.size, index.dtype, found.wide](
                blocks(found.n), BLOCK, (array, index, other, found.struct, self.device_asserts, kind)
            )

    def apart(self, array, other):
        """What is read while `array` is written: a copy if it lies in the same memory."""
        return self.copying.clone(other) if other.data.mem.ptr == array.data.mem.ptr else other

    def offsets(self, array, dims: list[int], indices: list, kind: int):
        """Where the elements lie that index arrays give together for these dimensions of an array, in elements from
        its first one; -1 where a position is out of bounds."""
        shape = broadcast(*(index.shape for index in indices))
        for index in indices:
            check_index(index.dtype)
        indices = [index if index.dtype == INT64 else self.copying.cast(index, INT64) for index in indices]
        size = array.dtype.itemsize
        struct = _indices(
            shape,
            tuple([tuple([step // 8 for step in steps_over(index, shape)]) for index in indices]),
            tuple([array.shape[dim] for dim in dims]),
            tuple([array.strides[dim] // size for dim in dims]),
            tuple(dims),
        ).copy()
        struct["arrays"][0, : len(indices)] = [index.data.ptr for index in indices]
        found = self.cuda.empty(shape, INT64)
        if found.size:
            self.combine_indices[()](blocks(found.size), BLOCK, (found, argument(struct), self.device_asserts, kind))
        return found

    def changed(self, input, out):
        """The array to change: `out`, holding the input's elements, or a copy of the input."""
        if out is None:
            return self.copying.dense(input)
        if out is not input:
            self.copying.copy(out, input)
        return out


@cache
def positions(cuda: Cuda) -> Positions:
    """The functions that all families share."""
    return Positions(cuda)
