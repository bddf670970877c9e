"""What the shims need of arrays."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np

from corefw import dtypes
from corefw_c import library

#: element types of most kernels; half types are computed in float32, by those that take `FLOATS` part by part, else in
#: converted copies (see `Backend.compute_dtype`)
REALS = frozenset({dtypes.float32, dtypes.float64})
HALVES = frozenset({dtypes.float16, dtypes.bfloat16})
FLOATS = REALS | HALVES
FLOAT32 = np.dtype(np.float32)

#: the reductions of losses, numbered as `loss_reduction` in kernels.h
LOSS_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}

empty = np.empty


class _Thread(threading.local):
    """What a thread's shims call: `lib`, where it is another library than that of the best level."""

    lib: Any = None


thread = _Thread()


@cache
def _best():
    return library.load(library.best_level())


def of_statistics(dtype: np.dtype) -> np.dtype:
    """The dtype in which statistics of a floating dtype are kept, and half types computed."""
    return FLOAT32 if dtype.itemsize == 2 else dtype


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself if its elements lie in row-major order without gaps, and aligned, else a copy that does."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    lib = thread.lib or _best()
    if array.nbytes < lib.SMALL:
        return array.copy("C")
    result = empty(array.shape, array.dtype)
    return array.copy("C") if lib.copy(id(array), id(result)) else result


def like(array: np.ndarray, dtype=None) -> np.ndarray:
    """A new array in the shape and memory order of another; an expanded array has no order to keep."""
    return np.empty_like(array, dtype, "C" if 0 in array.strides else "K")


def rows_like(array: np.ndarray, width: int) -> np.ndarray:
    """A new array of contiguous rows of `width`, which lie one after the other in the order of another array's rows."""
    shape, strides = (*array.shape[:-1], width), array.strides
    if not array.flags.c_contiguous and 0 not in strides:
        result = np.empty_like(array, order="K", shape=shape)
        if result.strides[-1] == result.itemsize:
            return result
    return empty(shape, array.dtype)
