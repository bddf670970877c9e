"""Pooling: the maximum or the mean of windows."""

from functools import lru_cache

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail


@lru_cache(maxsize=4096)
def _plan(op, input, options):
    """The shape of an op's result; its windows in an array: sizes, strides, paddings, steps, zeros for those that
    divide the input evenly; whether padding counts in a mean, and what divides it instead of the count, or 0. Raises
    ShapeError for arguments that do not fit."""
    shape = shape_rule(op)(input, *options)
    options = options[1:] if op.endswith("_backward") else options
    padding_counts, divisor = False, 0
    if op.startswith("adaptive"):
        windows = (0,) * 4 * (len(options[0] if options else shape[2:]))
    elif op == "max_pool":
        kernel_size, stride, padding, dilation, _ = options
        windows = *kernel_size, *stride, *padding, *dilation
    else:
        kernel_size, stride, padding, _, padding_counts, divisor = options
        windows = *kernel_size, *stride, *padding, *(1,) * len(kernel_size)
    return shape, np.array(windows, np.int64), padding_counts, divisor or 0


def kernels(lib):
    """The family's kernels."""

    def maximum(op):
        def kernel(input, *options):
            (shape, _), windows, *_ = _plan(op, input.shape, options)
            input = dense(input)
            values, indices = empty(shape, input.dtype), empty(shape, np.int64)
            if status := lib.max_pool(id(input), id(windows), id(values), id(indices)):
                fail(op, status)
            return values, indices

        return Kernel(op, kernel, FLOATS)

    def max_pool_backward(grad, indices, shape):
        shape = shape_rule("max_pool_backward")(grad.shape, indices.shape, shape)
        grad, indices = dense(grad), dense(indices)
        output = empty(shape, grad.dtype)
        if status := lib.max_pool_backward(id(grad), id(indices), id(output)):
            fail("max_pool_backward", status)
        return output

    def mean(op, pool):
        """The kernel of a mean or of its gradient."""

        def kernel(input, *options):
            shape, windows, padding_counts, divisor = _plan(op, input.shape, options)
            input = dense(input)
            output = empty(shape, input.dtype)
            if status := pool(id(input), id(windows), padding_counts, divisor, id(output)):
                fail(op, status)
            return output

        return Kernel(op, kernel, FLOATS)

    return [
        Kernel("max_pool_backward", max_pool_backward, FLOATS),
        maximum("adaptive_max_pool"),
        maximum("max_pool"),
        mean("adaptive_avg_pool", lib.avg_pool),
        mean("adaptive_avg_pool_backward", lib.avg_pool_backward),
        mean("avg_pool", lib.avg_pool),
        mean("avg_pool_backward", lib.avg_pool_backward),
    ]
