"""Largest and smallest elements, and where they are."""

from corefw.dispatch.flags import unheard
from corefw_numpy.along import lines, pick


def kernels(xp):
    """Ops that compute."""

    @unheard
    def amax(input, dim, keepdim):
        return xp.maximum.reduce(input, dim, None, None, keepdim)

    @unheard
    def amin(input, dim, keepdim):
        return xp.minimum.reduce(input, dim, None, None, keepdim)

    @unheard
    def argmax(input, dim, keepdim):
        return xp.argmax(input, dim, keepdims=keepdim)

    @unheard
    def argmin(input, dim, keepdim):
        return xp.argmin(input, dim, keepdims=keepdim)

    @lines
    def max_dim(input, dim, keepdim):
        return pick(xp, input, xp.argmax(input, dim, keepdims=True), dim, keepdim)

    @lines
    def min_dim(input, dim, keepdim):
        return pick(xp, input, xp.argmin(input, dim, keepdims=True), dim, keepdim)

    return {
        "amax": amax,
        "amin": amin,
        "argmax": argmax,
        "argmin": argmin,
        "max_dim": max_dim,
        "min_dim": min_dim,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
