"""The rates of optimizer steps, computed on the device from what lies there: learning rates and counts of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import REALS, THREADS, blocks
from corefw_cupy.parameter_lists import tables

_FLOAT64 = np.dtype("f8")


class DeviceRates:
    """Arrays of a step's rates, a row for each parameter, that the device fills in a launch before the step's.

    Args:
        cuda: what compiles the launch.
        name: of the CUDA function that computes them.
        rates: how many each parameter has.
    """

    def __init__(self, cuda: Cuda, name: str, rates: int):
        self.empty, self.copying, self.array_type = cuda.empty, cuda.copying, cuda.xp.ndarray
        self.function = cuda.function("optimizer/rates.cu", name, T=REALS)
        self.rates = rates

    def serve(self, counts: Sequence[list], lr: Any) -> bool:
        """Whether the counts of steps lie on the device or, where none are counted, the learning rate."""
        return (counts[0][0] if counts else lr).__class__ is self.array_type

    def __call__(self, params: int, counts: Sequence[list], lr: Any, numbers: Any) -> Any:
        """The rates of so many parameters, whose counts of steps go on by one.

        Args:
            params: how many parameters there are.
            counts: the lists of numbers that a step changes.
            lr: a number or an array.
            numbers: the step's, as an argument of the launch.
        """
        rates = self.empty((params, self.rates), _FLOAT64)
        every = [count for column in counts for count in column]
        dtype = every[0].dtype if every else _FLOAT64
        if any(count.__class__ is not self.array_type or count.dtype != dtype for count in every):
            raise ValueError("counts of steps differ in their dtype, or lie on the host and on the device")
        given = (lr, 0) if lr.__class__ is float else (0.0, self._float64(lr))
        for table in tables(len(counts), 0, [1] * params):
            begin, n = table.begin, table.end - table.begin
            for k, column in enumerate(counts):
                table.arrays[k] = [count.data.ptr for count in column[begin : table.end]]
            self.function[dtype](blocks(n), (THREADS,), (table.struct, n, rates[begin:], *given, numbers))
        return rates

    def _float64(self, lr: Any) -> Any:
        return lr if lr.dtype == _FLOAT64 else self.copying.cast(lr, _FLOAT64)
