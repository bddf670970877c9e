"""Ops that show a part of their input: slices, parts, windows, diagonals; and copies with a part changed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import index

from corefw.declarations._shared.batching import dims_shifted, full
from corefw.dispatch.declare import Dim, Sizes, composite, ops, primitive
from corefw.dispatch.declare import view as view_op
from corefw.dispatch.rules import first, same
from corefw.errors import DimensionError, PositionError, ShapeError
from corefw.layouts import contiguous_format
from corefw.shapes import canonical_dim, same_shape
from corefw.tensor import Tensor


# -- basic indexing ---------------------------------------------------------------------------------------------------
def _indexed(input, key):
    """The geometry of basic indexing with `key`: integers, slices of positive step, None and at most one Ellipsis."""
    shape, strides, offset = input
    taken = sum(item is not None and item is not Ellipsis for item in key)
    if taken and not shape:
        raise PositionError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a Python number"
        )
    if taken > len(shape):
        raise PositionError(f"too many indices for tensor of dimension {len(shape)}")
    if key.count(Ellipsis) > 1:
        raise PositionError("an index can only have a single ellipsis ('...')")
    sizes, steps, at = [], [], 0
    for item in (*key, Ellipsis) if Ellipsis not in key else key:
        if item is None:
            sizes.append(1)
            steps.append(shape[at] * strides[at] if at < len(shape) else 1)
        elif item is Ellipsis:
            through = len(shape) - at - taken
            sizes += shape[at : at + through]
            steps += strides[at : at + through]
            at += through
        elif item.__class__ is slice:
            start, stop, step = item.indices(shape[at])
            if step < 0:
                raise ShapeError("step must be greater than zero")
            offset += start * strides[at] if start < stop else 0
            sizes.append(max(0, -(-(stop - start) // step)))
            steps.append(step * strides[at])
            at += 1
        else:
            if not -shape[at] <= item < shape[at]:
                raise PositionError(f"index {item} is out of bounds for dimension {at} with size {shape[at]}")
            offset += (item + shape[at] if item < 0 else item) * strides[at]
            at += 1
        taken -= item is not None and item is not Ellipsis
    return tuple(sizes), tuple(steps), offset


@primitive(dtype=same, shape=lambda grad, shape, key: shape, public="")
def basic_index_backward(grad, shape: tuple, key: tuple):
    """Zeros of `shape` with `grad` at the place that basic indexing with `key` shows."""


@basic_index_backward.batching
def basic_index_backward_batching(call, examples, grad, shape, key):
    return call(full(grad, examples), (examples, *shape), (slice(None), *key))


basic_index_backward.gradients(grad=lambda grad, key: ops.basic_index(grad, key))
basic_index_backward.linear("grad")


@view_op(dtype=same, public="", grad_name="Slice")
def slice_index(input, key: tuple):
    """Basic indexing with a key that ends with a slice."""
    return _indexed(input, key)


@view_op(dtype=same, public="", grad_name="Select")
def integer_index(input, key: tuple):
    """Basic indexing with a key that ends with an integer."""
    return _indexed(input, key)


@view_op(dtype=same, public="", grad_name="Unsqueeze")
def new_dimension_index(input, key: tuple):
    """Basic indexing with a key that ends with None."""
    return _indexed(input, key)


for _declared in (slice_index, integer_index, new_dimension_index):

    @_declared.shows_part().gradient("input")
    def _(grad, input_shape, key):
        return basic_index_backward(grad, input_shape, key)


_ENDINGS = {
    int: integer_index.op.function,
    slice: slice_index.op.function,
    type(None): new_dimension_index.op.function,
}
_WHOLE = (slice(None), Ellipsis)


@composite(public="")
def basic_index(input, key: tuple):
    """The part of `input` that `key` names, without a copy: ``input[key]``.

    Args:
        input: any shape.
        key: integers, slices with steps of at least 1, None, and at most one Ellipsis.
    """
    for item in reversed(key):
        if item not in _WHOLE:
            return _ENDINGS[item.__class__](input, key)
    if len(key) - key.count(Ellipsis) > input.array.ndim:
        raise PositionError(f"too many indices for tensor of dimension {input.array.ndim}")
    return ops.alias(input)


@view_op(dtype=same)
def select(input, dim: Dim, index: int):
    """The slice of `input` at position `index` of dimension `dim`, without that dimension.

    >>> import corefw as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    shape, strides, offset = input
    if not shape:
        raise DimensionError("select() cannot be applied to a 0-dim tensor.")
    n = shape[dim]
    if not -n <= index < n:
        raise PositionError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    offset += (index + n if index < 0 else index) * strides[dim]
    return (*shape[:dim], *shape[dim + 1 :]), (*strides[:dim], *strides[dim + 1 :]), offset


@select.shows_part().gradient("input")
def select_vjp(grad, input_shape, dim, index):
    return basic_index_backward(grad, input_shape, (slice(None),) * dim + (index,))


@composite(other_names=True)
def narrow(input, dim: int, start: int, length: int):
    """The `length` slices of `input` from position `start` of dimension `dim`, without a copy.

    >>> import corefw as torch
    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    shape = input.array.shape
    if not shape:
        raise DimensionError("narrow() cannot be applied to a 0-dim tensor.")
    if dim.__class__ is not int or not 0 <= dim < len(shape):
        dim = canonical_dim(dim, len(shape))
    if start.__class__ is not int:
        start = index(start)
    if length < 0:
        raise ShapeError("narrow(): length must be non-negative.")
    if not -shape[dim] <= start <= shape[dim]:
        raise PositionError(
            f"narrow: start is out of range (expected to be in range of [{-shape[dim]}, {shape[dim]}], but got {start})"
        )
    if start < 0:
        start += shape[dim]
    if start + length > shape[dim]:
        raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim]}).")
    return _slice(input, dim, start, start + length)


def _slice(input, dim: int, start: int | None, stop: int | None, step: int = 1):
    return slice_index(input, (slice(None),) * dim + (slice(start, stop, step),))


@composite(other_names=True)
def narrow_copy(input, dim: int, start: int, length: int):
    """A copy of the `length` slices of `input` from position `start` of dimension `dim`.

    >>> import corefw as torch
    >>> torch.narrow_copy(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return narrow(input, dim, start, length).clone(memory_format=contiguous_format)


# -- parts ------------------------------------------------------------------------------------------------------------
def _filled(grads, shapes):
    """The gradients of parts, zeros where none came."""
    like = next(g for g in grads if g is not None)
    return [like.new_zeros(shape) if g is None else g for g, shape in zip(grads, shapes, strict=True)]


@view_op(dtype=same, outputs=("parts",))
def split_with_sizes(input, split_sizes: Sizes, dim: Dim = 0):
    """`input` cut along `dim` into parts of the given sizes, without a copy.

    >>> import corefw as torch
    >>> torch.split_with_sizes(torch.arange(5), [2, 3])
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return _parts(input, split_sizes, dim)


def _parts(input, sizes, dim):
    shape, strides, offset = input
    if not shape:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    if min(sizes, default=0) < 0:
        raise ShapeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[dim]:
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(sizes)}"
        )
    parts = []
    for size in sizes:
        parts.append(((*shape[:dim], size, *shape[dim + 1 :]), strides, offset))
        offset += size * strides[dim]
    return parts


@split_with_sizes.gradient("input")
def split_with_sizes_vjp(grads, input_shape, split_sizes, dim):
    return ops.cat(_filled(grads, [(*input_shape[:dim], n, *input_shape[dim + 1 :]) for n in split_sizes]), dim)


@view_op(dtype=same, outputs=("parts",), public="", grad_name="Split")
def equal_split(input, split_size: int, dim: Dim):
    """`input` cut along `dim` into parts of `split_size`, the last one smaller if need be, without a copy."""
    shape = input[0]
    if not shape:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    return _parts(input, _equal_sizes(shape[dim], split_size), dim)


def _equal_sizes(n: int, size: int) -> list[int]:
    if size < 0:
        raise ShapeError(f"split expects split_size be non-negative, but got split_size={size}")
    if not size:
        if n:
            raise ShapeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        return [0]
    return [size] * (n // size) + ([n % size] if n % size or not n else [])


@equal_split.gradient("input")
def equal_split_vjp(grads, input_shape, split_size, dim):
    sizes = _equal_sizes(input_shape[dim], split_size)
    return ops.cat(_filled(grads, [(*input_shape[:dim], n, *input_shape[dim + 1 :]) for n in sizes]), dim)


@composite(public="corefw")
def split(tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`tensor` cut along `dim`, without a copy: into parts of one size (the last may be smaller) or of given sizes.

    >>> import corefw as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size_or_sections, int):
        return equal_split(tensor, split_size_or_sections, dim)
    if isinstance(split_size_or_sections, Tensor) and not split_size_or_sections.ndim:
        return equal_split(tensor, int(split_size_or_sections), dim)
    if isinstance(split_size_or_sections, float):
        raise TypeError(
            f"split: expected the size of the parts as an int, or a list of sizes, got {split_size_or_sections}"
        )
    return split_with_sizes(tensor, tuple(split_size_or_sections), dim)


@composite(public="Tensor.split")
def split_tensor(tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` as a method, which calls the size of the parts `split_size`.

    >>> import corefw as torch
    >>> torch.arange(5).split(split_size=2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return split(tensor, split_size, dim)


@composite(other_names=True)
def chunk(input, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`input` cut along `dim` into at most `chunks` parts of equal size, the last one smaller if need be.

    >>> import corefw as torch
    >>> torch.chunk(torch.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    shape = input.array.shape
    if not shape:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = shape[canonical_dim(dim, len(shape))]
    size = -(-n // chunks)
    if not size:
        return split_with_sizes(input, (0,) * chunks, dim)
    return equal_split(input, size, dim)


@composite(other_names=True)
def unsafe_split_with_sizes(input, split_sizes: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """As `split_with_sizes`; the parts may be changed in place one by one.

    >>> import corefw as torch
    >>> torch.unsafe_split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return _alone(split_with_sizes(input, split_sizes, dim), input, dim)


@composite(other_names=True)
def unsafe_split(input, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As `split`; the parts may be changed in place one by one.

    >>> import corefw as torch
    >>> torch.unsafe_split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _alone(equal_split(input, split_size, dim), input, dim)


@composite(other_names=True)
def unsafe_chunk(input, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """As `chunk`; the parts may be changed in place one by one.

    >>> import corefw as torch
    >>> torch.unsafe_chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _alone(chunk(input, chunks, dim), input, dim)


def _alone(parts, input, dim: int) -> tuple[Tensor, ...]:
    """Parts along `dim`, each a view of its own; a change of one of several views of one op would be refused."""
    starts = itertools.accumulate((part.shape[dim] for part in parts), initial=0)
    return tuple(input.narrow(dim, start, part.shape[dim]) for part, start in zip(parts, starts))


@composite(other_names=True)
def tensor_split(input, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`input` cut along `dim` into that many nearly equal parts, or before each of the given positions, without a copy.

    >>> import corefw as torch
    >>> torch.tensor_split(torch.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    shape = input.array.shape
    if not shape:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = canonical_dim(dim, len(shape))
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise ShapeError(f"number of sections must be larger than 0, got {indices_or_sections}")
        size, larger = divmod(shape[dim], indices_or_sections)
        ends = [i * size + min(i, larger) for i in range(1, indices_or_sections)]
    else:
        ends = list(indices_or_sections)
    return tuple(_slice(input, dim, start, stop) for start, stop in zip([0, *ends], [*ends, shape[dim]], strict=True))


def _split_along(name: str, input, indices_or_sections, dim: int, few: int):
    if input.array.ndim < few:
        raise ShapeError(
            f"torch.{name} requires a tensor with at least {few} dimension{'s' * (few > 1)}, but got a tensor with "
            f"{input.array.ndim} dimensions!"
        )
    if isinstance(indices_or_sections, int):
        n = input.array.shape[dim]
        if indices_or_sections <= 0 or n % indices_or_sections:
            raise ShapeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not "
                f"divisible by the split_size {indices_or_sections}!"
            )
    return tensor_split(input, indices_or_sections, dim)


@composite(other_names=True)
def hsplit(input, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`input` cut along its columns (along its only dimension if it is a vector), as `tensor_split` cuts.

    >>> import corefw as torch
    >>> torch.hsplit(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _split_along("hsplit", input, indices_or_sections, 0 if input.array.ndim == 1 else 1, 1)


@composite(other_names=True)
def vsplit(input, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`input` cut along its rows, as `tensor_split` cuts.

    >>> import corefw as torch
    >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


@composite(other_names=True)
def dsplit(input, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`input` cut along its third dimension, as `tensor_split` cuts.

    >>> import corefw as torch
    >>> [part.shape for part in torch.dsplit(torch.zeros(1, 2, 4), 2)]
    [torch.Size([1, 2, 2]), torch.Size([1, 2, 2])]
    """
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


@view_op(dtype=same, outputs=("parts",))
def unbind(input, dim: Dim = 0):
    """The slices of `input` along `dim`, without that dimension, without a copy.

    >>> import corefw as torch
    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    shape, strides, offset = input
    if not shape:
        raise DimensionError("Dimension specified as 0 but tensor has no dimensions")
    rest, steps = (*shape[:dim], *shape[dim + 1 :]), (*strides[:dim], *strides[dim + 1 :])
    return [(rest, steps, offset + i * strides[dim]) for i in range(shape[dim])]


@unbind.gradient("input")
def unbind_vjp(grads, input_shape, dim):
    part = (*input_shape[:dim], *input_shape[dim + 1 :])
    return ops.stack(_filled(grads, [part] * len(grads)), dim)


# -- windows and diagonals --------------------------------------------------------------------------------------------
@view_op(dtype=same, public="Tensor")
def unfold(input, dimension: Dim, size: int, step: int):
    """All windows of `size` elements of `input` along `dimension`, every `step` elements, as a new last dimension.

    >>> import corefw as torch
    >>> torch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    shape, strides, offset = input
    n, along = (shape[dimension], strides[dimension]) if shape else (1, 1)
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    if size < 0:
        raise ShapeError(f"size is {size} but must be >= 0")
    if size > n:
        raise ShapeError(f"maximum size for tensor at dimension {dimension} is {n} but size is {size}")
    if not shape:
        return (size,), (1,), offset
    count = (n - size) // step + 1
    apart = along * (step if count > 1 else min(step, 1 << 32))  # any distance serves one window, but it must fit
    return (
        (*shape[:dimension], count, *shape[dimension + 1 :], size),
        (*strides[:dimension], apart, *strides[dimension + 1 :], along),
        offset,
    )


@unfold.gradient("input")
def unfold_vjp(grad, input_shape, dimension, size, step):
    return unfold_backward(grad, input_shape, dimension, size, step)


@composite(public="")
def unfold_backward(grad, shape: tuple, dimension: int, size: int, step: int):
    """The gradient of `unfold`: the windows added where they were taken."""
    if not shape:
        return grad.sum_to_size(()) if size else grad.new_zeros(())
    count = (shape[dimension] - size) // step + 1
    starts = ops.arange(count, device=grad.device).unsqueeze(1) * step
    positions = (starts + ops.arange(size, device=grad.device)).reshape(-1)
    windows = grad.movedim(-1, dimension + 1)
    windows = windows.reshape((*shape[:dimension], count * size, *shape[dimension + 1 :]))
    return grad.new_zeros(shape).index_add(dimension, positions, windows)


@view_op(dtype=same)
def diagonal(input, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """The diagonal of `input` in the plane of `dim1` and `dim2`, `offset` above the main one, as a new last dimension.

    >>> import corefw as torch
    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    shape, strides, start = input
    if dim1 == dim2:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n, m = shape[dim1], shape[dim2]
    count = max(min(n, m - offset) if offset >= 0 else min(n + offset, m), 0)
    if count:
        start += offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    rest = [i for i in range(len(shape)) if i not in (dim1, dim2)]
    return (
        (*(shape[i] for i in rest), count),
        (*(strides[i] for i in rest), strides[dim1] + strides[dim2]),
        start,
    )


@diagonal.shows_part().gradient("input")
def diagonal_vjp(grad, input_shape, offset, dim1, dim2):
    return diagonal_backward(grad, input_shape, offset, dim1, dim2)


@primitive(dtype=same, shape=lambda grad, shape, offset, dim1, dim2: shape, public="")
def diagonal_backward(grad, shape: tuple, offset: int, dim1: int, dim2: int):
    """Zeros of `shape` with `grad` on a diagonal."""


@diagonal_backward.batching
def diagonal_backward_batching(call, examples, grad, shape, offset, dim1, dim2):
    return call(full(grad, examples), (examples, *shape), offset, *dims_shifted((dim1, dim2)))


diagonal_backward.gradients(grad=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2))
diagonal_backward.linear("grad")


# -- changed copies ---------------------------------------------------------------------------------------------------
def _scattered(name: str, input, src, part):
    """A copy of `input` in which the part that `part` shows is `src`."""
    result = input.clone(memory_format=contiguous_format)
    _write_part(name, part(result), src)
    return result


def _write_part(name: str, target, src) -> None:
    if target.array.shape != src.array.shape:
        raise ShapeError(
            f"{name}: expected src to have a size equal to the slice of self. src size = {list(src.array.shape)}, "
            f"slice size = {list(target.array.shape)}"
        )
    target.copy_(src)


@composite(dtype=first.moving(), shape=same_shape)
def select_scatter(input, src, dim: Dim, index: int):
    """A copy of `input` whose slice at position `index` of dimension `dim` is `src`.

    >>> import corefw as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _scattered("select_scatter", input, src, lambda whole: select(whole, dim, index))


select_scatter.gradients(
    input=lambda grad, src_shape, dim, index: select_scatter(grad, grad.new_zeros(src_shape), dim, index),
    src=lambda grad, dim, index: grad.select(dim, index),
)


@composite(dtype=first.moving(), shape=same_shape)
def slice_scatter(input, src, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1):
    """A copy of `input` whose slices ``start:end:step`` along `dim` are `src`.

    >>> import corefw as torch
    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    if step <= 0:
        raise ShapeError(f"slice_scatter: slice step must be positive, got {step}")
    return _scattered("slice_scatter", input, src, lambda whole: _slice(whole, dim, start, end, step))


@slice_scatter.gradient("input")
def slice_scatter_vjp_input(grad, src_shape, dim, start, end, step):
    return slice_scatter(grad, grad.new_zeros(src_shape), dim, start, end, step)


@slice_scatter.gradient("src")
def slice_scatter_vjp_src(grad, dim, start, end, step):
    return _slice(grad, dim, start, end, step)


@composite(dtype=first.moving(), shape=same_shape)
def diagonal_scatter(input, src, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """A copy of `input` whose diagonal, as `diagonal` shows it, is `src`.

    >>> import corefw as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _scattered("diagonal_scatter", input, src, lambda whole: diagonal(whole, offset, dim1, dim2))


@diagonal_scatter.gradient("input")
def diagonal_scatter_vjp_input(grad, src_shape, offset, dim1, dim2):
    return diagonal_scatter(grad, grad.new_zeros(src_shape), offset, dim1, dim2)


@diagonal_scatter.gradient("src")
def diagonal_scatter_vjp_src(grad, offset, dim1, dim2):
    return grad.diagonal(offset, dim1, dim2)


@composite()
def as_strided_scatter(input, src, size: Sizes, stride: Sizes, storage_offset: int | None = None):
    """A copy of the memory of `input`, seen as `input` is, in which the part that `as_strided` shows is `src`.

    >>> import corefw as torch
    >>> torch.zeros(2, 2).as_strided_scatter(torch.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if any(n > 1 and step == 0 for n, step in zip(input.array.shape, input.array.strides)):
        input = input.contiguous()  # a change of one element is not one of others
    runtime, offset = input.dispatch_key.runtime, input.storage_offset()
    last = offset + sum((n - 1) * step for n, step in zip(input.array.shape, input.stride()))
    length = max(runtime.memory_bytes(input.array) // input.dispatch_key.dtype.itemsize, last + 1)
    memory = input.as_strided((length,), (1,), 0).clone()
    target = memory.as_strided(size, stride, offset if storage_offset is None else storage_offset)
    _write_part("as_strided_scatter", target, src)
    return memory.as_strided(input.shape, input.stride(), offset)
