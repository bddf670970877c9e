"""Numbers at equal distances, and the identity matrix."""

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import REALS, empty
from corefw_c.direct import direct
from corefw_c.library import fail

INTEGERS = frozenset(d for d in dtypes.ALL if d.category == dtypes.INTEGER)
_ALL = 1 << 64  # numbers of 64 bits


def kernels(lib):
    """The family's kernels."""

    def arange_at(start, step, count, dtype):
        if dtype.kind != "f" and not (isinstance(start, int) and isinstance(step, int)):
            return (np.arange(count) * step + start).astype(dtype)
        output = empty(count, dtype)
        if dtype.kind == "f":
            status = lib.real_range(start, step, id(output))
        else:
            status = lib.integer_range(start % _ALL, step % _ALL, id(output))
        if status:
            fail("arange_at", status)
        return output

    def linspace_at(start, end, steps, dtype):
        output = empty(steps, dtype)
        if status := lib.real_linspace(start, end, id(output)):
            fail("linspace_at", status)
        return output

    def eye_at(n, m, dtype):
        output = empty((n, m), dtype)
        if status := lib.identity(id(output)):
            fail("eye_at", status)
        return output

    return [
        Kernel("arange_at", direct(lib, "range", arange_at), INTEGERS | REALS),
        Kernel("eye_at", direct(lib, "eye", eye_at), INTEGERS | REALS | {dtypes.bool_}),
        Kernel("linspace_at", direct(lib, "linspace", linspace_at), REALS),
    ]
