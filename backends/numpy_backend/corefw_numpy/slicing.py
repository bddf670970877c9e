"""Parts of arrays by NumPy's indexing, and the copies behind their gradients."""

from itertools import accumulate


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only move elements."""

    def basic_index(input, key):
        return input[(*key, ...)] if ... not in key else input[key]

    def basic_index_backward(grad, shape, key):
        result = xp.zeros(shape, grad.dtype)
        result[key] = grad
        return result

    def select(input, dim, index):
        return input[(slice(None),) * dim + (index, ...)]

    def parts(input, ends, dim):
        before = (slice(None),) * dim
        return [input[(*before, slice(start, end))] for start, end in zip([0, *ends], ends)]

    def equal_split(input, split_size, dim):
        if split_size <= 0:
            raise ValueError("no size")
        n = input.shape[dim]
        return parts(input, [*range(split_size, n, split_size), n], dim)

    def split_with_sizes(input, split_sizes, dim):
        if sum(split_sizes) != input.shape[dim] or min(split_sizes) < 0:
            raise ValueError("sizes do not add up")
        return parts(input, list(accumulate(split_sizes)), dim)

    def unbind(input, dim):
        if not input.ndim:
            raise ValueError("no dimensions")
        before = (slice(None),) * dim
        return [input[(*before, i, ...)] for i in range(input.shape[dim])]

    def diagonal_backward(grad, shape, offset, dim1, dim2):
        result = xp.zeros(shape, grad.dtype)
        plane = xp.moveaxis(result, (dim1, dim2), (-2, -1))
        i = xp.arange(grad.shape[-1])
        plane[..., i + max(-offset, 0), i + max(offset, 0)] = grad
        return result

    return {
        "basic_index_backward": basic_index_backward,
        "diagonal_backward": diagonal_backward,
        "equal_split": equal_split,
        "integer_index": basic_index,
        "new_dimension_index": basic_index,
        "select": select,
        "slice_index": basic_index,
        "split_with_sizes": split_with_sizes,
        "unbind": unbind,
    }
