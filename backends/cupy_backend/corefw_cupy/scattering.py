"""Gathering and scattering along a dimension, and by positions in the flattened array."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.combining import REDUCTIONS, combining
from corefw_cupy.cuda import Cuda
from corefw_cupy.positions import INT64, along_elements, along_slices, positions


def line(array):
    """0-d arrays as vectors of one element."""
    return array if array.ndim else array.reshape(1)


def vector(index):
    """Positions of slices, refused if they are not in one dimension."""
    if index.ndim > 1:
        raise ValueError("the index has more than one dimension")
    return line(index)


def same_dtype(array, values):
    """The values, refused if they have another dtype than the array."""
    if values.dtype != array.dtype:
        raise ValueError("the values have another dtype than the array")
    return values


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    at, sums, copying = positions(cuda), combining(cuda), cuda.copying
    bounds = {
        op: cuda.device_asserts.out_of_bounds(op)
        for op in ("gather", "index_add", "index_copy", "index_fill", "index_select", "scatter")
    }
    flat_bounds = cuda.device_asserts.kind("out of range: tried to access index {0} on a tensor of {2} elements.")

    # -- whole slices: 0-d arrays take part as vectors of one element
    def index_select(input, dim, index):
        index, array = vector(index), line(input)
        found = at.read_slices(array, dim, index, False, bounds["index_select"])
        return found if input.ndim else found.reshape(())

    def matching(array, dim, index, source):
        """The source of slices, refused unless its shape is theirs."""
        source = line(same_dtype(array, source))
        if source.shape != (*array.shape[:dim], index.size, *array.shape[dim + 1 :]):
            raise ValueError("the shape of the source does not match")
        return source

    def index_add(input, dim, index, source, alpha, out=None):
        out, index = at.changed(input, out), vector(index)
        source = matching(line(out), dim, index, source)

        def add(array):
            array = line(array)
            kind = bounds["index_add"]
            sums.combine(array, along_slices(array, dim, index), index, source, kind, factor=alpha)

        sums.wide(out, add)
        return out

    def index_copy(input, dim, index, source, out=None):
        out, index = at.changed(input, out), vector(index)
        array = line(out)
        source = matching(array, dim, index, source)
        sums.write(array, along_slices(array, dim, index), index, source, bounds["index_copy"])
        return out

    def index_fill(input, dim, index, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        if index.dtype != INT64:
            raise IndexError("Expected dtype int64 for index")
        out, index = at.changed(input, out), vector(index)
        array = line(out)
        grid = along_slices(array, dim, index, from_end=True)
        at.write(array, grid, index, same_dtype(array, value), bounds["index_fill"])
        return out

    # -- single elements
    def gather(input, dim, index):
        if not index.size:
            return cuda.empty(index.shape, input.dtype)
        array, where = line(input), line(index)
        return at.read(array, along_elements(array, dim, where), where, bounds["gather"]).reshape(index.shape)

    def covered(index, src):
        """The part of `src` that `index` covers."""
        part = src[tuple(slice(size) for size in index.shape)] if src.ndim == index.ndim else src
        if part.shape != index.shape:
            raise ValueError("the index is larger than the source")
        return part

    def write(out, dim, index, values):
        array = line(out)
        sums.write(array, along_elements(array, dim, index), index, values, bounds["scatter"])

    def scatter_src(input, dim, index, src, out=None):
        out = at.changed(input, out)
        if index.size:
            index = line(index)
            write(out, dim, index, covered(index, line(src)))
        return out

    def scatter_value(input, dim, index, value, out=None):
        out = at.changed(input, out)
        if index.size:
            write(out, dim, line(index), copying.full((), value, out.dtype))
        return out

    def scatter_reduce(input, dim, index, src, reduce, include_self, out=None):
        if reduce not in (*REDUCTIONS, "mean"):
            raise ValueError(f"a reduction by {reduce}")
        out = at.changed(input, out)
        if not index.size:
            return out
        index = line(index)
        src = covered(index, line(same_dtype(out, src)))
        if not include_self:  # what was there counts as nothing
            index, src = at.apart(out, index), at.apart(out, src)
            write(out, dim, index, src if reduce in ("amax", "amin") else copying.full((), reduce == "prod", out.dtype))

        def combine(array, values, reduce):
            array = line(array)
            sums.combine(array, along_elements(array, dim, index), index, values, bounds["scatter"], reduce)

        def change(array):
            combine(array, src, reduce if reduce in REDUCTIONS else "sum")
            if reduce == "mean":
                counts = copying.full(array.shape, int(include_self), INT64)
                combine(counts, copying.full((), 1, INT64), "sum")
                sums.average(array, counts)

        sums.wide(out, change)
        return out

    def scatter_add(input, dim, index, src, out=None):
        return scatter_reduce(input, dim, index, src, "sum", True, out)

    # -- the flattened array
    def check_flat(index):
        if index.dtype != INT64:
            raise IndexError(f"Expected a long tensor for index, but got {index.dtype}")

    def take(input, index):
        check_flat(index)
        array = cuda.dense(input).reshape(-1)
        return at.read_slices(array, 0, index, True, flat_bounds)

    def put(input, index, source, add, out=None):
        check_flat(index)
        out = at.changed(input, out)
        if index.size != source.size:
            raise ValueError("the source has another number of elements than the index")
        values = cuda.dense(same_dtype(out, source)).reshape(index.shape)

        def change(array):
            flat = cuda.dense(array).reshape(-1)
            grid = along_slices(flat, 0, index, from_end=True)
            (sums.combine if add else sums.write)(flat, grid, index, values, flat_bounds)
            if not array.flags.c_contiguous:
                copying.copy(array, flat.reshape(array.shape))

        if add:
            sums.wide(out, change)
        else:
            change(out)
        return out

    return [
        Kernel("gather", gather),
        Kernel("index_add", index_add, out=True, deterministic="if asked"),
        Kernel("index_copy", index_copy, out=True, deterministic="if asked"),
        Kernel("index_fill", index_fill, out=True),
        Kernel("index_select", index_select),
        Kernel("put", put, out=True, deterministic="if asked"),
        Kernel("scatter_add", scatter_add, out=True, deterministic="if asked"),
        Kernel("scatter_reduce", scatter_reduce, out=True, deterministic="if asked"),
        Kernel("scatter_src", scatter_src, out=True, deterministic="if asked"),
        Kernel("scatter_value", scatter_value, out=True),
        Kernel("take", take),
    ]
