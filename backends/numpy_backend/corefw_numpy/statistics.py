"""Medians and other ranks, variance and deviation."""

from corefw.dispatch.flags import unheard
from corefw_numpy.along import lines, pick
from corefw_numpy.booleans import as_bool
from corefw_numpy.sums import count, squared_modulus, sums


def kernels(xp):
    """Ops that compute."""
    sum, mean = sums(xp)

    @lines
    def median_dim(input, dim, keepdim):
        middle = xp.argsort(input, dim, kind="stable").take([(input.shape[dim] - 1) // 2], dim)
        nan = xp.isnan(input)
        indices = xp.where(nan.any(dim, keepdims=True), xp.argmax(nan, dim, keepdims=True), middle)
        return pick(xp, input, indices, dim, keepdim)

    @lines
    def nanmedian_dim(input, dim, keepdim):
        if not input.shape[dim]:
            raise IndexError(dim)
        order = xp.argsort(input, dim, kind="stable")  # NaN comes last
        counted = xp.count_nonzero(~xp.isnan(input), dim, keepdims=True)
        return pick(xp, input, xp.take_along_axis(order, xp.maximum(counted - 1, 0) // 2, dim), dim, keepdim)

    @lines
    def mode(input, dim, keepdim):
        input = as_bool(xp, input)
        order = xp.moveaxis(xp.argsort(input, dim, kind="stable"), dim, -1)
        ordered = xp.take_along_axis(xp.moveaxis(input, dim, -1), order, -1)
        place = xp.arange(ordered.shape[-1])
        begins = xp.ones(ordered.shape, bool)
        begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
        run = place - xp.maximum.accumulate(xp.where(begins, place, 0), -1)  # how often the value was seen before
        last = xp.argmax(run, -1, keepdims=True)
        return pick(xp, input, xp.moveaxis(xp.take_along_axis(order, last, -1), -1, dim), dim, keepdim)

    @lines
    def kthvalue(input, k, dim, keepdim):
        if not 1 <= k <= input.shape[dim]:
            raise IndexError(k)
        input = as_bool(xp, input)
        return pick(xp, input, xp.argsort(input, dim, kind="stable").take([k - 1], dim), dim, keepdim)

    @unheard
    def variance(input, dim, keepdim, correction):
        total = sum(squared_modulus(input - mean(input, dim, True)), dim, keepdim)
        return total / max(count(input, dim) - correction, 0)

    @unheard
    def deviation(input, dim, keepdim, correction):
        return xp.sqrt(variance(input, dim, keepdim, correction))

    return {
        "median_dim": median_dim,
        "nanmedian_dim": nanmedian_dim,
        "mode": mode,
        "kthvalue": kthvalue,
        "variance": variance,
        "deviation": deviation,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
