"""Reading and writing parts of arrays by positions and masks. In-place forms write to `out`, the input's own memory."""

from math import prod

from corefw.errors import DtypeError
from corefw_numpy.memory import order_like
from corefw_numpy.positions import accumulate, changed, flat_positions


def as_mask(mask, name):
    """`mask` as it is, refused unless it is bool."""
    if mask.dtype.kind != "b":
        raise DtypeError(f"{name}: expected a boolean mask, but got one with dtype {mask.dtype}")
    return mask.astype(bool, copy=False)


def as_key(shape, indices):
    """What to index an array of `shape` with for index arrays (uint8 ones are masks) and None for dimensions taken
    whole."""
    key: list = []
    dim = 0
    for item in indices:
        if item is None:
            key.append(slice(None))
        elif item.dtype.kind == "i" and item.dtype.itemsize > 2:
            key.append(item)
        elif item.dtype.kind == "b" or (item.dtype.kind == "u" and item.dtype.itemsize == 1):
            if item.shape != tuple(shape[dim : dim + item.ndim]):  # NumPy takes one of size 0 for any
                raise IndexError("The shape of the mask does not match the shape of the indexed tensor")
            key.append(item.astype(bool, copy=False))
            dim += item.ndim - 1
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        dim += 1
    return tuple(key)


def in_one_row(values):
    """Values for the elements where a mask is true, whose dimensions but the last have size 1, as NumPy wants them."""
    if prod(values.shape[:-1]) != 1:
        raise ValueError(f"values of shape {list(values.shape)} do not broadcast to the elements of a mask")
    return values.reshape(values.shape[-1:])


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only move elements, and sums into positions."""

    def index(input, indices):
        if all(item is None for item in indices):
            return xp.array(input, order="C")
        key = as_key(input.shape, indices)
        if (
            all(item is None for item in indices[:-1])
            and indices[-1].dtype.kind == "i"
            and input.flags.c_contiguous
            and input.size  # `take` checks no positions where there is nothing to read
        ):
            return input.take(indices[-1], len(indices) - 1)
        return xp.ascontiguousarray(input[key])

    def index_put(input, indices, values, add, out=None):
        out = changed(xp, input, out)
        key = as_key(out.shape, indices)
        if add:
            positions = flat_positions(xp, out.shape, key)
            if values.ndim > positions.ndim:  # further dimensions in front, which have size 1
                values = values.reshape(values.shape[values.ndim - positions.ndim :])
            accumulate(xp, out, positions, xp.broadcast_to(values, positions.shape))
        else:
            whole = any(item is not None and item.dtype.kind != "i" and item.ndim == out.ndim for item in indices)
            if not values.size:  # which NumPy leaves unchecked
                xp.empty_like(out[key])[...] = values
            out[key] = in_one_row(values) if whole and values.ndim > 1 else values
        return out

    def copy(input, src, out=None):
        if out is None:
            out = xp.empty(xp.broadcast_shapes(input.shape, src.shape), input.dtype)
        xp.copyto(out, src)
        return out

    def fill(input, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        if out is None:
            return xp.full_like(input, value, order=order_like(input))
        out[...] = value
        return out

    def choose(condition, input, other):
        return xp.where(as_mask(condition, "where"), input, other)

    def masked_fill(input, mask, value, out=None):
        mask = as_mask(mask, "masked_fill")
        if value.ndim:
            raise ValueError("the value has dimensions")
        if out is None:
            return xp.where(mask, value, input)
        if out is not input:
            xp.copyto(out, input)
        xp.copyto(out, value, where=mask)
        return out

    def masked_select(input, mask):
        input, mask = xp.broadcast_arrays(input, as_mask(mask, "masked_select"))
        return input[mask]

    def masked_scatter(input, mask, source, out=None):
        mask = as_mask(mask, "masked_scatter")
        if out is None:
            out = xp.array(xp.broadcast_to(input, xp.broadcast_shapes(input.shape, mask.shape)))
        elif out is not input:
            xp.copyto(out, input)
        mask = xp.broadcast_to(mask, out.shape)
        count = int(mask.sum())
        if source.size < count:
            raise ValueError(f"Number of elements of source < number of ones in mask ({source.size} < {count})")
        out[mask] = source.reshape(-1)[:count]
        return out

    def nonzero(input):
        return xp.stack(input.nonzero(), 1) if input.ndim else xp.argwhere(input)

    for writing in (index_put, copy, fill, masked_fill, masked_scatter):
        writing.takes_out = True  # type: ignore[union-attr]

    return {
        "choose": choose,
        "copy": copy,
        "fill": fill,
        "index": index,
        "index_put": index_put,
        "masked_fill": masked_fill,
        "masked_scatter": masked_scatter,
        "masked_select": masked_select,
        "nonzero": nonzero,
    }
