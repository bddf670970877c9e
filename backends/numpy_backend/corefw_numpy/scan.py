"""Scans along one dimension: running sums, products and extremes."""

from __future__ import annotations

from corefw_numpy.along import lines


def running(xp, ufunc):
    """The kernel that accumulates by `ufunc` along a dimension."""
    # running sums of float32 are made in float64: one rounding instead of one per step
    wide = {**dict.fromkeys("?bBhHiIlLqQ", xp.int64), "f": xp.float64, "F": xp.complex128}

    @lines
    def kernel(input, dim):
        kind = input.dtype.char
        result = ufunc.accumulate(input, dim, wide.get(kind, input.dtype))
        return result.astype(input.dtype) if kind in "fF" else result

    return kernel


def kernels(xp):
    """Ops that compute."""

    def extreme(ufunc):
        @lines
        def kernel(input, dim):
            values = ufunc.accumulate(input, dim)
            place = xp.arange(input.shape[dim]).reshape((-1, *(1,) * (input.ndim - dim - 1)))
            found = (input == values) | xp.isnan(input)
            return values, xp.maximum.accumulate(xp.where(found, place, 0), dim)

        return kernel

    return {
        "cumsum": running(xp, xp.add),
        "cumprod": running(xp, xp.multiply),
        "cummax": extreme(xp.maximum),
        "cummin": extreme(xp.minimum),
    }


def real_kernels(xp):
    """Ops that compute, of real elements alone."""
    return {"logcumsumexp": running(xp, xp.logaddexp)}


def data_movement(xp):
    """Ops that only move or compare elements."""
    return {}
