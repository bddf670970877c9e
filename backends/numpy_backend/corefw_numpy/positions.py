"""What indexing and scattering share: positions in flattened arrays, their checks, and sums into them."""

from math import prod


def changed(xp, input, out):
    """The array to change: `out`, holding the input's elements, or a copy of the input."""
    if out is None:
        return xp.array(input, order="C")
    if out is not input:
        xp.copyto(out, input)
    return out


def check_positions(index, size, dim):
    """Refuse index arrays that are not int32 or int64, and positions outside ``0 .. size - 1``."""
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise IndexError("Expected dtype int32/int64 for index")
    if index.size and index.view(f"u{index.dtype.itemsize}").max() >= size:  # negative ones are large when unsigned
        wrong = index[(index < 0) | (index >= size)].flat[0]
        raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def nonnegative(xp, index, size, dim):
    """Positions counted from the start, for those in ``-size .. size - 1``."""
    if index.size == 0:
        return index
    lowest, highest = index.min(), index.max()
    if lowest < -size or highest >= size:
        wrong = highest if highest >= size else lowest
        raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")
    return xp.where(index < 0, index + size, index) if lowest < 0 else index


def flat_positions(xp, shape, key):
    """Where the elements of ``array[key]`` lie in the flattened array of `shape`, in the shape of ``array[key]``."""
    entries: list = []  # one per dimension: an array of positions, or None
    for item in key:
        if isinstance(item, slice):
            entries.append(None)
        elif item.dtype.kind == "b":
            if not item.ndim:  # a new dimension, of size 1 or 0
                return xp.arange(prod(shape)).reshape(shape)[key]
            if item.shape != tuple(shape[len(entries) : len(entries) + item.ndim]):
                raise IndexError("The shape of the mask does not match the shape of the indexed tensor")
            entries += item.nonzero()
        else:
            entries.append(item)
    entries += [None] * (len(shape) - len(entries))
    arrays = [i for i, item in enumerate(entries) if item is not None]
    if not arrays:
        return xp.arange(prod(shape)).reshape(shape)
    neighbours = arrays == list(range(arrays[0], arrays[-1] + 1))
    shared = xp.broadcast_shapes(*(entries[i].shape for i in arrays))
    common = len(shared)  # dimensions that the arrays have together
    after = len(entries) - arrays[-1] - 1 if neighbours else len(entries) - len(arrays)  # whole ones behind these
    result = xp.zeros((), dtype="int64")
    stride = 1
    behind = 0  # dimensions of the result behind that of the entry, if this is taken whole
    for i in reversed(range(len(entries))):
        if entries[i] is None:
            item = xp.arange(shape[i]).reshape((-1,) + (1,) * (behind + common * (behind >= after)))
            behind += 1
        else:
            item = entries[i] if 0 in shared else nonnegative(xp, entries[i], shape[i], i)
            item = item.reshape(item.shape + (1,) * after)
        result = result + item * stride
        stride *= shape[i]
    return result


def accumulate(xp, out, positions, values, reduce="sum", include_self=True):
    """Combine `values` with the elements of `out` at flat `positions`; half types in float32.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` what was at the positions does not
    count.
    """
    half = out.dtype.kind == "V" or (out.dtype.kind == "f" and out.dtype.itemsize == 2)
    direct = out.flags.c_contiguous and not half
    flat = (out if direct else out.astype(xp.float32 if half else out.dtype, order="C")).reshape(-1)
    if not flat.flags.writeable:  # which `at` does not look at
        raise ValueError("output array is read-only")
    positions, values = positions.reshape(-1), values.reshape(-1).astype(flat.dtype, copy=False)
    if not include_self:
        values = values.copy() if xp.may_share_memory(values, flat) else values
        flat[positions] = {"sum": 0, "prod": 1, "mean": 0}.get(reduce, values)
    {"sum": xp.add, "mean": xp.add, "prod": xp.multiply, "amax": xp.maximum, "amin": xp.minimum}[reduce].at(
        flat, positions, values
    )
    if reduce == "mean":
        counts = xp.bincount(positions, minlength=flat.size)
        counts = counts + 1 if include_self else xp.maximum(counts, 1)
        flat[...] = flat // counts if flat.dtype.kind in "iu" else flat / counts
    if not direct:
        out[...] = flat.reshape(out.shape)
