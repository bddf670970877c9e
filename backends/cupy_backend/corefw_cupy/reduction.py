"""Reductions: sums, products, means and logical summaries over some or all dimensions."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, COMPLEX, FLOATS, INTEGERS, NUMBERS, offered
from corefw_cupy.reducing import Reduction

_WHOLE = {**INTEGERS, **BOOL}
_EVERY = {**NUMBERS, **BOOL, **COMPLEX}
_SUMS = {dtype: np.dtype(np.int64) if dtype in _WHOLE else dtype for dtype in _EVERY}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def offer(op, operation, types, result=None):
        return Kernel(op, Reduction(cuda, "reduction.cu", operation, types, result), offered(types))

    return [
        offer("sum", "Total", _EVERY, _SUMS),
        offer("mean", "Mean", {**FLOATS, **COMPLEX}),
    ]
