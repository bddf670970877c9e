"""Parts of arrays by NumPy's indexing, and the copies behind their gradients."""


def kernels(xp):
    """Ops that compute: none."""
    return {}


def movements(xp):
    """Ops that only move elements."""

    def basic_index(input, key):
        return input[(*key, ...)] if ... not in key else input[key]

    def basic_index_backward(grad, shape, key):
        result = xp.zeros(shape, grad.dtype)
        result[key] = grad
        return result

    def select(input, dim, index):
        return input[(slice(None),) * dim + (index, ...)]

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
        "integer_index": basic_index,
        "new_dimension_index": basic_index,
        "select": select,
        "slice_index": basic_index,
        "unbind": unbind,
    }
