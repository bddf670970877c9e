"""What the shims need of arrays."""

from __future__ import annotations

import numpy as np

from corefw import dtypes

#: element types of most kernels; half types are computed in float32 (see `Backend.compute_dtype`)
REALS = frozenset({dtypes.float32, dtypes.float64})

empty = np.empty


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself if its elements lie in row-major order without gaps, else a copy that does."""
    return array if array.flags.c_contiguous else array.copy("C")
