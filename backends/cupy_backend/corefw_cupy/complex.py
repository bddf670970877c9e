"""Complex numbers of two parts; their functions are elementwise."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import REALS, offered
from corefw_cupy.pointwise_function import Pointwise


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    made = Pointwise(cuda, "complex_of_parts", ("T", "T"), 0, "double", "Complex<T>", "Complex<T>(x, y)", {"T": REALS})
    results = {dtype: np.dtype(f"c{2 * dtype.itemsize}") for dtype in REALS}

    def complex(real, imag, out=None):
        if real.dtype != imag.dtype:
            raise ValueError("the parts have different dtypes")
        return made((real.dtype,), results[real.dtype], (real, imag), (), out)

    return [Kernel("complex", complex, offered(REALS), out=True)]
