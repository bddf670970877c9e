"""Helpers of kernels that work along one dimension."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps


def lines(function: Callable) -> Callable:
    """A kernel for arrays with dimensions, made to take 0-d arrays too: they are lines of one element."""

    @wraps(function)
    def kernel(input, *arguments):
        if input.ndim:
            return function(input, *arguments)
        result = function(input.reshape(1), *arguments)
        return tuple(part.reshape(()) for part in result) if isinstance(result, tuple) else result.reshape(())

    return kernel


def pick(xp, input, indices, dim: int, keepdim: bool):
    """Values and indices of the elements at `indices`, whose size along `dim` is 1."""
    values = xp.take_along_axis(input, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))
