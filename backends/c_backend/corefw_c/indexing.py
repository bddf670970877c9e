"""Reading and writing parts of arrays by positions and masks. In-place forms write to `out`, the input's own memory."""

from math import prod

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import broadcast
from corefw_c.arrays import dense, empty, like
from corefw_c.direct import direct
from corefw_c.library import UNSUPPORTED, fail
from corefw_c.positions import Blocks, Substitute, changed, checked


def as_mask(mask, name):
    """`mask` as it is, refused unless it is bool."""
    mask = checked(mask)
    if mask.dtype.kind != "b":
        raise DtypeError(f"{name}: expected a boolean mask, but got one with dtype {mask.dtype}")
    return mask


def narrow_mask(item):
    """An index array of one or two bytes an element as a mask; IndexError for one that holds no mask."""
    if item.dtype.char not in "?B":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return item.astype(bool)


def kernels(lib):
    """The family's kernels."""
    blocks, small = Blocks(lib), lib.SMALL

    # -- masks
    def count(mask):
        found = lib.count_true(id(mask))
        if found < 0:
            fail("count", -found)
        return found

    def find(mask, shape_of):
        """The positions of the true elements of a contiguous mask, in an array of shape `shape_of(count)`."""
        output = empty(shape_of(count(mask)), np.int64)
        if output.size and (status := lib.find_true(id(mask), id(output))):
            fail("nonzero", status)
        return output

    def as_bool(array):
        """A contiguous array that is true where `array` is not zero."""
        if array.dtype.kind == "b":
            return dense(checked(array))
        if array.dtype.kind == "c":
            return dense(np.asarray(array != 0))
        result = empty(array.shape, bool)
        if status := lib.copy(id(array), id(result)):
            fail("nonzero", status)
        return result

    def nonzero(input):
        return find(as_bool(input), lambda n: (n, input.ndim))

    def masked_select(input, mask):
        mask = as_mask(mask, "masked_select")
        if input.shape != mask.shape:
            input, mask = np.broadcast_arrays(input, mask)
        if input.nbytes < small:
            return input[mask]
        input, mask = dense(input), dense(mask)
        output = empty(count(mask), input.dtype)
        if status := lib.masked_read(id(input), id(mask), id(output)):
            fail("masked_select", status)
        return output

    def masked_scatter(input, mask, source, out=None):
        mask = as_mask(mask, "masked_scatter")
        if out is None and input.shape != mask.shape:
            input = np.broadcast_to(input, broadcast(input.shape, mask.shape))
        out = changed(lib, input, out)
        mask = dense(np.broadcast_to(mask, out.shape))
        needed = count(mask)
        if source.size < needed:
            raise ValueError(f"Number of elements of source < number of ones in mask ({source.size} < {needed})")
        source = dense(source).reshape(-1)
        status = lib.masked_write(id(out), id(mask), id(source)) if out.flags.c_contiguous else UNSUPPORTED
        if status == UNSUPPORTED:
            with Substitute(lib, out) as part:
                source = part.like(source)
                status = lib.masked_write(id(part.array), id(mask), id(source))
        if status:
            fail("masked_scatter", status)
        return out

    # -- index arrays
    def without_masks(array, indices):
        """The array with the dimensions of each mask made one, and the index arrays with positions in it for the mask.

        The array is a view of the given one, or a copy if its memory does not allow that.
        """
        if not any_mask(indices):
            return array, indices
        shape, arrays, at = [], [], 0
        for item in indices:
            if item is not None and item.dtype.itemsize <= 2:
                item = narrow_mask(item)
                if item.shape != array.shape[at : at + item.ndim]:
                    raise IndexError("The shape of the mask does not match the shape of the indexed tensor")
                shape.append(prod(item.shape))
                arrays.append(find(as_bool(item), lambda n: (n,)))
                at += item.ndim
            else:
                shape += array.shape[at : at + 1]
                arrays.append(item)
                at += 1
        return array.reshape(*shape, *array.shape[at:]), arrays

    def arranged(array, indices):
        """A view with the indexed dimensions side by side, the first of them, the index arrays, the result's shape."""
        dims = [i for i, item in enumerate(indices) if item is not None]
        if not dims:  # every element
            array, dims, indices = array[None], [0], [np.zeros(1, np.int64)]
        arrays = [indices[i] for i in dims]
        first = dims[0]
        if dims[-1] - first >= len(dims):
            array = array.transpose(dims + [i for i in range(array.ndim) if i not in dims])
            first = 0
        common = arrays[0].shape
        if any(other.shape != common for other in arrays[1:]):
            try:
                common = np.broadcast(*arrays).shape
            except ValueError as error:
                raise IndexError(str(error)) from None
        shape = array.shape
        return array, first, arrays, shape[:first] + common + shape[first + len(dims) :]

    def any_mask(indices):
        return any(item is not None and item.dtype.itemsize <= 2 for item in indices)

    def few(array, indices):
        """The key with which NumPy indexes in less time than it takes to prepare a kernel's call; None if it does
        not."""
        if array.nbytes >= small:
            return None
        key = []
        for item in indices:
            if item is None:
                key.append(slice(None))
            elif not 0 < item.size * 8 < small:
                return None
            else:
                key.append(item if item.dtype.itemsize > 2 else narrow_mask(item))
        return tuple(key)

    def index(input, indices):
        if not indices or (indices[0] is None and all(item is None for item in indices)):
            return input.copy("C")
        if (key := few(input, indices)) is not None:
            return dense(np.asarray(input[key]))
        if len(indices) == 1 and (mask := indices[0]).dtype.kind == "b" and mask.shape == input.shape:
            return masked_select(input, mask)
        array, dim, arrays, shape = arranged(*without_masks(input, indices))
        return blocks.read("index", array, dim, arrays, shape, from_end=True)

    def index_put(input, indices, values, add, out=None):
        out = changed(lib, input, out)
        if not add and (values.ndim < 2 or not any_mask(indices)) and (key := few(out, indices)) is not None:
            out[key] = values
            return out
        merged, indices = without_masks(out, indices)
        array, dim, arrays, shape = arranged(merged, indices)
        while values.ndim > len(shape) and values.shape[0] == 1:
            values = values.reshape(values.shape[1:])
        if values.size == 1 and not add:
            values = values.reshape(())
        elif values.shape != shape:
            try:
                values = np.broadcast_to(values, shape)
            except ValueError:
                raise ShapeError(
                    f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing "
                    f"result of shape {list(shape)}"
                ) from None
        blocks.write("index_put", array, dim, arrays, dense(values), from_end=True, add=add)
        if merged is not out and not np.may_share_memory(merged, out):
            np.copyto(out, merged.reshape(out.shape))
        return out

    # -- copies and fills
    def copy(input, src, out=None):
        if out is None:
            out = empty(broadcast(input.shape, src.shape), input.dtype)
        if out.nbytes < small:
            np.copyto(out, src)
        elif status := lib.copy(id(src), id(out)):
            fail("copy", status)
        return out

    def fill(input, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        if out is None:
            out = like(input)
        if out.nbytes < small:
            out[...] = value
        elif status := lib.copy(id(value), id(out)):
            fail("fill", status)
        return out

    return [
        Kernel("copy", direct(lib, "overwritten", copy, 0), out=True),
        Kernel("fill", direct(lib, "overwritten", fill, 1), out=True),
        Kernel("index", direct(lib, "indexed", index)),
        Kernel("index_put", index_put, out=True),
        Kernel("masked_scatter", masked_scatter, out=True),
        Kernel("masked_select", masked_select),
        Kernel("nonzero", nonzero),
    ]
