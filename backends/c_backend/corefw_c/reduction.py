"""Reductions: sums, products, means and logical summaries over some or all dimensions."""

from functools import lru_cache

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.shapes import reduced
from corefw_c.arrays import FLOATS, empty
from corefw_c.library import fail

INT64, BOOL, UINT8 = map(np.dtype, (np.int64, np.bool_, np.uint8))
#: integers that sums and extremes are compiled for
INTEGERS = frozenset({dtypes.bool_, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64})
#: what is compared with zero as it is, and what becomes bool first
_TESTED = FLOATS | {dtypes.bool_, dtypes.int8, dtypes.int64, dtypes.uint64}
_CONVERTED = frozenset({dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32})
_ALL = 0  # the mask that means all dimensions


#: the shape left by reducing a shape over some dimensions or all
without = lru_cache(maxsize=4096)(reduced)


@lru_cache(maxsize=4096)
def mask_of(dims):
    """The dimensions as the bits of a number, none for all."""
    mask = 0
    for d in dims or ():
        mask |= 1 << d
    return mask


def reducing(lib, op, reduction, dtype=None):
    """The kernel of a reduction over several dimensions, whose result has `dtype` or else the input's."""
    reduce = lib.reduce

    def kernel(input, dim, keepdim=False):
        if dim is None:
            output = empty((1,) * input.ndim if keepdim else (), dtype or input.dtype)
            status = reduce(reduction, id(input), _ALL, 0, id(output))
        else:
            output = empty(without(input.shape, dim, keepdim), dtype or input.dtype)
            status = reduce(reduction, id(input), mask_of(dim), 0, id(output))
        if status:
            if dim == ():  # no dimension, where C knows some or all: every element is its own summary
                return np.asarray(input != 0, output.dtype)
            fail(op, status)
        return output

    return kernel


def along(kernel):
    """A kernel for several dimensions, made to take the number of one."""
    return lambda input, dim, keepdim: kernel(input, (dim,) if dim is not None and input.ndim else None, keepdim)


def through(lib, dtype, kernel):
    """A kernel for `dtype`, made to take what converts to that."""

    def converting(input, dim, keepdim=False):
        return kernel(converted(lib, input, dtype), dim, keepdim)

    return converting


def converted(lib, input, dtype):
    """The array in another dtype."""
    if input.dtype == dtype:
        return input
    output = empty(input.shape, dtype)
    if status := lib.copy(id(input), id(output)):
        fail("to", status)
    return output


def kernels(lib):
    """The family's kernels."""

    def offered(op, reduction, taken, dtype=None):
        return Kernel(op, reducing(lib, op, reduction, dtype), taken)

    def of_bool(op, reduction, dtype, of_uint8):
        kernel = reducing(lib, op, reduction, dtype)
        return [
            Kernel(op, kernel, _TESTED),
            Kernel(op, through(lib, BOOL, kernel), _CONVERTED),
            offered(op, reduction, frozenset({dtypes.uint8}), of_uint8),
        ]

    product = along(reducing(lib, "prod", lib.REDUCE_PRODUCT))
    return [
        offered("sum", lib.REDUCE_SUM, FLOATS),
        offered("sum", lib.REDUCE_SUM, INTEGERS, INT64),
        offered("mean", lib.REDUCE_MEAN, FLOATS),
        offered("nansum", lib.REDUCE_NANSUM, FLOATS),
        offered("nansum", lib.REDUCE_NANSUM, INTEGERS, INT64),
        Kernel("prod", product, FLOATS),
        Kernel("prod", through(lib, INT64, product), INTEGERS),
        offered("logsumexp", lib.REDUCE_LOGSUMEXP, FLOATS),
        *of_bool("all", lib.REDUCE_ALL, BOOL, UINT8),
        *of_bool("any", lib.REDUCE_ANY, BOOL, UINT8),
        *of_bool("count_nonzero", lib.REDUCE_NONZERO, INT64, INT64),
    ]
