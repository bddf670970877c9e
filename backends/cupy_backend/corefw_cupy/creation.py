"""Arrays of one value, and the conversion of element types."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copying = cuda.copying

    def zeros_at(size, dtype):
        return copying.full(size, 0, dtype)

    def cast(input, dtype, copy):
        return copying.cast(input, dtype) if copy or input.dtype != dtype else input

    return [Kernel("cast", cast), Kernel("full_at", copying.full), Kernel("zeros_at", zeros_at)]
