"""Numbers at equal distances, and the identity matrix."""


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only create elements."""

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

    return {
        "arange_at": arange_at,
        "eye_at": eye_at,
        "linspace_at": linspace_at,
    }
