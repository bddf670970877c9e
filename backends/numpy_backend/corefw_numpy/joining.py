"""Joining arrays and moving their elements."""

from corefw.shapes import roll_arguments


def kernels(xp):
    """Ops that compute."""

    def repeated_positions(repeats):
        if repeats.size and repeats.min() < 0:
            raise ValueError("repeats can not be negative")
        return xp.repeat(xp.arange(repeats.shape[0], dtype=repeats.dtype), repeats)

    return {"repeated_positions": repeated_positions}


def data_movement(xp):
    """Ops that only move elements."""

    def cat(tensors, dim):
        try:
            joined = xp.concatenate(tensors, dim)
        except ValueError:
            filled = [t for t in tensors if t.shape != (0,)]
            if len(filled) == len(tensors):
                raise
            joined = xp.concatenate(filled, dim)
        if joined.ndim in (4, 5) and xp.moveaxis(joined, 1, -1).flags.c_contiguous:  # channels last, as they were
            return joined
        return xp.ascontiguousarray(joined)

    def stack(tensors, dim):
        ndim = tensors[0].ndim + 1
        if not -ndim <= dim < ndim:
            raise ValueError("dimension out of range")
        if len({t.ndim for t in tensors}) > 1:
            raise ValueError("shapes differ")
        key = (slice(None),) * (dim % ndim) + (None, ...)
        return xp.concatenate([t[key] for t in tensors], dim)

    def repeat(input, repeats):
        if len(repeats) < input.ndim or min(repeats, default=0) < 0:
            raise ValueError("too few or negative repeats")
        return xp.tile(input, repeats)

    def flip(input, dims):
        line = input if input.ndim else input.reshape(1)  # without dimensions, the last one is accepted
        return xp.flip(line, dims).reshape(input.shape).copy()

    def roll(input, shifts, dims):
        shifts, dims = roll_arguments(shifts, dims)
        return xp.roll(input, shifts, dims) if dims else xp.roll(input, shifts[0])

    def tril(input, diagonal):
        if input.ndim < 2:
            raise ValueError("fewer than 2 dimensions")
        return xp.tril(input, diagonal)

    def triu(input, diagonal):
        if input.ndim < 2:
            raise ValueError("fewer than 2 dimensions")
        return xp.triu(input, diagonal)

    return {
        "cat": cat,
        "flip": flip,
        "repeat": repeat,
        "roll": roll,
        "stack": stack,
        "tril": tril,
        "triu": triu,
    }
