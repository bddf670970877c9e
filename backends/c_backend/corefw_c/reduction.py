"""Reductions: sums, products, means and logical summaries over some or all dimensions."""

import numpy as np

from corefw import dtypes
from corefw.dispatch.registry import Kernel
from corefw_c.arrays import REALS, empty
from corefw_c.library import fail

INT64, BOOL, UINT8 = np.dtype(np.int64), np.dtype(np.bool_), np.dtype(np.uint8)
#: integers that sums and extremes are offered for
INTEGERS = frozenset({dtypes.bool_, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64})
_OTHERS = INTEGERS - {dtypes.uint8} | {dtypes.uint16, dtypes.uint32, dtypes.uint64}
_ALL = 0  # the mask that means all dimensions


def without(shape, dims, keepdim):
    """The shape left by reducing over the dimensions `dims`, None for all."""
    if dims is None:
        return (1,) * len(shape) if keepdim else ()
    if len(dims) == 1:
        (d,) = dims
        return shape[:d] + ((1,) if keepdim and shape else ()) + shape[d + 1 :]
    if keepdim:
        return tuple([1 if d in dims else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in dims])


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
            fail(op, status)
        return output

    return kernel


def along(kernel):
    """A kernel for several dimensions, made to take the number of one."""
    return lambda input, dim, keepdim: kernel(input, (dim,) if dim is not None and input.ndim else None, keepdim)


def kernels(lib):
    """The family's kernels."""

    def offered(op, reduction, taken, dtype=None):
        return Kernel(op, reducing(lib, op, reduction, dtype), taken)

    product = along(reducing(lib, "prod", lib.REDUCE_PRODUCT))
    integer_product = along(reducing(lib, "prod", lib.REDUCE_PRODUCT, INT64))
    return [
        offered("sum", lib.REDUCE_SUM, REALS),
        offered("sum", lib.REDUCE_SUM, INTEGERS, INT64),
        offered("mean", lib.REDUCE_MEAN, REALS),
        offered("nansum", lib.REDUCE_NANSUM, REALS),
        offered("nansum", lib.REDUCE_NANSUM, INTEGERS, INT64),
        Kernel("prod", product, REALS),
        Kernel("prod", integer_product, INTEGERS),
        offered("logsumexp", lib.REDUCE_LOGSUMEXP, REALS),
        offered("all", lib.REDUCE_ALL, _OTHERS | REALS, BOOL),
        offered("all", lib.REDUCE_ALL, frozenset({dtypes.uint8}), UINT8),
        offered("any", lib.REDUCE_ANY, _OTHERS | REALS, BOOL),
        offered("any", lib.REDUCE_ANY, frozenset({dtypes.uint8}), UINT8),
        offered("count_nonzero", lib.REDUCE_NONZERO, _OTHERS | REALS | {dtypes.uint8}, INT64),
    ]
