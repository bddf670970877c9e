"""Sums that accumulate wider than they store, on which other reductions are built."""

from __future__ import annotations

from math import prod

from corefw.dispatch.flags import unheard

LONG = 1024  # float32 elements added one after the other, above which the sum is made in float64


def count(input, dim):
    """How many elements are reduced to one."""
    return input.size if dim is None else prod(input.shape[d] for d in dim)


@unheard
def squared_modulus(input):
    """The squares of the moduli, real."""
    return input.real**2 + input.imag**2 if input.dtype.kind == "c" else input * input


def sums(xp):
    """The functions `sum` and `mean` of an array namespace."""
    add_reduce = xp.add.reduce
    wider = {"f": xp.float64, "F": xp.complex128}

    def long_columns(input, dim):
        """Whether many elements are added one after the other: NumPy adds pairwise along the last dimension only."""
        return input.size > LONG and input.ndim - 1 not in dim and count(input, dim) > LONG

    @unheard
    def sum(input, dim, keepdim):
        kind = input.dtype.char
        if kind in "BHIL":
            return add_reduce(input, dim, xp.int64, None, keepdim)
        if dim is not None and kind in wider and long_columns(input, dim):
            return add_reduce(input, dim, wider[kind], None, keepdim).astype(input.dtype)
        return add_reduce(input, dim, None, None, keepdim)

    @unheard
    def mean(input, dim, keepdim):
        elements = count(input, dim)
        return sum(input, dim, keepdim) / elements if elements else sum(input, dim, keepdim) * xp.nan

    return sum, mean
