"""The rates of optimizer steps, computed on the device from what lies there: learning rates and counts of steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import REALS, THREADS, blocks
from corefw_cupy.parameter_lists import tables

_FLOAT64 = np.dtype("f8")


class DeviceRates:
    """Arrays of rates, a row for each parameter, that the device fills in a launch before the step's."""

    def __init__(self, cuda: Cuda):
        self.empty, self.copying, self.array_type = cuda.empty, cuda.copying, cuda.xp.ndarray
        self.sgd_rates = cuda.function("optimizer/rates.cu", "sgd_rates", T=REALS)
        self.adam_rates = cuda.function("optimizer/rates.cu", "adam_rates", T=REALS)

    def counts(self, steps: list) -> bool:
        """Whether the counts of steps lie on the device."""
        return bool(steps) and steps[0].__class__ is self.array_type

    def sgd(self, lr: Any, firsts: list[float]) -> Any:
        """For `sgd_step`: the learning rate, and whether each parameter's step is its first."""
        rates, lr = self.empty((len(firsts), 2), _FLOAT64), self._float64(lr)
        for table in tables(0, 1, [1] * len(firsts)):
            begin, n = table.begin, table.end - table.begin
            table.rates[...] = firsts[begin : table.end]
            self.sgd_rates[_FLOAT64](blocks(n), (THREADS,), (table.struct, n, rates[begin:], lr))
        return rates

    def adam(self, steps: list, lr: Any, beta1: float, beta2: float, decoupled_decay: float) -> Any:
        """For `adam_step`, whose counts of steps go on by one; `lr` is a number or an array."""
        rates, dtype = self.empty((len(steps), 3), _FLOAT64), steps[0].dtype
        if any(step.__class__ is not self.array_type or step.dtype != dtype for step in steps):
            raise ValueError("counts of steps differ in their dtype, or lie on the host and on the device")
        given = (lr, 0) if lr.__class__ is float else (0.0, self._float64(lr))
        for table in tables(1, 0, [1] * len(steps)):
            begin, n = table.begin, table.end - table.begin
            table.arrays[0] = [step.data.ptr for step in steps[begin : table.end]]
            options = (*given, float(beta1), float(beta2), decoupled_decay)
            self.adam_rates[dtype](blocks(n), (THREADS,), (table.struct, n, rates[begin:], *options))
        return rates

    def _float64(self, lr: Any) -> Any:
        return lr if lr.dtype == _FLOAT64 else self.copying.cast(lr, _FLOAT64)
