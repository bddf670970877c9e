"""Sparse tensors: a pattern and values, and the two nodes by which gradients pass between values and tensors.

All else is computed by ops on the values, which are ordinary tensors: their gradients are ordinary gradients.
"""

from __future__ import annotations

from math import prod
from typing import NoReturn

from corefw.dispatch.registry import ops
from corefw.dispatch.sparse.keys import layout_key
from corefw.dispatch.sparse.patterns import Pattern, coalesced, coo, flat
from corefw.errors import LayoutError, ShapeError
from corefw.graph.grad_mode import mode
from corefw.graph.views import node_of
from corefw.tensor import Node, Tensor, new, next_sequence
from corefw.versions import fresh_version


class Entries:
    """What stands in the slot `array` of a sparse tensor: its pattern and its values, a dense tensor (values, ...), of
    blocks (blocks, rows, columns, ...).

    It has the shape of an array, for the engine; whatever else asks it for an array's attributes is refused.
    """

    __slots__ = ("pattern", "shape", "values")
    __array_ufunc__ = None  # NumPy refuses it
    base = None

    def __init__(self, pattern: Pattern, values: Tensor):
        self.pattern, self.values = pattern, values
        self.shape = (*pattern.shape, *values.array.shape[1 + len(pattern.block) :])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return prod(self.shape)

    def __getattr__(self, name: str) -> NoReturn:
        raise LayoutError(f"a tensor of layout {self.pattern.layout} has no {name}: convert it by .to_dense() first")

    def __array__(self, *arguments, **options) -> NoReturn:
        raise LayoutError(f"a tensor of layout {self.pattern.layout} is no array: convert it by .to_dense() first")


class SparseTensor(Tensor):
    """A tensor of which the values that are not zero are held, and where they stand."""

    __slots__ = ()
    array: Entries
    made = False  # whether the program has made one
    printed_as = "tensor"

    __deepcopy__ = __copy__ = __reduce_ex__ = None  # type: ignore[assignment]  # corefw.sparse attaches them


SparseTensor._plain = SparseTensor


def sparse(pattern: Pattern, values: Tensor, name: str = "") -> SparseTensor:
    """The sparse tensor of these values, (values, ...), as a computation of theirs; `name` is that of its node."""
    SparseTensor.made = True
    result = new(SparseTensor)
    node = node_of(values) if mode.recording else None
    result.array = Entries(pattern, values if values.node is None and values.view_info is None else values.detach())
    result.dispatch_key = layout_key(values.dispatch_key, pattern.layout)
    result.view_info = result.node = None
    result.version = fresh_version()
    if node is not None:
        result.node = _recorded(FromValues, node, pattern, result.array.shape, result.dispatch_key)
        result.node.title = name or result.node.title
    return result


def values_of(tensor: Tensor) -> Tensor:
    """The values of a sparse tensor, as a computation of it."""
    entries = tensor.array
    node = node_of(tensor) if mode.recording else None
    values = entries.values
    if node is None:
        return values
    result = values.detach()
    result.view_info = None
    result.node = _recorded(OfValues, node, entries.pattern, values.array.shape, values.dispatch_key)
    return result


def elements_of(tensor: Tensor) -> Tensor:
    """The values of a sparse tensor one by one, those of blocks too: (values, dense dimensions ...)."""
    values = values_of(tensor)
    return values.flatten(0, 2) if tensor.array.pattern.block else values


def is_sparse(value) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(value, Tensor) and value.array.__class__ is Entries


class _PatternNode(Node):
    """A node between values and a sparse tensor of a pattern."""

    __slots__ = ("pattern", "title")
    pattern: Pattern
    title: str

    def name(self) -> str:
        return self.title


class FromValues(_PatternNode):
    """Values become a sparse tensor: its gradient at its positions is theirs."""

    __slots__ = ()

    def backward(self, gradient):
        return (at_pattern(gradient, self.pattern),)


class OfValues(_PatternNode):
    """A sparse tensor gives its values: their gradient is a sparse tensor of its pattern."""

    __slots__ = ()

    def backward(self, gradient):
        pattern = self.pattern
        if pattern.coalesced:
            return (sparse(pattern, gradient),)
        unique, inverse = coalesced(pattern)
        if unique.count == pattern.count:
            return (sparse(pattern, gradient),)
        once = ops.zeros((unique.count, *gradient.shape[1:]), dtype=gradient.dtype, device=gradient.device)
        return (sparse(unique, once.index_copy(0, inverse, gradient)),)  # those of one place are equal


class _OfRows(_PatternNode):
    """A dense tensor gives some of its rows: its gradient is a sparse tensor, in which rows given often are added."""

    __slots__ = ()

    def backward(self, gradient):
        return (sparse(self.pattern, gradient),)


def rows_of(table: Tensor, positions: Tensor) -> Tensor:
    """The rows of a dense tensor at `positions`, a vector, as a computation of it whose gradient is sparse."""
    rows = table.detach().index_select(0, positions)
    node = node_of(table) if mode.recording else None
    if node is not None:
        pattern = coo(positions.detach().unsqueeze(0), (table.shape[0],))
        rows.node = _recorded(_OfRows, node, pattern, rows.array.shape, rows.dispatch_key)
        rows.node.title = "EmbeddingBackward0"
        SparseTensor.made = True
    return rows


def _recorded(kind: type[_PatternNode], node: Node, pattern: Pattern, shape, dispatch_key) -> _PatternNode:
    made = new(kind)
    made.inputs, made.saved, made.hooks = (node,), (), None
    made.shape, made.dispatch_key, made.pattern = shape, dispatch_key, pattern
    made.sequence = next_sequence()
    made.title = "SparseCooTensorWithDimsAndTensorsBackward0" if kind is FromValues else "ValuesBackward0"
    if mode.recording is not True:
        mode.recording(made)  # type: ignore[operator]
    return made


def at_pattern(tensor: Tensor, pattern: Pattern) -> Tensor:
    """The elements of a tensor, sparse or dense, at the positions of a pattern: (values, ...)."""
    if is_sparse(tensor):
        found = tensor.array.pattern
        if found is pattern:
            return values_of(tensor)
        return _in_blocks(_looked_up(found, elements_of(tensor), pattern), pattern)
    sparse_dims = len(pattern.shape)
    if tuple(tensor.array.shape[:sparse_dims]) != tuple(pattern.shape):
        raise ShapeError(
            f"a tensor of shape {list(tensor.shape)} has no elements at positions of {list(pattern.shape)}"
        )
    rest = tensor.array.shape[sparse_dims:]
    rows = tensor.reshape((-1, *rest) if 0 not in tensor.array.shape else (0, *rest))
    return _in_blocks(rows.index_select(0, flat(pattern)), pattern)


def _in_blocks(elements: Tensor, pattern: Pattern) -> Tensor:
    """Elements as the values of a pattern."""
    return elements.reshape(-1, *pattern.block, *elements.array.shape[1:]) if pattern.block else elements


def _looked_up(pattern: Pattern, values: Tensor, wanted: Pattern) -> Tensor:
    """The values of one pattern at the positions of another, 0 where it has none."""
    unique, inverse = coalesced(pattern)
    count = unique.count
    total = added(values, inverse, count)
    if not count:
        return ops.zeros((flat(wanted).shape[0], *values.shape[1:]), dtype=values.dtype, device=values.device)
    positions = flat(unique)
    place = ops.searchsorted(positions, flat(wanted)).clamp_max(count - 1)
    found = total.index_select(0, place)
    is_there = positions.index_select(0, place) == flat(wanted)
    return found.masked_fill(is_there.logical_not().reshape(-1, *(1,) * (values.ndim - 1)), 0)


def added(values: Tensor, places: Tensor, count: int) -> Tensor:
    """The sums of the values with the same one of `count` places."""
    start = ops.zeros((count, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return start.index_add(0, places, values)
