"""Pooling: the maximum or the mean of windows."""

from functools import lru_cache

import numpy as np

from corefw.dispatch.registry import Kernel, registry
from corefw_c.arrays import REALS, dense, empty
from corefw_c.library import fail


def _dividing(shape):
    """The options of windows that divide the input evenly."""
    return (0,) * (4 * (len(shape) - 2))


@lru_cache(maxsize=4096)
def _shape(op, *arguments):
    """The shape of an op's result; raises ShapeError for arguments that do not fit."""
    return registry.ops[op].shape(*arguments)


def kernels(lib):
    """The family's kernels."""

    def maxima(name, input, options, shape):
        input = dense(input)
        values, indices = empty(shape, input.dtype), empty(shape, np.int64)
        if status := lib.max_pool(id(input), options, id(values), id(indices)):
            fail(name, status)
        return values, indices

    def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
        shape, _ = _shape("max_pool", input.shape, kernel_size, stride, padding, dilation, ceil_mode)
        return maxima("max_pool", input, (*kernel_size, *stride, *padding, *dilation), shape)

    def adaptive_max_pool(input, output_size):
        shape, _ = _shape("adaptive_max_pool", input.shape, output_size)
        return maxima("adaptive_max_pool", input, _dividing(shape), shape)

    def max_pool_backward(grad, indices, shape):
        shape = _shape("max_pool_backward", grad.shape, indices.shape, shape)
        grad, indices = dense(grad), dense(indices)
        output = empty(shape, grad.dtype)
        if status := lib.max_pool_backward(id(grad), id(indices), id(output)):
            fail("max_pool_backward", status)
        return output

    def means(name, input, options, padding_counts, divisor, shape):
        input = dense(input)
        output = empty(shape, input.dtype)
        if status := getattr(lib, name)(id(input), options, padding_counts, divisor or 0, id(output)):
            fail(name, status)
        return output

    def avg_pool(input, kernel_size, stride, padding, ceil_mode, padding_counts, divisor):
        options = kernel_size, stride, padding, ceil_mode, padding_counts, divisor
        steps = (1,) * len(kernel_size)
        shape = _shape("avg_pool", input.shape, *options)
        return means("avg_pool", input, (*kernel_size, *stride, *padding, *steps), padding_counts, divisor, shape)

    def avg_pool_backward(grad, shape, kernel_size, stride, padding, ceil_mode, padding_counts, divisor):
        options = kernel_size, stride, padding, ceil_mode, padding_counts, divisor
        steps = (1,) * len(kernel_size)
        shape = _shape("avg_pool_backward", grad.shape, shape, *options)
        return means("avg_pool_backward", grad, (*kernel_size, *stride, *padding, *steps), padding_counts, divisor, shape)

    def adaptive_avg_pool(input, output_size):
        shape = _shape("adaptive_avg_pool", input.shape, output_size)
        return means("avg_pool", input, _dividing(shape), False, None, shape)

    def adaptive_avg_pool_backward(grad, shape):
        shape = _shape("adaptive_avg_pool_backward", grad.shape, shape)
        return means("avg_pool_backward", grad, _dividing(shape), False, None, shape)

    return [
        Kernel(kernel.__name__, kernel, REALS)
        for kernel in (
            adaptive_avg_pool,
            adaptive_avg_pool_backward,
            adaptive_max_pool,
            avg_pool,
            avg_pool_backward,
            max_pool,
            max_pool_backward,
        )
    ]
