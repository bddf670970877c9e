"""Reductions: sums, products, means and logical summaries over some or all dimensions."""

import numpy

from corefw.dispatch.flags import unheard
from corefw_numpy.sums import sums


def kernels(xp):
    """Ops that compute."""
    multiply_reduce = xp.multiply.reduce
    sum, mean = sums(xp)

    def nansum(input, dim, keepdim):
        return sum(xp.where(xp.isnan(input), input.dtype.type(0), input), dim, keepdim)

    def product(input, dim, keepdim):
        return multiply_reduce(input, dim, xp.int64 if input.dtype.char in "BHIL" else None, None, keepdim)

    def as_bool(reduce):
        @unheard
        def kernel(input, dim, keepdim):
            result = reduce(input, dim, None, None, keepdim)
            return result.astype(xp.uint8) if input.dtype.char == "B" else result

        return kernel

    def count_nonzero(input, dim):
        return xp.count_nonzero(input, dim)

    def logsumexp(input, dim, keepdim):
        if not input.size:
            return xp.log(sum(input, dim, keepdim))
        largest = xp.maximum.reduce(input.real, dim, None, None, True)
        largest = xp.where(xp.isfinite(largest), largest, largest.dtype.type(0))
        total = xp.log(sum(xp.exp(input - largest), dim, True)) + largest
        return total if keepdim else total.squeeze(dim)

    return {
        "sum": sum,
        "mean": mean,
        "nansum": nansum,
        "prod": product,
        "all": as_bool(xp.logical_and.reduce),
        "any": as_bool(xp.logical_or.reduce),
        "count_nonzero": count_nonzero,
        "logsumexp": logsumexp,
    }


def data_movement(xp):
    """Ops that only move or compare elements."""

    def expand_reduced(input, dim, keepdim, shape):
        if dim is None:
            steps = [0] * len(shape)
        else:
            kept = iter(input.strides)
            along = [next(kept) if keepdim or i not in dim else 0 for i in range(len(shape))]
            steps = [0 if i in dim else step for i, step in enumerate(along)]
        if xp is numpy and input.flags.c_contiguous:  # as_strided below costs ten times as much
            return xp.ndarray(shape, input.dtype, input, 0, steps)
        return xp.lib.stride_tricks.as_strided(input, shape, steps)

    return {"expand_reduced": expand_reduced}
