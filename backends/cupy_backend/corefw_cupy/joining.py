"""Joining arrays and moving their elements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import accumulate, chain
from math import prod
from operator import or_
from typing import Any

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw.shapes import roll_arguments
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BITS, INTEGERS, THREADS, argument, blocks, offered, pointers
from corefw_cupy.moving import Move
from corefw_cupy.planned import Planned

BLOCK = (THREADS,)
MOST_PARTS = 32  # as in joining.cu
UNITS = 4  # as in joining.cu
WIDEST = 16  # bytes that a thread moves at once
CHUNK = 4096  # as in repetition.cu


@dataclass(frozen=True)
class Plan:
    """How arrays of certain shapes are joined.

    Attributes: ``shape`` of the result; ``rows`` how many stretches of each array; ``row`` their bytes together;
    ``parts`` by array with elements: its number, where it begins in the result along the dimension and how long it is,
    and both in bytes of a row.
    """

    shape: tuple[int, ...]
    rows: int
    row: int
    parts: tuple[tuple[int, int, int, int, int], ...]


def plan(op: str, shapes: tuple[tuple[int, ...], ...], dim: int, itemsize: int) -> Plan:
    """The plan of `cat` or `stack`; raises ShapeError for what cannot be joined."""
    shape = shape_rule(op)(shapes, dim)
    dim %= len(shape)
    lengths = [1 if op == "stack" else 0 if s == (0,) else s[dim] for s in shapes]
    inner = prod(shape[dim + 1 :]) * itemsize
    starts = accumulate(lengths, initial=0)
    parts = [(k, start, n, start * inner, n * inner) for k, (start, n) in enumerate(zip(starts, lengths)) if n]
    return Plan(shape, prod(shape[:dim]), shape[dim] * inner, tuple(parts))


@lru_cache(maxsize=4096)
def geometry(stretches: tuple[tuple[int, int], ...], rows: int, unit: int) -> tuple[int, Any]:
    """The blocks of one launch and the struct Parts, for (start, width) in bytes of each array's part of a row."""
    count, per_block = len(stretches), UNITS * THREADS
    needed = [-(-rows * width // unit // per_block) for _, width in stretches]
    names = ("first_blocks", "starts", "widths")
    made = np.zeros(1, [("count", "i8"), *((name, "i8", MOST_PARTS) for name in names)])
    made["count"] = count
    made["first_blocks"][0, :count] = list(accumulate(needed, initial=0))[:count]
    made["starts"][0, :count] = [start // unit for start, _ in stretches]
    made["widths"][0, :count] = [width // unit for _, width in stretches]
    return sum(needed), argument(made)


def widest_unit(bits: int) -> int:
    """The most bytes, up to the widest, that divide all the numbers whose bits are in `bits`."""
    bits |= WIDEST
    return bits & -bits


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copying = cuda.copying
    join = cuda.function("data_movement/joining.cu", "join", T=BITS)
    move_rolled, move_triangle = Move(cuda, "roll"), Move(cuda, "triangle")
    sum_chunks = cuda.function("data_movement/repetition.cu", "sum_chunks", T=INTEGERS)
    find_ends = cuda.function("data_movement/repetition.cu", "find_ends", T=INTEGERS)
    repeat_positions = cuda.function("data_movement/repetition.cu", "repeat_positions", T=INTEGERS)
    negative = cuda.device_asserts.kind("repeats can not be negative", ValueError)

    # -- joining ------------------------------------------------------------------------------------------------------
    def joining(op):
        def kernel(tensors, dim):
            dtype, shapes, addresses, bits, dense = tensors[0].dtype, [], [], WIDEST, True
            for part in tensors:
                if part.dtype != dtype:
                    raise ValueError("dtypes differ")
                shapes.append(part.shape)
                address = part.data.ptr
                addresses.append(address)
                bits |= address
                dense = dense and part._c_contiguous
            found, launch, grid, rest = planned[tuple(shapes), dim, dtype.itemsize, bits & -bits]
            result = empty(found.shape, dtype)
            if dense and launch:
                launch(grid, BLOCK, (pointers(tuple(addresses), MOST_PARTS), result, *rest))
            elif result.size:
                in_launches(tensors, dim, found, result)
            return result

        def prepare(shapes, dim, itemsize, alignment):
            """The plan, and what launches it (None if more than one launch is needed), the blocks, and the arguments
            behind the arrays."""
            found = plan(op, shapes, dim, itemsize)
            stretches = tuple([(first, width) for *_, first, width in found.parts])
            if not len(shapes) == len(stretches) <= MOST_PARTS or not found.rows * found.row:
                return found, None, None, ()
            unit = widest_unit(reduce(or_, chain(*stretches), alignment | found.row))
            grid, parts = geometry(stretches, found.rows, unit)
            return found, join[unit], (grid,), (parts, found.rows, found.row // unit)

        def in_launches(tensors, dim, found, result):
            """Join arrays of any strides, or more of them than one launch joins."""
            before = (slice(None),) * (dim % len(found.shape))
            stretches, addresses, bits = [], [], result.data.ptr | found.row
            for number, start, length, first, width in found.parts:
                part = tensors[number]
                if part._c_contiguous:
                    stretches.append((first, width))
                    addresses.append(part.data.ptr)
                    bits |= addresses[-1] | first | width
                else:
                    along = start if op == "stack" else slice(start, start + length)
                    copying.copy(result[(*before, along, ...)], part)
            unit = widest_unit(bits)
            for first in range(0, len(addresses), MOST_PARTS):
                grid, parts = geometry(tuple(stretches[first : first + MOST_PARTS]), found.rows, unit)
                sources = pointers(tuple(addresses[first : first + MOST_PARTS]), MOST_PARTS)
                join[unit]((grid,), BLOCK, (sources, result, parts, found.rows, found.row // unit))

        planned, empty = Planned(prepare), cuda.empty
        return Kernel(op, kernel)

    # -- repeating ----------------------------------------------------------------------------------------------------
    def repeat(input, repeats):
        result = cuda.empty(shape_rule("repeat")(input.shape, repeats), input.dtype)
        if result.size:
            sizes = (1,) * (len(repeats) - input.ndim) + input.shape
            once = input[(None,) * (len(repeats) - input.ndim) + (...,)]
            once = once[tuple([part for _ in repeats for part in (None, slice(None))])]
            copying.copy(result.reshape([n for pair in zip(repeats, sizes) for n in pair]), once)
        return result

    def repeated_positions(repeats):
        """Waits for the device: the size of the result is the sum of the repeats."""
        if repeats.ndim != 1:
            raise ValueError("the repeats are not a vector")
        n, dtype = repeats.size, repeats.dtype
        if not n:
            return cuda.empty((0,), dtype)
        repeats, grid = cuda.dense(repeats), blocks(n, CHUNK)
        sums, ends = cuda.empty(grid, np.int64), cuda.empty((n,), np.int64)
        sum_chunks[dtype](grid, (THREADS,), (repeats, sums, n, cuda.device_asserts.address, negative))
        find_ends[dtype](grid, (THREADS,), (repeats, sums, ends, n))
        total = cuda.number(ends[-1:])
        result = cuda.empty((total,), dtype)
        if total:
            repeat_positions[dtype](blocks(total), (THREADS,), (ends, result, n, total))
        return result

    # -- reordering ---------------------------------------------------------------------------------------------------
    def flip(input, dims):
        steps = [1] * input.ndim
        for dim in dims:
            steps[dim] = -steps[dim]
        if steps.count(-1) != len(dims):
            raise ValueError("a dimension is named twice")
        return copying.dense(input[tuple([slice(None, None, step) for step in steps])])

    def roll(input, shifts, dims):
        shifts, dims = roll_arguments(shifts, dims)
        if not dims:
            return roll(cuda.dense(input).reshape(-1), shifts, (0,)).reshape(input.shape)
        offsets = [0] * input.ndim
        for shift, dim in zip(shifts, dims):
            offsets[dim] = (offsets[dim] - shift) % max(input.shape[dim], 1)
        return move_rolled(input, input.shape, tuple(offsets))

    # -- triangles ----------------------------------------------------------------------------------------------------
    def triangle(op, lower):
        def kernel(input, diagonal):
            if input.ndim < 2:
                raise ValueError("fewer than 2 dimensions")
            return move_triangle(input, input.shape, (0,) * input.ndim, diagonal, lower, kept=2)

        return Kernel(op, kernel)

    return [
        Kernel("flip", flip),
        Kernel("repeat", repeat),
        Kernel("repeated_positions", repeated_positions, offered(INTEGERS)),
        Kernel("roll", roll),
        joining("cat"),
        joining("stack"),
        triangle("tril", True),
        triangle("triu", False),
    ]
