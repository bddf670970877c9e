"""Writing and combining values at positions in the order of the index array, whatever the device works on first.

The places of the elements are sorted; one thread writes the last value for an element, or combines all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BITS, COMPLEX, HALVES, REALS, THREADS, argument, blocks
from corefw_cupy.ordering import UINT64, ordering
from corefw_cupy.positions import INDICES, Axis, Grid, Walk, walk

#: the combinations of floating numbers that depend on the order, as in combining.cuh
ORDERED = {"sum": "Sums", "prod": "Products"}
_INT64, _FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)
_ORDERED = np.dtype([("keys", "u8"), ("order", "u8"), ("lowest", "i8"), ("nowhere", "i8")])


class Places(NamedTuple):
    """The elements of a grid by their places: the struct Ordered in ordered.cuh, the arrays that it points to, and the
    walks over the dimensions that the index array steps through, and over the others."""

    struct: np.ndarray
    arrays: tuple
    outer: Walk
    inner: Walk

    @property
    def n(self) -> int:
        """How many elements there are."""
        return self.outer.n * self.inner.n


class InOrder:
    """Functions that work in order."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.ordering = cuda, ordering(cuda)

        def combining(types, **values):
            return cuda.function(
                "indexing/ordered_combining.cu",
                "combine_in_order",
                T=types,
                REDUCE=ORDERED,
                I=index,
                SIZE=wide,
                **values,
            )

        index, wide = {_INT64: "int64"}, {True: "int64"}
        self.place_keys = cuda.function(
            "indexing/ordered_moves.cu", "place_keys", I=INDICES, T={8: "bits64"}, SIZE=wide
        )
        self.write_last = cuda.function("indexing/ordered_moves.cu", "write_last", I=index, T=BITS, SIZE=wide)
        self.of_reals = combining({**REALS, **COMPLEX})
        self.of_halves = combining({_FLOAT32: "float32"}, V=HALVES)

    def places(self, array, grid: Grid, index, values, steps: tuple[int, ...], kind: int) -> Places:
        """The elements of a grid, sorted by their places in an array."""
        sizes = array.dtype.itemsize, index.dtype.itemsize, values.dtype.itemsize
        dims = range(len(grid.shape))
        chosen = [d for d in dims if grid.index_steps[d] or not grid.steps[d]]

        def part(dims, axis):
            own = [tuple([numbers[d] for d in dims]) for numbers in (grid.shape, grid.steps, grid.index_steps, steps)]
            return walk(Grid(own[0], own[1], own[2], axis), own[3], *sizes, wide=True)

        outer, inner = part(chosen, grid.axis), part([d for d in dims if d not in chosen], Axis(1, 0, 0, False))
        spans = [(grid.steps[d], grid.shape[d]) for d in chosen] + [(grid.axis.step, grid.axis.size)]
        reaches = [step // sizes[0] * max(0, size - 1) for step, size in spans]
        lowest, nowhere = sum(min(0, reach) for reach in reaches), sum(map(abs, reaches)) + 1
        keys = self.cuda.empty((1, outer.n), UINT64)
        arguments = (index, keys, outer.struct, lowest, nowhere, self.cuda.device_asserts.address, kind)
        self.place_keys[index.dtype, 8, True](blocks(outer.n), (THREADS,), arguments)
        keys, order = self.ordering.sort_keys(keys, nowhere.bit_length())
        struct = argument(np.array([(keys.data.ptr, order.data.ptr, lowest, nowhere)], _ORDERED))
        return Places(struct, (keys, order), outer, inner)

    def write(self, array, grid: Grid, index, values, steps: tuple[int, ...], kind: int) -> None:
        """Write the last value for each element."""
        if 0 in grid.shape:
            return
        found = self.places(array, grid, index, values, steps, kind)
        arguments = (array, values, found.struct, found.outer.struct, found.inner.struct)
        self.write_last[_INT64, array.dtype.itemsize, True](blocks(found.n), (THREADS,), arguments)

    def combine(self, array, grid: Grid, index, values, steps: tuple[int, ...], kind: int, reduce: str, factor) -> None:
        """Combine all values for each element with it, times a factor."""
        if 0 in grid.shape:
            return
        found = self.places(array, grid, index, values, steps, kind)
        key = (array.dtype, reduce, _INT64, True)
        function = self.of_reals[key] if values.dtype == array.dtype else self.of_halves[(*key, values.dtype)]
        arguments = (array, values, found.struct, found.outer.struct, found.inner.struct, factor)
        function(blocks(found.n), (THREADS,), arguments)
