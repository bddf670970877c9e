"""Random numbers: the kinds of docs/random.md."""

from __future__ import annotations

from functools import lru_cache
from math import inf, log1p, prod
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.errors import CaptureError
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, COMPLEX, FLOATS, NUMBERS, REALS, THREADS, blocks, offered
from corefw_cupy.ordering import ordering

_ALL, _HALF = 1 << 64, 1 << 63  # numbers of 64 bits, and the signed ones from zero on
_EVERY = {**NUMBERS, **BOOL}
_FLOAT32, _FLOAT64, _INT64, _UINT64 = (np.dtype(name) for name in ("f4", "f8", "i8", "u8"))
_LARGEST = {  # float64 that an integer dtype holds; there is no limit for others
    d.numpy: float(2**bits - 2 ** max(bits - 53, 0))
    for d in dtypes.ALL
    if d.numpy.kind in "iu"
    for bits in [8 * d.itemsize - (d.numpy.kind == "i")]
}


def word(number: int) -> int:
    """An integer modulo 2^64 in the range that an argument of a launch has."""
    number %= _ALL
    return number - _ALL if number >= _HALF else number


def place(cuda: Cuda, seed: Any, offset: int) -> tuple[int, int, Any]:
    """Where a stream is read from, as three arguments of a launch: in a graph, the seed is the generator's state."""
    if isinstance(seed, int):
        if cuda.capturing.capture is not None:
            raise CaptureError(
                "each replay would draw the same numbers: give the generator to CUDAGraph.register_generator_state "
                "before the capture"
            )
        return word(seed), word(offset), 0
    return 0, word(offset), seed.for_launch()


def drawing_blocks(n: int, itemsize: int, per_block: int) -> tuple[int]:
    """The grid in which a thread writes 16 bytes, or what one block of the stream gives if that is more."""
    return blocks(-(-n // max(16 // itemsize, per_block)))


@lru_cache(maxsize=256)
def _bounds(low: float, high: float, real: np.dtype) -> tuple[float, float, float]:
    """``low``, ``high - low`` and the largest number below `high`, rounded as the specification says."""
    computed = _FLOAT64 if real == _FLOAT64 else _FLOAT32
    bottom, top = (np.asarray(bound, real) for bound in (low, high))
    largest = np.nextafter(top, bottom) if bottom < top else bottom
    return float(bottom), float(top.astype(computed) - bottom.astype(computed)), float(largest)


def _whole_kinds(cuda: Cuda) -> list[Kernel]:
    """The kinds whose values are whole numbers, of any real dtype, and what is made of them."""
    empty, copying, sorts = cuda.empty, cuda.copying, ordering(cuda)
    integers = cuda.function("random/random_counts.cu", "integers", T=_EVERY)
    geometric = cuda.function("random/random_counts.cu", "geometric", T=NUMBERS)
    bernoulli = cuda.function("random/random_counts.cu", "bernoulli", T=_EVERY, P=REALS)

    def integers_at(size, seed, offset, low, high, dtype):
        signed = high <= _HALF
        if not (-_HALF if signed else 0) <= low < high <= _ALL:
            raise ValueError(f"integers_at: [{low}, {high}) is empty, or no type of 64 bits holds it")
        out = empty(size, dtype)
        if n := out.size:
            drawn = (out, n, *place(cuda, seed, offset), word(low), word(high - low), signed)
            integers[dtype](drawing_blocks(n, dtype.itemsize, 2), (THREADS,), drawn)
        return out

    def geometric_at(size, seed, offset, p, dtype):
        out = empty(size, dtype)
        if n := out.size:
            log_failure = log1p(-p) if p < 1 else -inf
            drawn = (out, n, *place(cuda, seed, offset), log_failure, _LARGEST.get(dtype, inf))
            geometric[dtype](drawing_blocks(n, dtype.itemsize, 2), (THREADS,), drawn)
        return out

    def bernoulli_at(p, size, seed, offset, dtype):
        out, computed = empty(size, dtype), _FLOAT64 if dtype == _FLOAT64 else _FLOAT32
        n, single = out.size, p.size == 1
        if not single:
            probabilities = empty(size, computed)
            copying.copy(probabilities, p)
        else:
            probabilities = p if p.dtype in REALS else copying.cast(p, computed)
        if n:
            drawn = (out, n, *place(cuda, seed, offset), probabilities, single)
            grid = drawing_blocks(n, dtype.itemsize, 2 if computed is _FLOAT64 else 4)
            bernoulli[dtype, probabilities.dtype](grid, (THREADS,), drawn)
        return out

    def permutation_at(n, seed, offset, dtype):
        if n == 0:
            return empty((0,), dtype)
        order = sorts.first(integers_at((n,), seed, offset, 0, _ALL, _UINT64), n, 0, False)[1]
        return order if dtype == _INT64 else copying.cast(order, dtype)

    return [
        Kernel("bernoulli_at", bernoulli_at, offered(_EVERY)),
        Kernel("geometric_at", geometric_at, offered(NUMBERS)),
        Kernel("integers_at", integers_at, offered(_EVERY)),
        Kernel("permutation_at", permutation_at, offered(NUMBERS)),
    ]


def _real_kinds(cuda: Cuda) -> list[Kernel]:
    """The kinds whose values are fractions."""

    def drawing(name, launched):
        """The function `name` over new arrays of real numbers, or of the parts of complex ones."""
        function = cuda.function("random/random.cu", name, T=FLOATS)

        def draw(size, seed, offset, *arguments):
            *parameters, dtype = arguments
            out = cuda.empty(size, dtype)
            if n := out.size:
                parts = dtype.kind == "c"
                real = np.dtype(f"f{dtype.itemsize // 2}") if parts else dtype
                n *= 1 + parts
                drawn = (out, n, *place(cuda, seed, offset), *launched(real, parts, *map(float, parameters)))
                function[real](drawing_blocks(n, real.itemsize, 2 if real == _FLOAT64 else 4), (THREADS,), drawn)
            return out

        return draw

    def uniform(real, parts, low, high):
        return (0.0, 1.0, 1.0) if low == 0 and high == 1 else _bounds(low, high, real)

    def normal(real, parts, mean, std):
        return (-1.0, mean, 0.0, std) if parts else (-2.0, mean, mean, std)

    def given(real, parts, *parameters):
        return parameters

    complex_too = offered({**FLOATS, **COMPLEX})
    return [
        Kernel("uniform_at", drawing("uniform", uniform), complex_too),
        Kernel("normal_at", drawing("normal", normal), complex_too),
        *(
            Kernel(f"{name}_at", drawing(name, given), offered(FLOATS))
            for name in ("cauchy", "exponential", "log_normal")
        ),
    ]


def _by_weights(cuda: Cuda) -> list[Kernel]:
    """Draws in proportion to weights."""
    empty, sorts = cuda.empty, ordering(cuda)
    row_sums, draw_by_sums, arrivals, first_arrival = (
        cuda.function("random/multinomial.cu", name, T=FLOATS)
        for name in ("row_sums", "draw_by_sums", "arrivals", "first_arrival")
    )

    def multinomial_at(input, num_samples, replacement, seed, offset):
        weights, count = cuda.dense(input), input.shape[-1]
        if num_samples < 0 or (not replacement and num_samples > count) or (num_samples and not count):
            raise ValueError("more samples than weights")
        *batch, _ = input.shape
        key, state = input.dtype, place(cuda, seed, offset)
        if not replacement and num_samples != 1:
            times = empty(input.shape, _FLOAT64)
            if n := times.size:
                arrivals[key](blocks(n), (THREADS,), (weights, times, n, *state))
            return sorts.first(times, num_samples, input.ndim - 1, False)[1]
        out, rows = empty((*batch, num_samples), _INT64), prod(batch)
        if not out.size:
            return out
        if not replacement:
            first_arrival[key]((rows,), (THREADS,), (weights, out, count, *state))
            return out
        sums = empty(input.shape, _FLOAT64)
        row_sums[key]((rows,), (THREADS,), (weights, sums, count))
        draw_by_sums[key](blocks(out.size), (THREADS,), (sums, out, out.size, count, num_samples, *state))
        return out

    return [Kernel("multinomial_at", multinomial_at, offered(FLOATS))]


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    return [*_whole_kinds(cuda), *_real_kinds(cuda), *_by_weights(cuda)]
