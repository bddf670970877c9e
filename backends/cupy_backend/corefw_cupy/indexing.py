"""Reading and writing parts of arrays by positions and masks. In-place forms write to `out`, the input's own memory."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.registry import Kernel
from corefw.errors import DtypeError
from corefw_cupy.cuda import Cuda


def as_mask(mask, op: str):
    """`mask` as it is, refused unless it is bool."""
    if mask.dtype != np.bool_:
        raise DtypeError(f"{op}: expected a boolean mask, but got one with dtype {mask.dtype}")
    return mask


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copying = cuda.copying

    def choose(condition, input, other, out=None):
        return copying.choose(as_mask(condition, "where"), input, other, out)

    def masked_fill(input, mask, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        return copying.choose(as_mask(mask, "masked_fill"), value, input, out)

    return [Kernel("choose", choose, out=True), Kernel("masked_fill", masked_fill, out=True)]
