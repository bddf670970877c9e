"""Reductions: sums, extremes, moments, norms and logical summaries over some or all dimensions."""

from __future__ import annotations

from math import inf, prod

import numpy

from corefw_numpy.along import lines, pick

LONG = 1024  # float32 elements added one after the other, above which the sum is made in float64


def kernels(xp):
    """Ops that compute."""
    add_reduce, multiply_reduce = xp.add.reduce, xp.multiply.reduce
    wider = {"f": xp.float64, "F": xp.complex128}

    def count(input, dim):
        return input.size if dim is None else prod(input.shape[d] for d in dim)

    def long_columns(input, dim):
        """Whether many elements are added one after the other: NumPy adds pairwise along the last dimension only."""
        return input.size > LONG and input.ndim - 1 not in dim and count(input, dim) > LONG

    def sum(input, dim, keepdim):
        kind = input.dtype.char
        if kind in "BHIL":
            return add_reduce(input, dim, xp.int64, None, keepdim)
        if dim is not None and kind in wider and long_columns(input, dim):
            return add_reduce(input, dim, wider[kind], None, keepdim).astype(input.dtype)
        return add_reduce(input, dim, None, None, keepdim)

    def mean(input, dim, keepdim):
        elements = count(input, dim)
        return sum(input, dim, keepdim) / elements if elements else sum(input, dim, keepdim) * xp.nan

    def nansum(input, dim, keepdim):
        return sum(xp.where(xp.isnan(input), input.dtype.type(0), input), dim, keepdim)

    def product(input, dim, keepdim):
        return multiply_reduce(input, dim, xp.int64 if input.dtype.char in "BHIL" else None, None, keepdim)

    def amax(input, dim, keepdim):
        return xp.maximum.reduce(input, dim, None, None, keepdim)

    def amin(input, dim, keepdim):
        return xp.minimum.reduce(input, dim, None, None, keepdim)

    def argmax(input, dim, keepdim):
        return xp.argmax(input, dim, keepdims=keepdim)

    def argmin(input, dim, keepdim):
        return xp.argmin(input, dim, keepdims=keepdim)

    @lines
    def max_dim(input, dim, keepdim):
        return pick(xp, input, xp.argmax(input, dim, keepdims=True), dim, keepdim)

    @lines
    def min_dim(input, dim, keepdim):
        return pick(xp, input, xp.argmin(input, dim, keepdims=True), dim, keepdim)

    @lines
    def median_dim(input, dim, keepdim):
        middle = xp.argsort(input, dim, kind="stable").take([(input.shape[dim] - 1) // 2], dim)
        nan = xp.isnan(input)
        indices = xp.where(nan.any(dim, keepdims=True), xp.argmax(nan, dim, keepdims=True), middle)
        return pick(xp, input, indices, dim, keepdim)

    @lines
    def nanmedian_dim(input, dim, keepdim):
        order = xp.argsort(input, dim, kind="stable")  # NaN comes last
        counted = xp.count_nonzero(~xp.isnan(input), dim, keepdims=True)
        return pick(xp, input, xp.take_along_axis(order, xp.maximum(counted - 1, 0) // 2, dim), dim, keepdim)

    @lines
    def mode(input, dim, keepdim):
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
        if k < 1:
            raise IndexError(k)
        return pick(xp, input, xp.argsort(input, dim, kind="stable").take([k - 1], dim), dim, keepdim)

    def truth(reduce):
        def kernel(input, dim, keepdim):
            result = reduce(input, dim, None, None, keepdim)
            return result.astype(xp.uint8) if input.dtype.char == "B" else result

        return kernel

    def count_nonzero(input, dim):
        return xp.count_nonzero(input, dim)

    def squared_modulus(input):
        return input.real**2 + input.imag**2 if input.dtype.kind == "c" else input * input

    def variance(input, dim, keepdim, correction):
        elements = count(input, dim)
        total = sum(squared_modulus(input - mean(input, dim, True)), dim, keepdim)
        return total / (elements - correction) if elements > correction else total * xp.nan

    def deviation(input, dim, keepdim, correction):
        return xp.sqrt(variance(input, dim, keepdim, correction))

    def logsumexp(input, dim, keepdim):
        if not input.size:
            return xp.log(sum(input, dim, keepdim))
        largest = xp.maximum.reduce(input.real, dim, None, None, True)
        largest = xp.where(xp.isfinite(largest), largest, largest.dtype.type(0))
        total = xp.log(sum(xp.exp(input - largest), dim, True)) + largest
        return total if keepdim else total.squeeze(dim)

    def vector_norm(input, ord, dim, keepdim):
        if ord == 2:
            return xp.sqrt(sum(squared_modulus(input), dim, keepdim))
        modulus = xp.abs(input)
        if ord == 1:
            return sum(modulus, dim, keepdim)
        if ord in (inf, -inf):
            return (amax if ord > 0 else amin)(modulus, dim, keepdim)
        if ord == 0:
            return sum((modulus != 0).astype(modulus.dtype), dim, keepdim)
        if ord < 0 and not count(input, dim):
            raise ValueError("nothing to reduce")
        return sum(modulus**ord, dim, keepdim) ** (1 / ord)

    return {
        "sum": sum,
        "mean": mean,
        "nansum": nansum,
        "prod": product,
        "amax": amax,
        "amin": amin,
        "argmax": argmax,
        "argmin": argmin,
        "max_dim": max_dim,
        "min_dim": min_dim,
        "median_dim": median_dim,
        "nanmedian_dim": nanmedian_dim,
        "mode": mode,
        "kthvalue": kthvalue,
        "all": truth(xp.logical_and.reduce),
        "any": truth(xp.logical_or.reduce),
        "count_nonzero": count_nonzero,
        "variance": variance,
        "deviation": deviation,
        "logsumexp": logsumexp,
        "vector_norm": vector_norm,
    }


def movements(xp):
    """Ops that only move or compare elements."""

    def spread(input, dim, keepdim, shape):
        if dim is None:
            steps = [0] * len(shape)
        else:
            kept = iter(input.strides)
            along = [next(kept) if keepdim or i not in dim else 0 for i in range(len(shape))]
            steps = [0 if i in dim else step for i, step in enumerate(along)]
        if xp is numpy and input.flags.c_contiguous:  # as_strided below costs ten times as much
            return xp.ndarray(shape, input.dtype, input, 0, steps)
        return xp.lib.stride_tricks.as_strided(input, shape, steps)

    return {"spread": spread}
