"""Reading and writing parts of arrays by positions and masks. In-place forms write to `out`, the input's own memory.

Where the data of a mask tell how large a result is (`nonzero`, `masked_select`, masks among indices), the host waits
for the number.
"""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.errors import DtypeError
from corefw.shapes import broadcast
from corefw_cupy.combining import combining
from corefw_cupy.cuda import Cuda
from corefw_cupy.positions import INDICES, along_slices, at_offsets, positions
from corefw_cupy.selection import selection

BOOL = np.dtype(bool)


def as_mask(mask, op: str):
    """`mask` as it is, refused unless it is bool."""
    if mask.dtype != np.bool_:
        raise DtypeError(f"{op}: expected a boolean mask, but got one with dtype {mask.dtype}")
    return mask


def side_by_side(array, dims: list[int]):
    """A view with the indexed dimensions side by side, and the first of them: in place where these are neighbours,
    else in front."""
    if dims[-1] - dims[0] < len(dims):
        return array, dims[0]
    return array.transpose(dims + [d for d in range(array.ndim) if d not in dims]), 0


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copying, at, sums, masks = cuda.copying, positions(cuda), combining(cuda), selection(cuda)
    index_bounds, put_bounds = (cuda.device_asserts.out_of_bounds(op) for op in ("index", "index_put"))
    broadcast_to = cuda.xp.broadcast_to

    # -- index arrays
    def without_masks(array, indices: list) -> list:
        """The index arrays, those of its true elements' positions for each mask."""
        found: list = []
        for item in indices:
            if item is not None and item.dtype.itemsize == 1:
                if item.shape != array.shape[len(found) : len(found) + item.ndim]:
                    raise IndexError("The shape of the mask does not match the shape of the indexed tensor")
                found.extend(nonzero(item).transpose())
            else:
                found.append(item)
        return found

    def located(array, indices: list, kind: int):
        """The grid of the elements that index arrays give together, the index array of the grid, and the kind of fault
        that is left to report."""
        dims = [dim for dim, item in enumerate(indices) if item is not None]
        if not dims:  # every element
            first = cuda.empty((1,), np.dtype(np.int64))
            copying.fill(first, 0)
            array, dims, indices = array[None], [0], [first]
        if dims[-1] >= array.ndim:
            raise IndexError("too many indices")
        if len(dims) == 1:
            index = indices[dims[0]]
            return array, along_slices(array, dims[0], index, from_end=True), index, kind
        offsets = at.offsets(array, dims, [indices[dim] for dim in dims], kind)
        array, first = side_by_side(array, dims)
        return array, at_offsets(array, first, len(dims), offsets), offsets, 0

    def index(input, indices):
        if len(indices) == 1 and (item := indices[0]) is not None:
            if item.dtype in INDICES:
                return at.read_slices(input, 0, item, True, index_bounds)
            if item.dtype == BOOL and item.shape == input.shape:
                return masked_select(input, item)
        if min(input.strides, default=0) < 0:
            input = copying.dense(input)
        if all(item is None for item in indices):
            return copying.dense(input)
        return at.read(*located(input, without_masks(input, indices), index_bounds))

    def is_fill(input, indices, values) -> bool:
        """Whether one value goes to where one mask is true."""
        return (
            values.size == 1
            and len(indices) == 1
            and (mask := indices[0]) is not None
            and mask.dtype == BOOL
            and mask.shape == input.shape[: mask.ndim]
        )

    def index_put(input, indices, values, add, out=None):
        if not add and is_fill(input, indices, values) and values.dtype == input.dtype:
            mask = indices[0][(..., *(None,) * (input.ndim - indices[0].ndim))]
            return copying.choose(mask, values.reshape(()), input, out)
        out = at.changed(input, out)
        if add:
            sums.wide(out, lambda array: put(array, indices, values, sums.combine))
        else:
            put(out, indices, values, sums.write)
        return out

    def put(array, indices, values, write):
        if min(array.strides, default=0) < 0:
            forwards = copying.dense(array)
            put(forwards, indices, values, write)
            copying.copy(array, forwards)
        else:
            array, grid, offsets, kind = located(array, without_masks(array, indices), put_bounds)
            write(array, grid, offsets, values, kind)

    # -- copies and fills
    def copy(input, src, out=None):
        if out is None:
            out = cuda.empty(broadcast(input.shape, src.shape), input.dtype)
        copying.copy(out, src)
        return out

    def fill(input, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        return copy(input, value, out)

    # -- masks
    def choose(condition, input, other, out=None):
        return copying.choose(as_mask(condition, "where"), input, other, out)

    def masked_fill(input, mask, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        return copying.choose(as_mask(mask, "masked_fill"), value, input, out)

    def nonzero(input):
        return masks.positions(cuda.dense(input if input.dtype == np.bool_ else copying.cast(input, BOOL)))

    def masked_select(input, mask):
        shape = broadcast(input.shape, as_mask(mask, "masked_select").shape)
        return masks.read(cuda.dense(broadcast_to(mask, shape)), cuda.dense(broadcast_to(input, shape)))

    def masked_scatter(input, mask, source, out=None):
        shape = input.shape if out is input else broadcast(input.shape, as_mask(mask, "masked_scatter").shape)
        if source.dtype != input.dtype:
            raise ValueError("the source has another dtype than the input")
        out = at.changed(broadcast_to(input, shape) if input.shape != shape else input, out)
        array = cuda.dense(out)
        mask, source = at.apart(array, mask), at.apart(array, source)
        masks.write(cuda.dense(broadcast_to(mask, shape)), array, cuda.dense(source))
        if array is not out:
            copying.copy(out, array)
        return out

    return [
        Kernel("choose", choose, out=True),
        Kernel("copy", copy, out=True),
        Kernel("fill", fill, out=True),
        Kernel("index", index),
        Kernel("index_put", index_put, out=True, deterministic="if asked"),
        Kernel("masked_fill", masked_fill, out=True),
        Kernel("masked_scatter", masked_scatter, out=True),
        Kernel("masked_select", masked_select),
        Kernel("nonzero", nonzero),
    ]
