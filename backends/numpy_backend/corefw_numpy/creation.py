"""Arrays of one value, and the conversion of element types."""

import numpy as np

from corefw_numpy.memory import order_like


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only create or convert elements."""

    def full_at(size, value, dtype):
        result = xp.empty(size, dtype)
        result.fill(value)
        return result

    def cast(input, dtype, copy):
        if input.dtype == dtype:
            return input.astype(dtype, order_like(input)) if copy else input
        if input.dtype.kind == "c" and dtype.kind not in "cb":
            input = input.real
        # NaN, infinities and numbers out of range have no integer; C leaves what they give open.
        with np.errstate(invalid="ignore", over="ignore"):
            return input.astype(dtype, order_like(input))

    return {
        "cast": cast,
        "full_at": full_at,
        "zeros_at": xp.zeros,
    }
