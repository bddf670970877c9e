"""Kernels that read and write elements by position. A position outside raises, which waits for the device."""

import jax.numpy as jnp


def places(input, dim, index):
    """Where the elements of `index` point to in `input`, as one index array for each dimension."""
    if index.size:
        lowest, highest = int(index.min()), int(index.max())
        if lowest < 0 or highest >= input.shape[dim]:
            wrong = lowest if lowest < 0 else highest
            raise IndexError(f"index {wrong} is out of bounds for dimension {dim} of size {input.shape[dim]}")
    grids = list(jnp.meshgrid(*map(jnp.arange, index.shape), indexing="ij"))
    grids[dim] = index
    return tuple(grids)


def covered(index, src):
    """The part of `src` that `index` covers."""
    return src[tuple(slice(size) for size in index.shape)]


def of_vectors(function):
    """`function`, whose 0-d arrays are vectors of one element."""

    def kernel(input, dim, index, *rest):
        if input.ndim and index.ndim:
            return function(input, dim, index, *rest)
        vectors = [jnp.reshape(one, (-1,)) for one in (input, index, *rest)]
        shape = index.shape if function is _gather else input.shape
        return jnp.reshape(function(vectors[0], 0, *vectors[1:]), shape)

    return kernel


def _gather(input, dim, index):
    if not index.size:  # of any shape
        return jnp.zeros(index.shape, input.dtype)
    return input[places(input, dim, index)]


def _scatter_src(input, dim, index, src):
    return input.at[places(input, dim, index)].set(covered(index, src))


def _scatter_add(input, dim, index, src):
    return input.at[places(input, dim, index)].add(covered(index, src))


gather, scatter_src, scatter_add = map(of_vectors, (_gather, _scatter_src, _scatter_add))
