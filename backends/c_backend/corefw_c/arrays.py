"""What the shims need of arrays."""

from __future__ import annotations

from functools import cache

import numpy as np

from corefw import dtypes
from corefw_c import library

#: element types of most kernels; half types are computed in float32 (see `Backend.compute_dtype`)
REALS = frozenset({dtypes.float32, dtypes.float64})

#: arrays of fewer bytes are moved by NumPy, whose call costs less
SMALL = 1 << 12

empty = np.empty


@cache
def _copy():
    return library.load(library.best_level()).copy


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself if its elements lie in row-major order without gaps, else a copy that does."""
    if array.flags.c_contiguous:
        return array
    if array.nbytes < SMALL:
        return array.copy("C")
    result = empty(array.shape, array.dtype)
    return array.copy("C") if _copy()(id(array), id(result)) else result
