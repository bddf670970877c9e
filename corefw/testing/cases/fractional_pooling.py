"""Pooling with steps that are fractions."""

from itertools import product
from math import floor

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.pooling import maxima, places


def begins(sample, size, window, count):
    step = (size - window) / (count - 1) if count > 1 else 0
    return [*(floor((i + sample) * step) - floor(sample * step) for i in range(count - 1)), size - window]


def fractional_max_pool(input, kernel_size, output_size, return_indices=True, *, _random_samples):
    n = len(kernel_size)
    order = (1, 0) if n == 2 else (0, 1, 2)
    values = np.zeros((*input.shape[:2], *output_size), input.dtype)
    indices = np.zeros(values.shape, np.int64)
    for image in places(input.shape[:2]):
        sizes = zip(order, input.shape[2:], kernel_size, output_size, strict=True)
        starts = [begins(_random_samples[image][drawn], *extents) for drawn, *extents in sizes]
        windows = [
            (place, list(product(*(range(s[i], s[i] + k) for s, i, k in zip(starts, place, kernel_size, strict=True)))))
            for place in places(output_size)
        ]
        only = tuple(slice(i, i + 1) for i in image)
        values[only], indices[only] = maxima(input[only], (windows, output_size))
    return values, indices


def calls(*several):
    def make(rng, dtype):
        found = []
        for shape, windows, counts in several:
            input = rng.permutation(np.linspace(-3, 3, np.prod(shape))).reshape(shape).astype(dtype)
            samples = {"_random_samples": rng.random((*shape[:2], len(windows))).astype(dtype)}
            options = {"kernel_size": windows, "output_size": counts, "return_indices": True}
            found.append(([input], {**options, **samples}))
        return found

    return make


IMAGES = (((2, 3, 7, 6), (2, 3), (4, 3)), ((1, 2, 5, 4), (3, 1), (1, 4)))
VOLUMES = (((1, 2, 5, 4, 6), (2, 2, 3), (3, 1, 3)),)

CASES = tuple(
    Case(
        f"fractional_max_pool{n}d",
        fractional_max_pool,
        make=calls(*several),
        dtypes=("float32", "float64"),
        constant=(1,),
        special=False,
        wide=False,  # where a window begins depends on the precision
    )
    for n, several in ((2, IMAGES), (3, VOLUMES))
)
