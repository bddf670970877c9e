"""Arrays of one value, and the conversion of element types."""

from functools import lru_cache
from math import copysign, prod

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import empty, like
from corefw_c.direct import direct
from corefw_c.library import fail


def _scalar(value, sign, dtype):
    result = empty((), dtype)
    np.copyto(result, value, casting="unsafe")
    return result


_shared = lru_cache(maxsize=1024, typed=True)(_scalar)


def scalar(value, dtype):
    """A 0-d array of `value`, converted as C converts; it may be shared, and is never written to."""
    if value.__class__ is complex:
        return _scalar(value, 0, dtype)
    return _shared(value, copysign(1, value), dtype)  # 0.0 and -0.0 are equal keys


def zeros(lib, size, dtype):
    """Zeros of shape `size`."""
    if prod(size) < lib.SMALL:
        return np.zeros(size, dtype)
    output, zero = empty(size, dtype), scalar(0, dtype)
    if status := lib.copy(id(zero), id(output)):
        fail("zeros", status)
    return output


def kernels(lib):
    """The family's kernels."""
    convert, small = lib.copy, lib.SMALL

    def zeros_at(size, dtype):
        return zeros(lib, size, dtype)

    def full_at(size, value, dtype):
        output = empty(size, dtype)
        if output.nbytes < small:
            output.fill(value)
            return output
        one = scalar(value, dtype)
        if status := lib.copy(id(one), id(output)):
            fail("full_at", status)
        return output

    def cast(input, dtype, copy):
        if not copy and input.dtype == dtype:
            return input
        output = empty(input.shape, dtype) if input.flags.c_contiguous else like(input, dtype)
        if status := convert(id(input), id(output)):
            if input.dtype.kind == "c" != dtype.kind:
                with np.errstate(invalid="ignore", over="ignore"):  # what C makes of numbers out of range
                    np.copyto(output, input if dtype.kind == "b" else input.real, casting="unsafe")
                return output
            fail("cast", status)
        return output

    real = frozenset(d for d in dtypes.ALL if not d.is_complex)
    return [
        Kernel("cast", direct(lib, "converted", cast), real),
        Kernel("full_at", direct(lib, "full", full_at)),
        Kernel("zeros_at", direct(lib, "zeros", zeros_at)),
    ]
