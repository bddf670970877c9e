"""Medians and other ranks, variance and deviation."""

from __future__ import annotations

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import offered
from corefw_cupy.norms import REAL
from corefw_cupy.reducing import Reduction
from corefw_cupy.reduction import FIELDS


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def moment(op, operation):
        reduce = Reduction(cuda, "statistics.cu", operation, FIELDS, REAL)

        def kernel(input, dim, keepdim, correction):
            return reduce(input, dim, keepdim, float(correction))

        return Kernel(op, kernel, offered(FIELDS))

    return [moment("variance", "Variance"), moment("deviation", "Deviation")]
