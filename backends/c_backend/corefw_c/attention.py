"""Attention."""

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty, of_statistics, rows_like
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def attention(query, key, value, bias, is_causal, scale):
        output, logsumexp = rows_like(query, value.shape[-1]), empty(query.shape[:-1], of_statistics(query.dtype))
        mask = 0 if bias is None else id(bias)
        options, results = (mask, is_causal, scale, lib.products), (id(output), id(logsumexp))
        if status := lib.attention(id(query), id(key), id(value), *options, *results):
            fail("attention", status)
        return output, logsumexp

    def like_all(query, key, value):
        """Memory for the gradients: side by side in one array, where that is how the operands lie."""
        shape, strides = query.shape, query.strides
        if len(shape) > 3 and shape == key.shape == value.shape and strides == key.strides == value.strides:
            *batch, heads, rows, width = shape
            size = query.itemsize
            row = heads * width * size
            if strides[-3:] == (width * size, 3 * row, size) and query.base is key.base is value.base:
                first, second, third = (array.__array_interface__["data"][0] for array in (query, key, value))
                if second - first == third - second == row:
                    joint = empty((*batch, rows, 3, heads, width), query.dtype)
                    return tuple(joint[..., i, :, :].swapaxes(-3, -2) for i in range(3))
        return tuple(rows_like(array, array.shape[-1]) for array in (query, key, value))

    def attention_backward(gradient, query, key, value, output, logsumexp, bias, is_causal, scale):
        logsumexp = dense(logsumexp)
        gradients = like_all(query, key, value)
        operands = map(id, (gradient, query, key, value, output, logsumexp))
        mask = 0 if bias is None else id(bias)
        if status := lib.attention_backward(*operands, mask, is_causal, scale, lib.products, *map(id, gradients)):
            fail("attention_backward", status)
        return gradients

    return [Kernel("attention", attention, FLOATS), Kernel("attention_backward", attention_backward, FLOATS)]
