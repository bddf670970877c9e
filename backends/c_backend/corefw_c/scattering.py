"""Gathering and scattering along a dimension, and by positions in the flattened array."""

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import dense, empty
from corefw_c.creation import scalar
from corefw_c.direct import direct
from corefw_c.library import UNSUPPORTED
from corefw_c.positions import HALF, Blocks, Substitute, changed, checked, explain

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
REDUCTIONS = {"sum": 0, "mean": 0, "prod": 1, "amax": 2, "amin": 3}  # as in elements.c
COMBINED = frozenset(d for d in dtypes.ALL if not d.is_complex) - {dtypes.uint16, dtypes.uint32, dtypes.uint64}


def kernels(lib):
    """The family's kernels."""
    blocks = Blocks(lib)

    # -- whole slices: 0-d arrays take part as vectors of one element
    def vector(index):
        if index.ndim > 1:
            raise ValueError("the index has more than one dimension")
        return index if index.ndim else index.reshape(1)

    def line(array):
        return array if array.ndim else array.reshape(1)

    def index_select(input, dim, index):
        index, array = vector(index), line(input)
        shape = array.shape
        output = blocks.read("index_select", array, dim, (index,), shape[:dim] + index.shape + shape[dim + 1 :])
        return output if input.ndim else output.reshape(())

    def index_add(input, dim, index, source, alpha, out=None):
        if alpha != 1:
            source = source * np.asarray(alpha).astype(source.dtype)
        out = changed(lib, input, out)
        blocks.write("index_add", line(out), dim, (vector(index),), dense(line(source)), add=True)
        return out

    def index_copy(input, dim, index, source, out=None):
        out = changed(lib, input, out)
        blocks.write("index_copy", line(out), dim, (vector(index),), dense(line(source)))
        return out

    def index_fill(input, dim, index, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        if index.dtype != INT64:
            raise IndexError("Expected dtype int64 for index")
        out = changed(lib, input, out)
        blocks.write("index_fill", line(out), dim, (vector(index),), value, from_end=True)
        return out

    # -- single elements
    def positions(index):
        """An index array as int64, with a dimension at least."""
        index = checked(index)
        if index.dtype == INT32:
            index = index.astype(np.int64)
        return index if index.ndim else index.reshape(1)

    def slices(index, dim, shape):
        """The positions of whole slices along `dim` of an array of this shape, where `index` is one expanded over the
        other dimensions; else None."""
        if index.ndim < 2 or index.dtype != INT64 or 0 in index.shape:
            return None
        for d, (size, stride) in enumerate(zip(index.shape, index.strides)):
            if d != dim and (size != shape[d] or (stride and size > 1)):
                return None
        return index[(*(0,) * dim, slice(None), *(0,) * (index.ndim - dim - 1))]

    def gather(input, dim, index):
        if 0 in index.strides and len(index.shape) == input.ndim:
            whole = slices(checked(index), dim, input.shape)
            if whole is not None:
                return blocks.read("gather", input, dim, (whole,), index.shape)
        output = empty(index.shape, input.dtype)
        if index.size:
            at, array, result = positions(index), line(input), line(output)
            if status := lib.gather(id(array), dim, id(at), id(result)):
                explain("gather", status, array.shape, dim, (at,), False)
        return output

    def scattered(op, kernel, out, dim, index, source, *reduction):
        """Run a kernel that changes `out`, or a copy where the kernel does not take it, at the positions `index`."""
        at, array = positions(index), line(out)
        status = kernel(id(array), dim, id(at), id(source), *reduction)
        if status == UNSUPPORTED:
            with Substitute(lib, array) as part:
                source, at = part.like(source), at.copy()
                status = kernel(id(part.array), dim, id(at), id(source), *reduction)
        if status:
            explain(op, status, array.shape, dim, (at,), False)

    def scatter_src(input, dim, index, src, out=None):
        out = changed(lib, input, out)
        if index.size:
            scattered("scatter", lib.scatter, out, dim, index, line(src))
        return out

    def scatter_value(input, dim, index, value, out=None):
        out = changed(lib, input, out)
        if index.size:
            scattered("scatter", lib.scatter, out, dim, index, scalar(value, out.dtype))
        return out

    def scatter_reduce(input, dim, index, src, reduce, include_self, out=None):
        out = changed(lib, input, out)
        if not index.size:
            return out
        if reduce == "mean" and out.dtype in HALF:  # the sum is rounded once it is divided
            with Substitute(lib, out, wide=True) as part:
                scatter_reduce(part.array, dim, index, part.like(src), reduce, include_self, part.array)
            return out
        src = line(src)
        if not include_self:  # what was there counts as nothing
            src = src.copy() if np.may_share_memory(src, out) else src
            start = src if reduce in ("amax", "amin") else scalar(reduce == "prod", out.dtype)
            scattered("scatter_reduce", lib.scatter, out, dim, index, start)
        if reduce == "sum" and 0 in index.strides and src.ndim == index.ndim == out.ndim:
            whole = slices(checked(index), dim, out.shape)
            if whole is not None and all(size <= given for size, given in zip(index.shape, src.shape)):
                values = dense(src[tuple([slice(size) for size in index.shape])])
                blocks.write("scatter_reduce", out, dim, (whole,), values, add=True)
                return out
        scattered("scatter_reduce", lib.scatter_combine, out, dim, index, src, REDUCTIONS[reduce])
        if reduce == "mean":
            counts = np.full(out.shape, int(include_self), np.int64)
            one = np.ones((), np.int64)
            scattered("scatter_reduce", lib.scatter_combine, counts, dim, index, one, REDUCTIONS["sum"])
            np.maximum(counts, 1, out=counts)
            out[...] = out // counts if out.dtype.kind in "iu" else out / counts
        return out

    def scatter_add(input, dim, index, src, out=None):
        return scatter_reduce(input, dim, index, src, "sum", True, out)

    # -- the flattened array
    def check_flat(index):
        if index.dtype != INT64:
            raise IndexError(f"Expected a long tensor for index, but got {index.dtype}")

    def outside(size, index):
        """The error for positions of which one lies outside of `size` elements."""
        wrong = index[(index < -size) | (index >= size)].flat[0]
        return IndexError(f"out of range: tried to access index {wrong} on a tensor of {size} elements.")

    def take(input, index):
        check_flat(index)
        flat = dense(input).reshape(-1)
        try:
            return blocks.read("take", flat, 0, (index,), index.shape, from_end=True)
        except IndexError:
            raise outside(flat.size, index) from None

    def put(input, index, source, add, out=None):
        check_flat(index)
        if index.size != source.size:
            raise ValueError("the source has another number of elements than the index")
        out = changed(lib, input, out)
        values = dense(source).reshape(index.shape)
        if not out.flags.c_contiguous:
            with Substitute(lib, out) as part:
                put(part.array, index, values, add, part.array)
            return out
        flat = out.reshape(-1)
        try:
            blocks.write("put", flat, 0, (index,), values, from_end=True, add=add)
        except IndexError:
            raise outside(flat.size, index) from None
        return out

    return [
        Kernel("gather", direct(lib, "gathered", gather)),
        Kernel("index_add", index_add, out=True),
        Kernel("index_copy", index_copy, out=True),
        Kernel("index_fill", index_fill, out=True),
        Kernel("index_select", direct(lib, "selected", index_select)),
        Kernel("put", put, out=True),
        Kernel("scatter_add", scatter_add, COMBINED, out=True),
        Kernel("scatter_reduce", scatter_reduce, COMBINED, out=True),
        Kernel("scatter_src", scatter_src, out=True),
        Kernel("scatter_value", scatter_value, out=True),
        Kernel("take", take),
    ]
