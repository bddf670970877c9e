"""Gathering and scattering along a dimension, and by positions in the flattened array."""

from corefw_numpy.positions import accumulate, changed, check_positions, flat_positions, nonnegative


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only move elements, and sums into positions."""

    # -- whole slices: 0-d arrays take part as vectors of one element
    def vectors(dim, index, *given):
        if index.ndim > 1:
            raise ValueError("the index has more than one dimension")
        arrays = [a if a.ndim else a.reshape(1) for a in given]
        check_positions(index, arrays[0].shape[dim], dim)
        return index.reshape(-1), *arrays

    def check_slices(input, dim, index, source):
        if source.shape != (*input.shape[:dim], index.size, *input.shape[dim + 1 :]):
            raise ValueError("the shape of the source does not match")

    def before(dim):
        return (slice(None),) * dim

    def index_select(input, dim, index):
        index, vector = vectors(dim, index, input)
        if not input.ndim:
            return vector[index].reshape(())
        return (
            vector.take(index, dim) if input.flags.c_contiguous else xp.ascontiguousarray(input[(*before(dim), index)])
        )

    def index_add(input, dim, index, source, alpha, out=None):
        out = changed(xp, input, out)
        index, target, source = vectors(dim, index, out, source)
        check_slices(target, dim, index, source)
        if alpha != 1:
            source = source * xp.asarray(alpha).astype(source.dtype)
        accumulate(xp, target, flat_positions(xp, target.shape, (*before(dim), index)), source)
        return out

    def index_copy(input, dim, index, source, out=None):
        out = changed(xp, input, out)
        index, target, source = vectors(dim, index, out, source)
        check_slices(target, dim, index, source)
        target[(*before(dim), index)] = source
        return out

    def index_fill(input, dim, index, value, out=None):
        if index.ndim > 1 or value.ndim:
            raise ValueError("the index has more than one dimension, or the value has some")
        if index.dtype != "int64":
            raise IndexError("Expected dtype int64 for index")
        out = changed(xp, input, out)
        target = out if out.ndim else out.reshape(1)
        target[(*before(dim), index)] = value
        return out

    # -- single elements
    def grid(input, dim, index):
        """Index arrays that pair each element of `index`, a position along `dim`, with its own other coordinates."""
        if index.ndim != input.ndim:
            raise ValueError("the index has another number of dimensions")
        check_positions(index, input.shape[dim], dim)
        for i, size in enumerate(index.shape):
            if i != dim and size > input.shape[i]:
                raise ValueError("the index is larger than the input")
        axes = xp.ogrid[tuple(slice(size) for size in index.shape)]
        return (*axes[:dim], index, *axes[dim + 1 :])

    def elements(index, *arrays):
        """0-d arrays as vectors of one element."""
        return [a if a.ndim else a.reshape(1) for a in (index, *arrays)]

    def gather(input, dim, index):
        if index.size == 0:
            return xp.empty(index.shape, input.dtype)
        positions, vector = elements(index, input)
        return vector[grid(vector, dim, positions)].reshape(index.shape)

    def covered(index, src):
        """The part of `src` that `index` covers."""
        part = src[tuple(slice(size) for size in index.shape)] if src.ndim == index.ndim else src
        if part.shape != index.shape:
            raise ValueError("the index is larger than the source")
        return part

    def scatter_src(input, dim, index, src, out=None):
        out = changed(xp, input, out)
        if index.size:
            index, target, src = elements(index, out, src)
            target[grid(target, dim, index)] = covered(index, src)
        return out

    def scatter_value(input, dim, index, value, out=None):
        out = changed(xp, input, out)
        if index.size:
            index, target = elements(index, out)
            target[grid(target, dim, index)] = value
        return out

    def scatter_reduce(input, dim, index, src, reduce, include_self, out=None):
        out = changed(xp, input, out)
        if index.size:
            index, target, src = elements(index, out, src)
            positions = flat_positions(xp, target.shape, grid(target, dim, index))
            accumulate(xp, target, positions, covered(index, src), reduce, include_self)
        return out

    def scatter_add(input, dim, index, src, out=None):
        return scatter_reduce(input, dim, index, src, "sum", True, out)

    # -- the flattened array
    def flat_index(input, index):
        if index.dtype != "int64":
            raise IndexError(f"Expected a long tensor for index, but got {index.dtype}")
        try:
            return nonnegative(xp, index, input.size, 0)
        except IndexError:
            wrong = index[(index < -input.size) | (index >= input.size)].flat[0]
            raise IndexError(
                f"out of range: tried to access index {wrong} on a tensor of {input.size} elements."
            ) from None

    def take(input, index):
        return input.take(flat_index(input, index))

    def put(input, index, source, add, out=None):
        out = changed(xp, input, out)
        index = flat_index(input, index)
        if index.size != source.size:
            raise ValueError("the source has another number of elements than the index")
        if add:
            accumulate(xp, out, index, source)
        else:
            xp.put(out, index, source)
        return out

    functions = {
        "gather": gather,
        "index_add": index_add,
        "index_copy": index_copy,
        "index_fill": index_fill,
        "index_select": index_select,
        "put": put,
        "scatter_add": scatter_add,
        "scatter_reduce": scatter_reduce,
        "scatter_src": scatter_src,
        "scatter_value": scatter_value,
        "take": take,
    }
    for name in functions.keys() - {"gather", "index_select", "take"}:
        functions[name].takes_out = True  # type: ignore[attr-defined]
    return functions
