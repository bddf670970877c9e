"""Writing and combining values with the elements of arrays at given positions, where equal positions may meet.

Threads that meet at an element take turns in any order, so that sums of floating numbers may differ in their last
bits from one run to the next, and that it is not said which of several values is written. Where deterministic
algorithms are asked for, the work is done in order (in_order.py).

Half types are added up in float32, in a copy of the array: packed additions of halves would round each sum to 8 or 11
bits, and to sort the positions first would leave all values for a frequent one to a single thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from corefw.dispatch.settings import settings
from corefw_cupy.cuda import Cuda
from corefw_cupy.in_order import ORDERED, InOrder
from corefw_cupy.launch import BOOL, COMPLEX, HALVES, INTEGERS, REALS, THREADS, blocks
from corefw_cupy.pointwise_function import SIZES, Pointwise
from corefw_cupy.positions import INDICES, Grid, check_index, positions, steps_over, walk

FLOAT32 = np.dtype(np.float32)
#: how elements may be combined, as in combining.cuh
REDUCTIONS = {"sum": "Sums", "prod": "Products", "amax": "Maxima", "amin": "Minima"}
_SUM = {"sum": "Sums"}
_FLOAT32 = {FLOAT32: "float32"}


class Combining:
    """Functions that combine values with elements."""

    def __init__(self, cuda: Cuda):
        self.cuda, self.copying, self.at = cuda, cuda.copying, positions(cuda)

        def combining(types, reductions, **values):
            return cuda.function(
                "indexing/combining.cu", "combine_at", T=types, REDUCE=reductions, I=INDICES, SIZE=SIZES, **values
            )

        self.of_reals = combining({**REALS, **INTEGERS, **BOOL}, REDUCTIONS)
        self.of_complex = combining(COMPLEX, _SUM)
        self.of_halves = combining(_FLOAT32, REDUCTIONS, V=HALVES)
        self.in_fours = cuda.function(
            "indexing/combining_fours.cu", "add_fours_at", V={**_FLOAT32, **HALVES}, I=INDICES, SIZE=SIZES
        )
        self.capabilities: dict[int, int] = {}  # the first number of each, by device
        self.in_order = InOrder(cuda)
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
        check_index(index.dtype)
        if not index.size:
            return
        dtype = array.dtype
        index, values = self.at.apart(array, index), self.at.apart(array, values)
        steps = steps_over(values, grid.shape)
        number = {"f": float, "c": complex}.get(dtype.kind, int)(factor)
        in_order = (settings.deterministic and dtype.kind in "fc") or (dtype in COMPLEX and reduce == "prod")
        if in_order and reduce in ORDERED:
            self.in_order.combine(array, grid, index, values, steps, kind, reduce, number)
            return
        fours = dtype == FLOAT32 and reduce == "sum" and array.data.ptr % 16 == 0 and self._adds_fours()
        sizes = dtype.itemsize, index.dtype.itemsize, values.dtype.itemsize
        found = walk(grid, steps, *sizes, together=4 if fours else 1)
        key = (dtype, reduce, index.dtype, found.wide)
        if found.together == 4:
            function = self.in_fours[values.dtype, index.dtype, found.wide]
        elif values.dtype != dtype:
            function = self.of_halves[(*key, values.dtype)]
        else:
            function = (self.of_complex if dtype in COMPLEX else self.of_reals)[key]
        if found.n:
            address = self.cuda.device_asserts.address
            function(blocks(found.n), (THREADS,), (array, index, values, found.struct, number, address, kind))

    def _adds_fours(self) -> bool:
        """Whether the current device adds four numbers of float32 to its memory in one transaction."""
        runtime = self.cuda.xp.cuda.runtime
        device = runtime.getDevice()
        if device not in self.capabilities:
            self.capabilities[device] = runtime.getDeviceProperties(device)["major"]
        return self.capabilities[device] >= 9

    def write(self, array, grid: Grid, index, values, kind: int) -> None:
        """Write values, which broadcast to the grid and have the dtype of the array, to its elements."""
        if settings.deterministic:
            check_index(index.dtype)
            index, values = self.at.apart(array, index), self.at.apart(array, values)
            self.in_order.write(array, grid, index, values, steps_over(values, grid.shape), kind)
        else:
            self.at.write(array, grid, index, values, kind)

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
