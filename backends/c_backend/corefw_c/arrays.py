"""What the shims need of arrays."""

from __future__ import annotations

from functools import cache

import numpy as np

from corefw import dtypes
from corefw_c import library

#: element types of most kernels; half types are computed in float32 (see `Backend.compute_dtype`)
REALS = frozenset({dtypes.float32, dtypes.float64})

#: the reductions of losses, numbered as `loss_reduction` in kernels.h
LOSS_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}

#: arrays of fewer bytes are moved by NumPy, whose call costs less
SMALL = 1 << 12

empty = np.empty


@cache
def _copy():
    return library.load(library.best_level()).copy


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself if its elements lie in row-major order without gaps, and aligned, else a copy that does."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    if array.nbytes < SMALL:
        return array.copy("C")
    result = empty(array.shape, array.dtype)
    return array.copy("C") if _copy()(id(array), id(result)) else result


def like(array: np.ndarray, dtype=None) -> np.ndarray:
    """A new array in the shape and memory order of another; an expanded array has no order to keep."""
    return np.empty_like(array, dtype, "C" if 0 in array.strides else "K")
