"""The kernels of Fourier transforms; the reference is their sum."""

import math

import numpy as np

from corefw.testing.case import Case

COMPLEX = ("complex64", "complex128")


def _sum_along(a, dim, sign):
    """sum over k of exp(sign 2 pi i j k / n) a[k], along one dimension."""
    n = a.shape[dim]
    waves = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    return np.moveaxis(np.tensordot(waves, a, (1, dim)), 0, dim)


def _factor(count, norm, forward):
    """What a transform of so many elements is multiplied by."""
    return {"ortho": 1 / math.sqrt(count), "forward" if forward else "backward": 1 / count}.get(norm, 1)


def c2c(input, dim, norm, forward):
    for d in dim:
        input = _sum_along(input, d, -1 if forward else 1)
    return input * _factor(math.prod(input.shape[d] for d in dim), norm, forward)


def r2c(input, dim, norm):
    return np.take(c2c(input, dim, norm, True), range(input.shape[dim[-1]] // 2 + 1), dim[-1])


def c2r(input, dim, norm, size):
    for d in dim[:-1]:
        input = _sum_along(input, d, 1)
    half = np.moveaxis(input, dim[-1], 0)[: size // 2 + 1]
    other_half = half[1 : (size + 1) // 2][::-1].conj()
    whole = np.moveaxis(np.concatenate([half, other_half]), 0, dim[-1])
    count = math.prod(whole.shape[d] for d in dim)
    return _sum_along(whole, dim[-1], 1).real * _factor(count, norm, False)


def row(name: str, reference, attributes, dtypes=COMPLEX) -> Case:
    return Case(name, reference, (((3, 4),), ((2, 4, 3),)), attributes, dtypes=dtypes, special=False)


CASES = (
    row(
        "fft_c2c",
        c2c,
        tuple(
            {"dim": dim, "norm": norm, "forward": forward}
            for dim, norm in (((0,), "backward"), ((1, 0), "ortho"), ((0, 1), "forward"))
            for forward in (True, False)
        ),
    ),
    row(
        "fft_r2c",
        r2c,
        ({"dim": (0,), "norm": "backward"}, {"dim": (1, 0), "norm": "ortho"}, {"dim": (0, 1), "norm": "forward"}),
        ("float32", "float64"),
    ),
    row(
        "fft_c2r",
        c2r,
        ({"dim": (0, 1), "norm": "backward", "size": 6}, {"dim": (0, 1), "norm": "ortho", "size": 7}),
    ),
)
