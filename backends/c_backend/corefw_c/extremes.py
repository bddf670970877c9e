"""Largest and smallest elements, and where they are."""

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail
from corefw_c.reduction import INT64, INTEGERS, converted, reducing, through, without

_PLACED = FLOATS | {dtypes.int64}
_WIDENED = INTEGERS - {dtypes.int64}


def kernels(lib):
    """The family's kernels."""
    argreduce = lib.argreduce

    def position(op, reduction):
        def kernel(input, dim, keepdim):
            if dim is None:
                input, dims, mask = dense(input), None, 0
            else:
                dims, mask = (dim,), 1 << dim
            indices = empty(without(input.shape, dims, keepdim), INT64)
            if status := argreduce(reduction, id(input), mask, 0, id(indices)):
                fail(op, status)
            return indices

        return [Kernel(op, kernel, _PLACED), Kernel(op, through(lib, INT64, kernel), _WIDENED - {dtypes.bool_})]

    def element(op, reduction):
        def kernel(input, dim, keepdim):
            shape = without(input.shape, (dim,), keepdim)
            values, indices = empty(shape, input.dtype), empty(shape, INT64)
            if status := argreduce(reduction, id(input), 1 << dim, id(values), id(indices)):
                fail(op, status)
            return values, indices

        def widened(input, dim, keepdim):
            values, indices = kernel(converted(lib, input, INT64), dim, keepdim)
            return values.astype(input.dtype), indices

        return [Kernel(op, kernel, _PLACED), Kernel(op, widened, _WIDENED)]

    largest, smallest = reducing(lib, "amax", lib.REDUCE_LARGEST), reducing(lib, "amin", lib.REDUCE_SMALLEST)
    return [
        Kernel("amax", largest, FLOATS | INTEGERS),
        Kernel("amin", smallest, FLOATS | INTEGERS),
        *position("argmax", lib.REDUCE_FIRST_LARGEST),
        *position("argmin", lib.REDUCE_FIRST_SMALLEST),
        *element("max_dim", lib.REDUCE_FIRST_LARGEST),
        *element("min_dim", lib.REDUCE_FIRST_SMALLEST),
    ]
