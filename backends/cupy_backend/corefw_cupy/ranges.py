"""Numbers at equal distances, and the identity matrix."""

from __future__ import annotations

from math import prod

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, COMPLEX, INTEGERS, NUMBERS, THREADS, blocks


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    real = {**NUMBERS, **BOOL}
    numbers = {**real, **COMPLEX}
    arange_integers = cuda.function("data_movement/ranges.cu", "arange_integers", T=INTEGERS)
    arange_numbers = cuda.function("data_movement/ranges.cu", "arange_numbers", T=numbers)
    linspace = cuda.function("data_movement/ranges.cu", "linspace", T=real)
    linspace_complex = cuda.function("data_movement/ranges.cu", "linspace_complex", T=COMPLEX)
    eye = cuda.function("data_movement/ranges.cu", "eye", T=numbers)

    def filled(function, shape, dtype, *arguments):
        """A new array that a function writes, 16 bytes with each thread."""
        result, n = cuda.empty(shape, dtype), prod(shape)
        if n:
            function[dtype](blocks(n * dtype.itemsize, 16 * THREADS), (THREADS,), (result, n, *arguments))
        return result

    def arange_at(start, step, count, dtype):
        if dtype.kind in "iu" and type(start) is type(step) is int:
            return filled(arange_integers, (count,), dtype, start, step)
        return filled(arange_numbers, (count,), dtype, float(start), float(step))

    def linspace_at(start, end, steps, dtype):
        function, number = (linspace_complex, complex) if dtype.kind == "c" else (linspace, float)
        if steps == 1:
            end = start
        step = (end - start) / (steps - 1) if steps > 1 else 0
        return filled(function, (steps,), dtype, number(start), number(end), number(step))

    def eye_at(n, m, dtype):
        return filled(eye, (n, m), dtype, m)

    return [Kernel("arange_at", arange_at), Kernel("eye_at", eye_at), Kernel("linspace_at", linspace_at)]
