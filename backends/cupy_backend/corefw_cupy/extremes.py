"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, NUMBERS, offered
from corefw_cupy.reducing import Reduction

ORDERED = {**NUMBERS, **BOOL}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def reduction(operation):
        return Reduction(cuda, "reduction/extremes.cu", operation, ORDERED, empty=False)

    def position(found):
        def kernel(input, dim, keepdim):
            if dim is not None:
                return found.positions(input, (dim,), keepdim)
            positions = found.positions(cuda.dense(input).reshape(-1), None, False)
            return positions.reshape((1,) * input.ndim) if keepdim else positions

        return kernel

    def element(found):
        return lambda input, dim, keepdim: found.elements(input, (dim,), keepdim)

    first_largest, first_smallest = reduction("FirstLargest"), reduction("FirstSmallest")
    functions = {
        "amax": reduction("Largest"),
        "amin": reduction("Smallest"),
        "argmax": position(first_largest),
        "argmin": position(first_smallest),
        "max_dim": element(first_largest),
        "min_dim": element(first_smallest),
    }
    return [Kernel(op, function, offered(ORDERED)) for op, function in functions.items()]
