"""Reductions: sums, products, means and logical summaries over some or all dimensions."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, COMPLEX, FLOATS, INTEGERS, offered
from corefw_cupy.reducing import Reduction

WHOLE = {**INTEGERS, **BOOL}
FIELDS = {**FLOATS, **COMPLEX}
INT64, UINT8, TRUTH = map(np.dtype, (np.int64, np.uint8, np.bool_))
#: the dtypes of sums and products, by those of the elements
SUMS = {dtype: INT64 if dtype in WHOLE else dtype for dtype in (*WHOLE, *FIELDS)}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    every, real = {**WHOLE, **FIELDS}, {**WHOLE, **FLOATS}
    counts = dict.fromkeys(every, INT64)
    truths = {**dict.fromkeys(every, TRUTH), UINT8: UINT8}

    def offer(op, operation, types, result=None, file="reduction/reduction.cu"):
        return Kernel(op, Reduction(cuda, file, operation, types, result), offered(types))

    multiply = Reduction(cuda, "reduction/reduction.cu", "Product", every, SUMS)

    def product(input, dim, keepdim):
        return multiply(input, None if dim is None else (dim,), keepdim)

    return [
        offer("sum", "Total", every, SUMS),
        offer("mean", "Mean", FIELDS),
        offer("nansum", "TotalOfNumbers", real, SUMS),
        Kernel("prod", product, offered(every)),
        offer("all", "All", every, truths),
        offer("any", "Any", every, truths),
        offer("count_nonzero", "Nonzero", every, counts),
        offer("logsumexp", "LogSumExp", FIELDS, file="reduction/logsumexp.cu"),
    ]
