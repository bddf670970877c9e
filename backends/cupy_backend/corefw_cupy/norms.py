"""Norms of the elements over dimensions."""

from __future__ import annotations

from math import inf

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import offered
from corefw_cupy.reducing import Reduction
from corefw_cupy.reduction import FIELDS

#: the dtypes of moduli, by those of the elements
REAL = {dtype: dtype.type(0).real.dtype if dtype.kind == "c" else dtype for dtype in FIELDS}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def norm(operation, empty=True):
        return Reduction(cuda, "reduction/norms.cu", operation, FIELDS, REAL, empty)

    powers, inverse_powers = norm("Powers"), norm("Powers", empty=False)
    norms = {
        0: norm("NonzeroModuli"),
        1: norm("Moduli"),
        2: norm("Euclidean"),
        inf: norm("LargestModulus", empty=False),
        -inf: norm("SmallestModulus", empty=False),
    }

    def vector_norm(input, ord, dim, keepdim):
        reduce = norms.get(ord) or (powers if ord > 0 else inverse_powers)
        return reduce(input, dim, keepdim, float(ord))

    return [Kernel("vector_norm", vector_norm, offered(FIELDS))]
