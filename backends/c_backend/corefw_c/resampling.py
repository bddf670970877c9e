"""Resampling: each dimension as a sum of a few elements per place, whose positions and weights are found once."""

from functools import lru_cache

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty, of_statistics
from corefw_c.library import fail


# -- taps: (positions, weights), each (elements per place, places) ----------------------------------------------------
def _cubic(distance, a):
    """Keys' kernel, "Cubic convolution interpolation for digital image processing", 1981, equation 4."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _averaging(size, step, centers, filter):
    """The taps of a filter as wide as the step."""
    width = max(float(step), 1.0)
    support = (2 if filter == "cubic" else 1) * width
    first = np.maximum((centers - support + 0.5).astype(int), 0)
    last = np.minimum((centers + support + 0.5).astype(int), size)
    positions = first + np.arange(int((last - first).max()))[:, None]
    distance = (positions - centers + 0.5) / width
    weights = _cubic(distance, -0.5) if filter == "cubic" else np.maximum(0, 1 - np.abs(distance))
    weights = np.where(positions < last, weights, 0)
    return np.minimum(positions, size - 1), weights / weights.sum(0)


def _taps(size, count, filter, align_corners, scale, antialias, dtype):
    """Which elements of a dimension each place of the result sums."""
    if align_corners:
        step = dtype.type((size - 1) / (count - 1) if count > 1 else 0)
    else:
        step = dtype.type(1 / scale if scale else size / count)
    places, half = np.arange(count, dtype=dtype), dtype.type(0.5)
    if filter in ("nearest", "nearest-exact"):
        read = places * step if filter == "nearest" else (places + half) * step
        return np.minimum(np.floor(read).astype(int), size - 1)[None], np.ones((1, count), dtype)
    centers = places * step if align_corners else (places + half) * step - half
    if antialias:
        return _averaging(size, step, (places + half) * step, filter)
    if filter == "linear":
        centers = np.maximum(centers, 0)
        before = np.minimum(np.floor(centers).astype(int), size - 1)
        beyond = np.minimum(centers - before, 1)
        return np.stack([before, np.minimum(before + 1, size - 1)]), np.stack([1 - beyond, beyond])
    around = np.floor(centers).astype(int) + np.arange(-1, 3)[:, None]
    return np.clip(around, 0, size - 1), _cubic(centers - around, -0.75)


def _reversed(positions, weights, size):
    """The taps of the adjoint: which places of the result read each element, and how they weigh it."""
    places = np.broadcast_to(np.arange(positions.shape[1]), positions.shape)[weights != 0]
    elements, weights = positions[weights != 0], weights[weights != 0]
    order = np.argsort(elements, kind="stable")
    elements, places, weights = elements[order], places[order], weights[order]
    rank = np.arange(elements.size) - np.searchsorted(elements, elements)  # among the readers of one element
    where = np.zeros((int(rank.max()) + 1, size), int)
    how = np.zeros(where.shape, weights.dtype)
    where[rank, elements], how[rank, elements] = places, weights
    return where, how


@lru_cache(maxsize=256)
def _plan(op, shape, sizes, filter, align_corners, scales, antialias, dtype):
    """The shape of the result; positions and weights in each dimension, one after the other; and their addresses."""
    result = shape_rule(op)(shape, sizes, filter, align_corners, scales, antialias)
    if max(*shape[2:], *result[2:]) >= 1 << 31:
        raise ValueError(f"positions of 32 bits: sizes must be below 2**31, from {shape} to {result}")
    arrays = []
    for axis, scale in enumerate(scales, 2):
        options = filter, align_corners, scale, antialias, dtype
        if op == "resample":
            positions, weights = _taps(shape[axis], result[axis], *options)
        else:
            positions, weights = _taps(result[axis], shape[axis], *options)
            positions, weights = _reversed(positions, weights.astype(dtype), result[axis])
        arrays += [np.ascontiguousarray(positions, np.int32), np.ascontiguousarray(weights, dtype)]
    return result, arrays, [*map(id, arrays)]


def kernels(lib):
    """The family's kernels."""

    def resampling(op):
        def kernel(input, sizes, *options):
            shape, arrays, addresses = _plan(op, input.shape, sizes, *options, of_statistics(input.dtype))
            input = dense(input)
            output = empty(shape, input.dtype)
            if status := lib.resample(id(input), addresses, len(arrays), id(output)):
                fail(op, status)
            return output

        return Kernel(op, kernel, FLOATS)

    return [resampling("resample"), resampling("resample_backward")]
