"""Views, joins and new tensors as ONNX."""

from __future__ import annotations

from math import prod

import numpy as np

from corefw import dtypes
from corefw.onnx.graph import END, Graph
from corefw.onnx.sizes import Size
from corefw.onnx.table import written_as
from corefw.shapes import as_shape


@written_as("view_size", "unsafe_view")
def view_size(g: Graph, input, size):
    return g.reshape(input, g.shape)


@written_as("alias")
def alias(g: Graph, input):
    return g.node("Identity", input)


@written_as("permute")
def permute(g: Graph, input, dims):
    return g.node("Transpose", input, perm=[d % len(dims) for d in dims]) if dims else g.node("Identity", input)


@written_as("transpose")
def transpose(g: Graph, input, dim0, dim1):
    order = list(range(len(input.shape)))
    if order:
        order[dim0], order[dim1] = dim1, dim0
    return g.node("Transpose", input, perm=order) if order else g.node("Identity", input)


@written_as("t")
def t(g: Graph, input):
    order = range(len(input.shape))[::-1]
    return g.node("Transpose", input, perm=list(order)) if order else g.node("Identity", input)


@written_as("expand")
def expand(g: Graph, input, size):
    lead = len(g.shape) - len(input.shape)
    # a dimension that stays may be called 1
    wanted = [1 if i >= lead and n == input.shape[i - lead] else n for i, n in enumerate(g.shape)]
    return g.node("Expand", input, g.ints(wanted))


@written_as("squeeze")
def squeeze(g: Graph, input, dim):
    dims = [i for i, n in enumerate(input.shape) if n == 1 and (dim is None or i in dim)]
    return g.node("Identity", g.squeeze(input, dims))


@written_as("unsqueeze")
def unsqueeze(g: Graph, input, dim):
    return g.unsqueeze(input, [dim % len(g.shape)])


# -- parts ------------------------------------------------------------------------------------------------------------
def _after(index):
    """The end of a slice of one element."""
    if isinstance(index, Size):
        return index.plus(1)
    return END if index == -1 else index + 1


@written_as("integer_index", "slice_index", "new_dimension_index")
def basic_index(g: Graph, input, key):
    slices: list[tuple] = []  # axis, start, end, step
    dropped: list[int] = []
    added: list[int] = []
    taken = sum(item is not None and item is not Ellipsis for item in key)
    at = out = 0  # dimensions of the input, and of the result, that are passed
    for item in key:
        if item is None:
            added.append(out)
        elif item is Ellipsis:
            at, out = at + len(input.shape) - taken, out + len(input.shape) - taken
            continue
        elif item.__class__ is slice:
            if item != slice(None):
                slices.append((at, 0 if item.start is None else item.start, item.stop, item.step or 1))
            at += 1
        else:
            slices.append((at, item, _after(item), 1))
            dropped.append(at)
            at += 1
            continue
        out += 1
    result = input
    if slices:
        axes, starts, ends, steps = zip(*slices)
        stops = [END if end is None else end for end in ends]
        result = g.node("Slice", result, g.ints(starts), g.ints(stops), g.ints(axes), g.ints(steps))
    return g.node("Identity", g.unsqueeze(g.squeeze(result, dropped), added))


@written_as("select")
def select(g: Graph, input, dim, index):
    part = g.node("Slice", input, g.ints([index]), g.ints([_after(index)]), g.ints([dim]))
    return g.squeeze(part, [dim])


@written_as("split_with_sizes", "equal_split")
def split(g: Graph, input, sizes, dim):
    results = g.line.results
    if len(results) == 1:
        return (g.node("Identity", input),)
    return tuple(g.node("Split", input, g.ints([r.shape[dim] for r in results]), outputs=len(results), axis=dim))


@written_as("unbind")
def unbind(g: Graph, input, dim):
    return tuple(g.node("Gather", input, g.constant(i, np.int64), axis=dim) for i in range(len(g.line.results)))


# -- joins ------------------------------------------------------------------------------------------------------------
@written_as("cat")
def cat(g: Graph, tensors, dim):
    # what PyTorch allows beside others: a vector without elements
    kept = [value for value in tensors if value.shape != (0,)] or tensors[:1]
    return g.node("Concat", *g.as_result(*kept), axis=dim)


@written_as("stack")
def stack(g: Graph, tensors, dim):
    dim %= len(g.shape)
    return g.node("Concat", *(g.unsqueeze(value, [dim]) for value in g.as_result(*tensors)), axis=dim)


@written_as("repeat")
def repeat(g: Graph, input, repeats):
    spread = g.unsqueeze(input, list(range(len(repeats) - len(input.shape))))
    return g.node("Tile", spread, g.ints(repeats)) if repeats else g.node("Identity", input)


@written_as("flip")
def flip(g: Graph, input, dims):
    if not dims or not g.shape:
        return g.node("Identity", input)
    dims = [d % len(g.shape) for d in dims]
    count = len(dims)
    return g.node("Slice", input, g.ints([-1] * count), g.ints([-END] * count), g.ints(dims), g.ints([-1] * count))


@written_as("roll")
def roll(g: Graph, input, shifts, dims):
    shifts, dims = as_shape(shifts), () if dims is None else as_shape(dims)
    x = input if dims else g.reshape(input, [-1])
    for shift, dim in zip(shifts, dims or (0,)):
        size = prod(g.static([input.shape[dim]] if dims else input.shape, "the size of what is rolled"))
        if size and shift % size:
            at, axis = g.ints([size - shift % size]), g.ints([dim])
            parts = g.node("Slice", x, at, g.ints([END]), axis), g.node("Slice", x, g.ints([0]), at, axis)
            x = g.node("Concat", *parts, axis=dim)
    return g.node("Identity", x if dims else g.reshape(x, g.shape))


@written_as("diagonal")
def diagonal(g: Graph, input, offset, dim1, dim2):
    rest = [d for d in range(len(input.shape)) if d not in (dim1, dim2)]
    rows, columns = g.static((input.shape[dim1], input.shape[dim2]), "the size of a matrix whose diagonal is wanted")
    first, second = max(-offset, 0), max(offset, 0)
    count = max(min(rows - first, columns - second), 0)
    positions = [[first + i, second + i] for i in range(count)]
    if not count:
        g.refuse("a diagonal without elements has no ONNX form")
    found = g.node("GatherND", g.transpose(input, [dim1, dim2, *rest]), g.constant(positions, np.int64))
    return g.transpose(found, [*range(1, len(rest) + 1), 0])


@written_as("tril", "triu")
def tril(g: Graph, input, diagonal):
    upper = int(g.line.op.name == "triu")
    if input.dtype is dtypes.bool_:
        numbers = g.node("Trilu", g.cast(input, dtypes.int64), g.constant(diagonal, np.int64), upper=upper)
        return g.cast(numbers, dtypes.bool_)
    return g.node("Trilu", input, g.constant(diagonal, np.int64), upper=upper)


@written_as("pixel_shuffle")
def pixel_shuffle(g: Graph, input, upscale_factor):
    if len(input.shape) != 4:
        shape = g.static(input.shape, "the shape of images that are not in one batch")
        flat = g.node("DepthToSpace", g.reshape(input, (-1, *shape[-3:])), blocksize=upscale_factor, mode="CRD")
        return g.reshape(flat, g.shape)
    return g.node("DepthToSpace", input, blocksize=upscale_factor, mode="CRD")


@written_as("constant_pad_nd")
def constant_pad_nd(g: Graph, input, pad, value):
    return g.node("Pad", input, *_pads(g, pad), g.number(value), _padded_axes(g, pad))


@written_as("indexed_pad")
def indexed_pad(g: Graph, input, pad, mode):
    if mode == "circular" and g.opset < 19:
        g.refuse("padding of mode 'circular' is written from opset_version=19")
    mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    return g.node("Pad", input, *_pads(g, pad), None, _padded_axes(g, pad), mode=mode)


def _pads(g: Graph, pad) -> list[str]:
    """PyTorch's (before, after) of each dimension from the last on, as ONNX has them for `_padded_axes`."""
    return [g.ints([*pad[0::2], *pad[1::2]])]


def _padded_axes(g: Graph, pad) -> str:
    return g.ints([len(g.shape) - 1 - i for i in range(len(pad) // 2)])


# -- new tensors ------------------------------------------------------------------------------------------------------
@written_as("zeros_at")
def zeros_at(g: Graph, size, dtype):
    return full_at(g, size, 0, dtype)


@written_as("full_at")
def full_at(g: Graph, size, value, dtype):
    return g.node("Expand", g.number(value), g.ints(size)) if size else g.number(value)


@written_as("arange_at")
def arange_at(g: Graph, start, step, count, dtype):
    if isinstance(count, int):
        return g.number(np.asarray(start) + np.arange(count) * np.asarray(step))
    zero, one = g.constant(0, np.int64), g.constant(1, np.int64)
    numbers = g.node("Range", zero, g.squeeze(g.ints([count]), [0]), one)
    numbers = g.node("Cast", numbers, to=g.element_type(g.dtype))
    return g.node("Add", g.node("Mul", numbers, g.number(step)), g.number(start))
