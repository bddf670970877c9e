"""Arrays made from nothing but arguments, and the conversion of element types."""

import numpy as np


def kernels(xp):
    """Ops that compute."""

    def complex(real, imag):
        result = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), xp.result_type(real.dtype, xp.complex64))
        result.real = real
        result.imag = imag
        return result

    return {"complex": complex}


def movements(xp):
    """Ops that only create or convert elements."""

    def full_at(size, value, dtype):
        result = xp.empty(size, dtype)
        result.fill(value)
        return result

    def arange_at(start, step, count, dtype):
        if dtype.kind in "iu":
            # 64-bit arithmetic wraps as the elements of a narrower type do.
            if step == 1:
                return xp.arange(start, start + count).astype(dtype, copy=False)
            return (xp.arange(count, dtype=xp.int64) * step + start).astype(dtype, copy=False)
        return (xp.arange(count, dtype=xp.float64) * step + start).astype(dtype, copy=False)

    def linspace_at(start, end, steps, dtype):
        # From both ends, so that both are exact and the result is symmetric.
        if steps == 1:
            return xp.full(1, start, dtype)
        wide = xp.complex128 if dtype.kind == "c" else xp.float64
        step = (end - start) / (steps - 1) if steps else 0
        position = xp.arange(steps)
        result = xp.where(position < steps // 2, start + step * position, end - step * (steps - 1 - position))
        return result.astype(wide, copy=False).astype(dtype, copy=False)

    def eye_at(n, m, dtype):
        return xp.eye(n, m, dtype=dtype)

    def cast(input, dtype, copy):
        if input.dtype == dtype:
            return input.astype(dtype) if copy else input
        if input.dtype.kind == "c" and dtype.kind not in "cb":
            input = input.real
        # NaN, infinities and numbers out of range have no integer; C leaves what they give open.
        with np.errstate(invalid="ignore", over="ignore"):
            return input.astype(dtype)

    return {
        "arange_at": arange_at,
        "cast": cast,
        "eye_at": eye_at,
        "full_at": full_at,
        "linspace_at": linspace_at,
        "zeros_at": xp.zeros,
    }
