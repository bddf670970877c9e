"""Norms of the elements over dimensions."""

from math import inf

from corefw_numpy.sums import count, sums


def kernels(xp):
    """Ops that compute."""
    sum, _ = sums(xp)

    def vector_norm(input, ord, dim, keepdim):
        if ord == 2:
            if input.dtype.kind != "c":
                return xp.sqrt(sum(input * input, dim, keepdim))
            modulus = xp.abs(input)  # infinite if one part is, whatever the other
            return xp.sqrt(sum(modulus * modulus, dim, keepdim))
        modulus = xp.abs(input)
        if ord == 1:
            return sum(modulus, dim, keepdim)
        if ord in (inf, -inf):
            return (xp.maximum if ord > 0 else xp.minimum).reduce(modulus, dim, None, None, keepdim)
        if ord == 0:
            return sum((modulus != 0).astype(modulus.dtype), dim, keepdim)
        if ord < 0 and not count(input, dim):
            raise ValueError("nothing to reduce")
        return sum(modulus**ord, dim, keepdim) ** (1 / ord)

    return {"vector_norm": vector_norm}


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
