"""Views by NumPy's own means, where they are faster than arithmetic on strides."""

import numpy


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only move elements."""
    ndarray = xp.ndarray

    def view_size(input, size):
        if input.flags.c_contiguous:
            result = input.reshape(size)
        else:
            result = input.reshape(size, copy=False)
        if result.shape != size and min(size) < -1:
            raise ValueError("negative size")
        return result

    def unsafe_view(input, size):
        return input.copy("C").reshape(size)

    def transpose(input, dim0, dim1):
        return input.swapaxes(dim0, dim1) if input.ndim else input[...]

    def t(input):
        if input.ndim > 2:
            raise ValueError("more than 2 dimensions")
        return input.T

    def alias(input):
        return input[...]

    def expand(input, size):
        shape, strides = input.shape, input.strides
        lead = len(size) - len(shape)
        if lead < 0:
            raise ValueError("fewer sizes than dimensions")
        sizes, steps = list(size), [0] * len(size)
        for i, n in enumerate(shape, lead):
            if sizes[i] == -1:
                sizes[i] = n
            if n == sizes[i]:
                steps[i] = strides[i - lead]
            elif n != 1:
                raise ValueError("sizes differ")
        if xp is numpy and input.flags.c_contiguous:  # as_strided below costs ten times as much
            return ndarray(sizes, input.dtype, input, 0, steps)
        return xp.lib.stride_tricks.as_strided(input, sizes, steps)

    def squeeze(input, dim):
        if dim is None:
            return input.squeeze()
        shape = input.shape
        return input.squeeze(tuple([d for d in dim if shape[d] == 1])) if shape else input[...]

    def unsqueeze(input, dim):
        shape, ndim = input.shape, input.ndim
        if not -ndim <= dim + 1 <= ndim + 1:
            raise ValueError("dimension out of range")
        dim %= ndim + 1
        if input.flags.c_contiguous:
            return input.reshape((*shape[:dim], 1, *shape[dim:]))
        return input[(slice(None),) * dim + (None, ...)]

    return {
        "alias": alias,
        "expand": expand,
        "permute": ndarray.transpose,
        "squeeze": squeeze,
        "t": t,
        "transpose": transpose,
        "unsafe_view": unsafe_view,
        "unsqueeze": unsqueeze,
        "view_size": view_size,
    }
