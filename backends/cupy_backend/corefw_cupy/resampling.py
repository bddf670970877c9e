"""Resampling: each dimension as a sum of a few elements per place, whose positions and weights kernels find."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_cupy.cuda import Cuda
from corefw_cupy.division import MOST, divisor_type, divisors
from corefw_cupy.launch import FLOATS, INTEGERS, THREADS, argument, blocks, offered
from corefw_cupy.pointwise_function import SIZES

SPATIAL = 3  # as in resampling.cu
NEAREST = {"nearest": "Nearest", "nearest-exact": "Nearest"}
#: the struct of resampling.cu that a filter means, without and with antialiasing
FILTERS = {**NEAREST, "linear": "Linear", "cubic": "Cubic"}
AVERAGES = {**NEAREST, "linear": "LinearAverage", "cubic": "CubicAverage"}


def reading(
    size: int, count: int, filter: str, align_corners: bool, scale: float | None, antialias: bool, real: type
) -> tuple[float, float, float]:
    """(step, before, after): place i of `count` reads `size` elements around (i + before) * step - after."""
    if align_corners:
        step = real((size - 1) / (count - 1) if count > 1 else 0)
    else:
        step = real(1 / scale if scale else size / count)
    if filter in NEAREST:
        return step, 0 if filter == "nearest" else 0.5, 0
    if antialias:
        return step, 0.5, 0
    return (step, 0, 0) if align_corners else (step, 0.5, 0.5)


@lru_cache(maxsize=4096)
def plan(op: str, shape, sizes, filter, align_corners, scales, antialias, double: bool):
    """The shape of an op's result, whether positions need 64 bits, and the struct Resampling.

    Raises ShapeError for arguments that do not fit.
    """
    result = shape_rule(op)(shape, sizes, filter, align_corners, scales, antialias)
    read, places = (shape, result) if op == "resample" else (result, shape)
    real = np.float64 if double else np.float32
    wide = max(prod(shape), prod(result)) > MOST
    integer = np.dtype("i8" if wide else "i4")
    numbers = [(name, integer) for name in ("size", "count", "missing")]
    reals = [(name, "f8") for name in ("step", "before", "after", "places_of_element")]
    axis: Any = np.dtype([("result", divisor_type(wide)), *numbers, *reals], align=True)
    made = np.zeros(1, np.dtype([("n", "i8"), ("axes", axis, SPATIAL)], align=True))
    made["n"] = prod(result)
    missing = SPATIAL - len(sizes)
    (one,) = divisors((1,), wide)
    axes = [(one, 1, 1, 1, 0, 0, 0, 0)] * missing
    for n, size, count, scale in zip(divisors(result[2:], wide), read[2:], places[2:], scales, strict=True):
        step, *others = reading(size, count, filter, align_corners, scale, antialias, real)
        axes.append((n, size, count, 0, step, *others, 1 / step if step else 0))
    made["axes"][0] = axes
    return result, wide, argument(made)


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    floating = {name: name for name in (*FILTERS.values(), *AVERAGES.values())}
    whole = {name: name for name in NEAREST.values()}

    def resampling(op, types, filters):
        launches = cuda.function("resampling/resampling.cu", op, T=types, FILTER=filters, SIZE=SIZES)

        def kernel(input, sizes, filter, align_corners, scales, antialias):
            dtype, double = input.dtype, input.dtype == np.float64
            shape, wide, struct = plan(op, input.shape, sizes, filter, align_corners, scales, antialias, double)
            result = cuda.empty(shape, dtype)
            launch = launches[dtype, (AVERAGES if antialias else FILTERS)[filter], wide]
            if result.size:
                launch(blocks(result.size), (THREADS,), (cuda.dense(input), result, struct))
            return result

        return Kernel(op, kernel, offered(types))

    return [
        resampling("resample", FLOATS, floating),
        resampling("resample", INTEGERS, whole),
        resampling("resample_backward", FLOATS, floating),
    ]
