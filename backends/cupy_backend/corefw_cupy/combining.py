"""Combining values with the elements of arrays at given positions, where equal positions may meet.

Threads that meet at an element take turns in any order, so that sums of floating numbers may differ in their last
bits from one run to the next. Where deterministic algorithms are asked for, the positions are sorted, and one thread
combines all values for an element in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from corefw.dispatch.registry import registry
from corefw_cupy.launch import BOOL, COMPLEX, HALVES, INTEGERS, REALS, THREADS, blocks
from corefw_cupy.ordering import UINT64, ordering
from corefw_cupy.pointwise_function import SIZES, Pointwise
from corefw_cupy.positions import INDICES, INT64, Axis, Grid, check_index, positions, steps_over, walk

if TYPE_CHECKING:
    from corefw_cupy.cuda import Cuda

FLOAT32 = np.dtype(np.float32)
#: how elements may be combined, as in combining.cuh
REDUCTIONS = {"sum": "Sums", "prod": "Products", "amax": "Maxima", "amin": "Minima"}
_SUM = {"sum": "Sums"}
_ORDERED = {"sum": "Sums", "prod": "Products"}  # those of floating numbers depend on the order
_FLOAT32, _INT64, _WIDE = {FLOAT32: "float32"}, {INT64: "int64"}, {True: "int64"}


class Combining:
    """Functions that combine values with elements."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.copying, self.at = cuda, cuda.copying, positions(cuda)

        def combining(types, reductions, **values):
            return cuda.function(
                "combining.cu", "combine_at", T=types, REDUCE=reductions, I=INDICES, SIZE=SIZES, **values
            )

        self.of_reals = combining({**REALS, **INTEGERS, **BOOL}, REDUCTIONS)
        self.of_complex = combining(COMPLEX, _SUM)
        self.of_halves = combining(_FLOAT32, REDUCTIONS, V=HALVES)

        def in_order(types, **values):
            return cuda.function(
                "ordered_combining.cu", "combine_in_order", T=types, REDUCE=_ORDERED, I=_INT64, SIZE=_WIDE, **values
            )

        self.order = ordering(cuda)
        self.element_keys = cuda.function(
            "ordered_combining.cu", "element_keys", I=INDICES, T=_FLOAT32, REDUCE=_SUM, SIZE=_WIDE
        )
        self.in_order = in_order({**REALS, **COMPLEX})
        self.halves_in_order = in_order(_FLOAT32, V=HALVES)
        self.quotients = {
            kinds: Pointwise(cuda, f"average_{kinds}", ("T", "int64"), 0, "int64", "T", formula, {"T": types})
            for kinds, formula, types in (
                ("iu", "y ? T(divided_down(x, T(y))) : x", INTEGERS),
                ("f", "y ? x / T(y) : x", REALS),
                ("c", "y ? x / T(y) : x", COMPLEX),
            )
        }

    def combine(self, array, grid: Grid, index, values, kind: int, reduce: str = "sum", factor=1) -> None:
        """Combine values, which broadcast to the grid, times a factor with its elements.

        The values have the dtype of the array, or a half type where the array is of float32.
        """
        check_index(index)
        if not index.size:
            return
        dtype = array.dtype
        values = self.at.apart(array, values)
        steps = steps_over(values, grid.shape)
        number = {"f": float, "c": complex}.get(dtype.kind, int)(factor)
        if reduce in _ORDERED and (
            (registry.deterministic and dtype.kind in "fc") or (dtype in COMPLEX and reduce == "prod")
        ):
            self._combine_in_order(array, grid, index, values, steps, kind, reduce, number)
            return
        found = walk(grid, steps, dtype.itemsize, index.dtype.itemsize, values.dtype.itemsize)
        key = (dtype, reduce, index.dtype, found.wide)
        if values.dtype != dtype:
            function = self.of_halves[(*key, values.dtype)]
        else:
            function = (self.of_complex if dtype in COMPLEX else self.of_reals)[key]
        if found.n:
            address = self.cuda.faults.address
            function(blocks(found.n), (THREADS,), (array, index, values, found.struct, number, address, kind))

    def _combine_in_order(self, array, grid, index, values, steps, kind, reduce, factor) -> None:
        sizes = array.dtype.itemsize, index.dtype.itemsize, values.dtype.itemsize
        dims = range(len(grid.shape))
        outer = [d for d in dims if grid.index_steps[d] or not grid.steps[d]]

        def part(chosen, axis):
            own = [tuple([numbers[d] for d in chosen]) for numbers in (grid.shape, grid.steps, grid.index_steps, steps)]
            return walk(Grid(own[0], own[1], own[2], axis), own[3], *sizes, wide=True)

        outer_walk = part(outer, grid.axis)
        inner_walk = part([d for d in dims if d not in outer], Axis(1, 0, 0, False))
        n = outer_walk.n * inner_walk.n
        if not n:
            return
        spans = [(grid.steps[d], grid.shape[d]) for d in outer] + [(grid.axis.step, grid.axis.size)]
        reaches = [step // sizes[0] * max(0, size - 1) for step, size in spans]
        lowest, nowhere = sum(min(0, reach) for reach in reaches), sum(map(abs, reaches)) + 1
        keys = self.cuda.empty((1, outer_walk.n), UINT64)
        self.element_keys[index.dtype, FLOAT32, "sum", True](
            blocks(outer_walk.n),
            (THREADS,),
            (index, keys, outer_walk.struct, lowest, nowhere, self.cuda.faults.address, kind),
        )
        keys, order = self.order.sort_keys(keys, nowhere.bit_length())
        key = (array.dtype, reduce, INT64, True)
        function = self.in_order[key] if values.dtype == array.dtype else self.halves_in_order[(*key, values.dtype)]
        function(
            blocks(n),
            (THREADS,),
            (array, values, keys, order, outer_walk.struct, inner_walk.struct, factor, lowest, nowhere),
        )

    def average(self, array, counts) -> None:
        """Divide elements by numbers of type int64, unless these are 0; integers are rounded down."""
        quotient = next(function for kinds, function in self.quotients.items() if array.dtype.kind in kinds)
        quotient((array.dtype,), array.dtype, (array, counts), (), array)

    def wide(self, array, change: Callable) -> None:
        """Call `change` with an array of a type that elements are combined in, which becomes this array's content."""
        if array.dtype in HALVES:
            sums = self.copying.cast(array, FLOAT32)
            change(sums)
            self.copying.copy(array, sums)
        else:
            change(array)


@cache
def combining(cuda: Cuda) -> Combining:
    """The functions that all families share."""
    return Combining(cuda)
