"""Scans along one dimension: running sums, products and extremes, and linear recurrences."""

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail
from corefw_c.reduction import INT64


def kernels(lib):
    """The family's kernels."""

    def running(op, function, dtype=None):
        def kernel(input, dim):
            line = dense(input) if input.ndim else input.reshape(1)
            output = empty(line.shape, dtype or input.dtype)
            if status := function(id(line), dim, id(output)):
                fail(op, status)
            return output if input.ndim else output.reshape(())

        return kernel

    def extreme(op, largest):
        def kernel(input, dim):
            line = dense(input) if input.ndim else input.reshape(1)
            values, indices = empty(line.shape, line.dtype), empty(line.shape, INT64)
            if status := lib.cumulative_extreme(id(line), dim, largest, id(values), id(indices)):
                fail(op, status)
            return (values, indices) if input.ndim else (values.reshape(()), indices.reshape(()))

        return kernel

    def linear_recurrence(factor, input, dim):
        factor, input = dense(factor), dense(input)
        output = empty(input.shape, input.dtype)
        if status := lib.linear_recurrence(id(factor), id(input), dim, id(output)):
            fail("linear_recurrence", status)
        return output

    summed = frozenset({dtypes.bool_, dtypes.uint8, dtypes.int32, dtypes.int64})
    return [
        Kernel("cumsum", running("cumsum", lib.cumsum), FLOATS),
        Kernel("cumsum", running("cumsum", lib.cumsum, INT64), summed),
        Kernel("cumprod", running("cumprod", lib.cumprod), FLOATS | {dtypes.int64}),
        Kernel("logcumsumexp", running("logcumsumexp", lib.logcumsumexp), FLOATS),
        Kernel("linear_recurrence", linear_recurrence, FLOATS),
        Kernel("cummax", extreme("cummax", True), FLOATS | summed),
        Kernel("cummin", extreme("cummin", False), FLOATS | summed),
    ]
