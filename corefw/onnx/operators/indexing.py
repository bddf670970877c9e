"""Reading and writing by positions as ONNX."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.onnx.graph import Graph
from corefw.onnx.table import written_as


@written_as("index_select")
def index_select(g: Graph, input, dim, index):
    if not input.shape:
        return g.node("Identity", input)
    return g.node("Gather", input, index if index.shape else g.reshape(index, [1]), axis=dim)


@written_as("pick_rows")
def pick_rows(g: Graph, weight, indices, padding_idx, scale_grad_by_freq):
    return g.node("Gather", weight, indices, axis=0)


@written_as("gather")
def gather(g: Graph, input, dim, index):
    if not g.shape:
        return g.node("Identity", input)
    return g.node("GatherElements", input, index, axis=dim)


@written_as("take")
def take(g: Graph, input, index):
    return g.node("Gather", g.reshape(input, [-1]), index, axis=0)


def _positions(g: Graph, indices) -> tuple[Any, int]:
    """Index tensors that broadcast, as vectors of positions (*, how many), and the number of their dimensions."""
    if len(indices) == 1 and indices[0].dtype is dtypes.bool_:
        return g.node("Transpose", g.node("NonZero", indices[0]), perm=[1, 0]), 1
    for item in indices:
        if item.dtype in (dtypes.bool_, dtypes.uint8):
            g.refuse("masks beside other index tensors have no ONNX form here; use masked_select or where")
    rank = max(len(item.shape) for item in indices)
    wide = [g.cast(item, dtypes.int64) for item in indices]
    if len({item.shape for item in indices}) > 1:
        zeros = [g.node("Mul", item, g.constant(0, "int64")) for item in wide]
        nothing = zeros[0]
        for zero in zeros[1:]:
            nothing = g.node("Add", nothing, zero)
        wide = [g.node("Add", item, nothing) for item in wide]
    parts = [g.unsqueeze(item, [rank]) for item in wide]
    return (parts[0] if len(parts) == 1 else g.node("Concat", *parts, axis=rank)), rank


@written_as("index")
def index(g: Graph, input, indices):
    where = [i for i, item in enumerate(indices) if item is not None]
    given = [indices[i] for i in where]
    if len(given) == 1 and given[0].dtype in (dtypes.int64, dtypes.int32):
        return g.node("Gather", input, given[0], axis=where[0])
    masked = given[0].dtype is dtypes.bool_
    taken = list(range(where[0], where[0] + len(given[0].shape))) if masked else where
    rest = [d for d in range(len(input.shape)) if d not in taken]
    positions, rank = _positions(g, given)
    found = g.node("GatherND", g.transpose(input, taken + rest), positions)
    lead = where[0] if taken == list(range(taken[0], taken[-1] + 1)) else 0  # neighbours stay in their place
    count = rank + len(rest)
    return g.transpose(found, [*range(rank, rank + lead), *range(rank), *range(rank + lead, count)])


@written_as("index_put")
def index_put(g: Graph, input, indices, values, accumulate):
    if any(item is None for item in indices):
        g.refuse("index tensors behind whole dimensions have no ONNX form here; transpose first")
    if len(indices) == 1 and indices[0].dtype is dtypes.bool_ and not accumulate and not values.shape:
        mask = g.unsqueeze(indices[0], list(range(len(indices[0].shape), len(input.shape))))
        return g.node("Where", mask, *g.as_result(values, input))
    positions, rank = _positions(g, indices)
    if indices[0].dtype is dtypes.bool_:
        rest = len(input.shape) - len(indices[0].shape)
    else:
        rest = len(input.shape) - len(indices)
    lead = g.node("Shape", positions, start=0, end=rank)
    trail = [g.node("Shape", input, start=len(input.shape) - rest)] if rest else []
    shape = g.node("Concat", lead, *trail, axis=0) if trail else lead
    updates = g.node("Expand", *g.as_result(values), shape)
    return g.node("ScatterND", input, positions, updates, reduction="add" if accumulate else None)


@written_as("put")
def put(g: Graph, input, index, source, accumulate):
    parts = [g.reshape(value, [-1]) for value in (input, index, *g.as_result(source))]
    flat = g.node("ScatterElements", *parts, axis=0, reduction="add" if accumulate else None)
    return g.node("Reshape", flat, g.node("Shape", input))


def _scatter(g: Graph, input, dim, index, source, reduction: str | None = None):
    if not input.shape:
        return put(g, input, index, source, reduction == "add")
    # only as much of the source is read as there are positions
    if source.__class__ is not str and source.shape != index.shape:
        count = len(index.shape)
        zeros, axes = g.ints([0] * count), g.ints(range(count))
        source = g.node("Slice", source, zeros, g.node("Shape", index), axes)
    return g.node("ScatterElements", input, index, source, axis=dim, reduction=reduction)


@written_as("scatter_src")
def scatter_src(g: Graph, input, dim, index, src):
    return _scatter(g, input, dim, index, src)


@written_as("scatter_add")
def scatter_add(g: Graph, input, dim, index, src):
    return _scatter(g, input, dim, index, src, "add")


@written_as("scatter_value")
def scatter_value(g: Graph, input, dim, index, value):
    if not input.shape:
        return g.number(value)
    return _scatter(g, input, dim, index, g.node("Expand", g.number(value), g.node("Shape", index)))


@written_as("masked_select")
def masked_select(g: Graph, input, mask):
    shape = g.node("Shape", g.node("Or", mask, g.node("Expand", g.constant(False), g.node("Shape", input))))
    flags, elements = (g.reshape(g.node("Expand", value, shape), [-1]) for value in (mask, input))
    return g.node("Compress", elements, flags, axis=0)


@written_as("nonzero")
def nonzero(g: Graph, input):
    if not input.shape:
        g.refuse("a tensor without dimensions has no ONNX form")
    return g.node("Transpose", g.node("NonZero", input), perm=[1, 0])


@written_as("copy")
def copy(g: Graph, input, src):
    (value,) = g.as_result(src)
    return g.node("Identity", value) if src.shape == input.shape else g.node("Expand", value, g.node("Shape", input))


@written_as("fill")
def fill(g: Graph, input, value):
    return g.node("Expand", *g.as_result(value), g.node("Shape", input))
