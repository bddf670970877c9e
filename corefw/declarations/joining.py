"""Ops that join tensors or move their elements: concatenation, repetition, flips, triangles and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from corefw import dtypes
from corefw.declarations._shared.batching import example_dims, from_the_end, joined
from corefw.dispatch.declare import Sizes, Tensors, composite, ops, primitive
from corefw.dispatch.promotion import unpacked
from corefw.dispatch.rules import promote, same
from corefw.errors import DimensionError, ShapeError
from corefw.layouts import contiguous_format
from corefw.shapes import as_shape, canonical_dim, roll_arguments
from corefw.tensor import Tensor


# -- joining ----------------------------------------------------------------------------------------------------------
def cat_shape(tensors, dim):
    """The shape of the concatenation; vectors without elements may join tensors of any shape."""
    shapes = [s for s in tensors if s != (0,)] or list(tensors)
    first = shapes[0]
    for i, shape in enumerate(tensors):
        if not shape:
            raise ShapeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    dim = canonical_dim(dim, len(first))
    for i, shape in enumerate(shapes):
        if len(shape) != len(first):
            raise ShapeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for d, (n, m) in enumerate(zip(first, shape, strict=True)):
            if d != dim and n != m:
                raise ShapeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but got size {m} for "
                    f"tensor number {i} in the list."
                )
    return (*first[:dim], sum(s[dim] for s in shapes), *first[dim + 1 :])


@primitive(dtype=promote.rounding(), shape=cat_shape, out=True, aliases=("concat", "concatenate"))
def cat(tensors: Tensors, dim: int = 0):
    """The tensors joined along an existing dimension.

    Args:
        tensors: of equal shapes except in `dim`; vectors without elements are passed over.
        dim: the dimension in which they are joined.

    >>> import corefw as torch
    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """


cat.batching(joined)


@cat.gradient("tensors")
def cat_vjp(grad, tensors_shape, dim):
    dim = canonical_dim(dim, grad.array.ndim)
    parts, start = [], 0
    for shape in tensors_shape:
        if shape == (0,) and grad.array.ndim > 1:
            parts.append(grad.new_zeros(shape))
            continue
        parts.append(grad.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return parts


cat.linear("tensors")


def stack_shape(tensors, dim):
    """The shape of the tensors joined along a new dimension."""
    first = tensors[0]
    for i, shape in enumerate(tensors):
        if shape != first:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(shape)} at "
                f"entry {i}"
            )
    dim = canonical_dim(dim, len(first) + 1)
    return (*first[:dim], len(tensors), *first[dim:])


@primitive(dtype=promote.rounding(), shape=stack_shape, out=True)
def stack(tensors: Tensors, dim: int = 0):
    """The tensors, all of one shape, joined along a new dimension.

    >>> import corefw as torch
    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """


stack.batching(joined)
stack.gradients(tensors=lambda grad, dim: grad.unbind(dim))
stack.linear("tensors")


def _checked(name: str, tensors):
    if isinstance(tensors, Tensor) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{name}(): argument 'tensors' must be tuple of Tensors")
    if not tensors:
        raise ShapeError(f"{name} expects a non-empty TensorList")
    return tensors


@composite(out=True)
def hstack(tensors: Tensors):
    """The tensors joined along their columns; vectors are joined end to end.

    >>> import corefw as torch
    >>> torch.hstack((torch.tensor([1, 2]), torch.tensor([3])))
    tensor([1, 2, 3])
    """
    raised = [ops.atleast_1d(t) for t in _checked("hstack", tensors)]
    return cat(raised, 0 if raised[0].array.ndim == 1 else 1)


@composite(out=True, aliases=("row_stack",))
def vstack(tensors: Tensors):
    """The tensors joined along their rows; a vector is a row.

    >>> import corefw as torch
    >>> torch.vstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([ops.atleast_2d(t) for t in _checked("vstack", tensors)], 0)


@composite(out=True)
def dstack(tensors: Tensors):
    """The tensors joined along their third dimension; a matrix (n, m) counts as (n, m, 1), a vector (n) as (1, n, 1).

    >>> import corefw as torch
    >>> torch.dstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([ops.atleast_3d(t) for t in _checked("dstack", tensors)], 2)


@composite(out=True)
def column_stack(tensors: Tensors):
    """The tensors joined along their columns; a vector is a column.

    >>> import corefw as torch
    >>> torch.column_stack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    return cat([t if t.array.ndim > 1 else t.reshape(-1, 1) for t in _checked("column_stack", tensors)], 1)


@composite()
def block_diag(*tensors):
    """A matrix with the given matrices on its diagonal and zeros elsewhere; a vector is a row, a scalar one element.

    >>> import corefw as torch
    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, t in enumerate(tensors):
        if t.array.ndim > 2:
            raise ShapeError(
                f"block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.array.ndim} dimensions"
            )
    blocks = [ops.atleast_2d(t) for t in tensors]
    width = sum(b.array.shape[1] for b in blocks)
    rows, start = [], 0
    for block in blocks:
        n, m = block.array.shape
        rows.append(cat([block.new_zeros((n, start)), block, block.new_zeros((n, width - start - m))], 1))
        start += m
    return cat(rows, 0)


# -- repeating --------------------------------------------------------------------------------------------------------
def repeat_shape(input, repeats):
    """The shape of `input` repeated."""
    if len(repeats) < len(input):
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{list(repeats)} for a tensor of shape {list(input)}"
        )
    if min(repeats, default=0) < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension: repeats {list(repeats)}")
    sizes = (1,) * (len(repeats) - len(input)) + tuple(input)
    return tuple(n * r for n, r in zip(sizes, repeats, strict=True))


@primitive(dtype=same, shape=repeat_shape, public="Tensor")
def repeat(input, repeats: Sizes):
    """Copies of `input` laid side by side, `repeats` times along each dimension.

    Args:
        input: any shape.
        repeats: how often along each dimension; more numbers than dimensions add dimensions in front.

    >>> import corefw as torch
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """


@repeat.batching
def repeat_batching(call, examples, input, repeats):
    missing = len(repeats) - example_dims(input)
    shape = input.shape
    return call(input.reshape(shape[0], *(1,) * missing, *shape[1:]), (1, *repeats))


@repeat.gradient("input")
def repeat_vjp(grad, input_shape, repeats):
    sizes = (1,) * (len(repeats) - len(input_shape)) + tuple(input_shape)
    if 0 in repeats:
        return grad.new_zeros(input_shape)
    if not repeats:
        return grad
    pairs = [n for pair in zip(repeats, sizes, strict=True) for n in pair]
    return grad.reshape(pairs).sum(tuple(range(0, len(pairs), 2))).reshape(input_shape)


repeat.linear("input")


@composite()
def tile(input, dims: Sizes):
    """Copies of `input` laid side by side, as `repeat`, with ones put before too few `dims`.

    >>> import corefw as torch
    >>> torch.tile(torch.tensor([[1, 2]]), (2,))
    tensor([[1, 2, 1, 2]])
    """
    dims = as_shape(dims)
    return repeat(input, (1,) * (input.array.ndim - len(dims)) + dims)


@primitive(dtype=same.without("bool", "floating", "complex"), shape=None, public="")
def repeated_positions(repeats):
    """The position i of each element of the vector `repeats`, repeats[i] times."""


@composite(other_names=True)
def repeat_interleave(
    input, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
):
    """Each slice of `input` along `dim` repeated in place.

    Args:
        input: any shape; alone, the positions to repeat are counted by it (see `repeats`).
        repeats: how often: a number, or one for each slice.
        dim: the dimension; None for the flattened tensor.
        output_size: the size of the result in `dim`, if it is known.

    >>> import corefw as torch
    >>> torch.repeat_interleave(torch.tensor([5, 6]), torch.tensor([1, 2]))
    tensor([5, 6, 6])
    """
    if repeats is None:
        if input.array.ndim != 1:
            raise ShapeError("repeat_interleave only accept 1D vector as repeat")
        return _counted(repeated_positions(input), output_size)
    if dim is None:
        input, dim = input.reshape(-1), 0
    if not input.array.ndim:
        input = input.reshape(1)
    dim = canonical_dim(dim, input.array.ndim)
    shape = input.array.shape
    if isinstance(repeats, Tensor) and prod(repeats.array.shape) == 1:
        repeats = int(repeats.item())
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise ShapeError(f"Repeats must be non-negative, got {repeats}")
        spread = input.unsqueeze(dim + 1).expand((*shape[: dim + 1], repeats, *shape[dim + 1 :]))
        # not `reshape`, which repeats nothing where strides can: the result is memory of its own
        return ops.unsafe_view(spread, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))
    if repeats.array.shape != (shape[dim],):
        raise ShapeError(
            f"repeats must have the same size as input along dim, but got repeats of size {list(repeats.array.shape)} "
            f"and input.size({dim}) = {shape[dim]}"
        )
    return input.index_select(dim, _counted(repeated_positions(repeats), output_size))


def _counted(positions, output_size: int | None):
    """The positions, of which there must be as many as were promised."""
    total = positions.array.shape[0]
    if output_size not in (None, total):
        raise ShapeError(f"repeat_interleave: output_size is {output_size}, but repeats add up to {total}")
    return positions


# -- reordering -------------------------------------------------------------------------------------------------------
def flip_shape(input, dims):
    """The shape of the flipped input, which must have the dimensions flipped, each named once."""
    found = [canonical_dim(d, len(input)) for d in dims]
    for d in found:
        if found.count(d) > 1:
            raise ShapeError(f"dim {d} appears multiple times in the list of dims")
    return input


@primitive(dtype=same, shape=flip_shape)
def flip(input, dims: Sizes):
    """A copy of `input` with the order of elements reversed along `dims`.

    >>> import corefw as torch
    >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), (1,))
    tensor([[2, 1],
            [4, 3]])
    """


@flip.batching
def flip_batching(call, examples, input, dims):
    return call(input, tuple(d % max(example_dims(input), 1) + 1 for d in dims)) if dims else input.clone()


flip.gradients(input=lambda grad, dims: grad.flip(dims))
flip.linear("input")


@composite()
def fliplr(input):
    """A copy of `input` with its columns in reversed order.

    >>> import corefw as torch
    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input.array.ndim < 2:
        raise ShapeError("Input must be >= 2-d.")
    return flip(input, (1,))


@composite()
def flipud(input):
    """A copy of `input` with its rows in reversed order.

    >>> import corefw as torch
    >>> torch.flipud(torch.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    if input.array.ndim < 1:
        raise ShapeError("Input must be >= 1-d.")
    return flip(input, (0,))


def roll_shape(input, shifts, dims):
    """The shape of the rolled input; there is a shift for every dimension rolled."""
    for d in roll_arguments(shifts, dims)[1]:
        canonical_dim(d, len(input))
    return input


@primitive(dtype=same, shape=roll_shape)
def roll(input, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None):
    """`input` with its elements shifted along `dims`; those that leave at the end come back at the beginning.

    Args:
        input: any shape.
        shifts: by how many places, one number for each of `dims`.
        dims: the dimensions; None shifts the flattened tensor.

    >>> import corefw as torch
    >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """


@roll.batching
def roll_batching(call, examples, input, shifts, dims):
    n = example_dims(input)
    if dims is None or not n:
        return call(input.reshape(input.shape[0], -1), shifts, 1).reshape(input.shape)
    return call(input, shifts, tuple(d % n + 1 for d in as_shape(dims)))


roll.gradients(input=lambda grad, shifts, dims: grad.roll(tuple(-s for s in as_shape(shifts)), dims))
roll.linear("input")


def rot90_shape(input, k, dims):
    """The shape of the rotated input; `dims` are two different dimensions."""
    dims = as_shape(dims)
    if len(dims) != 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if len(input) < 2:
        raise ShapeError(f"expected total dims >= 2, but got total dims = {len(input)}")
    first, second = (canonical_dim(d, len(input)) for d in dims)
    if first == second:
        raise ShapeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    sizes = list(input)
    if k % 2:
        sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


@composite(dtype=same.moving(), shape=rot90_shape)
def rot90(input, k: int = 1, dims: Sequence[int] = (0, 1)):
    """`input` turned by `k` times 90 degrees in the plane of `dims`, from the first towards the second.

    >>> import corefw as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    rot90_shape(input.array.shape, k, dims)
    first, second = dims
    turns = k % 4
    if turns == 0:
        return input.clone()
    if turns == 2:
        return flip(input, (first, second))
    flipped = flip(input, (second,) if turns == 1 else (first,))
    return flipped.transpose(first, second)


rot90.gradients(input=lambda grad, k, dims: grad.rot90(-k, dims))


# -- triangles and diagonals ------------------------------------------------------------------------------------------
def at_least_a_matrix(input, diagonal):
    """The result has the input's shape, which has two dimensions or more."""
    if len(input) < 2:
        raise ShapeError(f"tril and triu: input tensor must have at least 2 dimensions, got shape {list(input)}")
    return input


@primitive(dtype=same, shape=at_least_a_matrix, inplace=True, out=True)
def tril(input, diagonal: int = 0):
    """The lower triangles of matrices, zeros above the given diagonal (0 the main one, positive ones above it).

    >>> import corefw as torch
    >>> torch.tril(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """


tril.batching(from_the_end)
tril.gradients(input=lambda grad, diagonal: grad.tril(diagonal))
tril.linear("input")


@primitive(dtype=same, shape=at_least_a_matrix, inplace=True, out=True)
def triu(input, diagonal: int = 0):
    """The upper triangles of matrices, zeros below the given diagonal (0 the main one, positive ones above it).

    >>> import corefw as torch
    >>> torch.triu(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """


triu.batching(from_the_end)
triu.gradients(input=lambda grad, diagonal: grad.triu(diagonal))
triu.linear("input")


def diag_embed_shape(input, offset, dim1, dim2):
    """The shape of matrices with the vectors of `input` on a diagonal."""
    ndim = len(input) + 1
    first, second = canonical_dim(dim1, ndim), canonical_dim(dim2, ndim)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not input:
        raise DimensionError("diag_embed: expected a tensor with at least 1 dimension, got a 0-d one")
    rest, n = iter(input[:-1]), input[-1] + abs(offset)
    return tuple(n if d in (first, second) else next(rest) for d in range(ndim))


@composite(dtype=same.moving(), shape=diag_embed_shape)
def diag_embed(input, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Matrices with the vectors in the last dimension of `input` on a diagonal, zeros elsewhere.

    Args:
        input: (..., n).
        offset: which diagonal: 0 the main one, positive ones above it.
        dim1, dim2: the dimensions of the result that the matrices fill.

    >>> import corefw as torch
    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    shape = diag_embed_shape(input.array.shape, offset, dim1, dim2)
    return ops.diagonal_backward(input, shape, offset, canonical_dim(dim1, len(shape)), canonical_dim(dim2, len(shape)))


diag_embed.gradients(input=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2))


@composite(out=True)
def diag(input, diagonal: int = 0):
    """The diagonal of a matrix, as a copy, or the matrix with a vector on its diagonal.

    >>> import corefw as torch
    >>> torch.diag(torch.tensor([[1, 2], [3, 4]])), torch.diag(torch.tensor([1, 2]))
    (tensor([1, 4]), tensor([[1, 0],
            [0, 2]]))
    """
    if input.array.ndim not in (1, 2):
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D")
    return diag_embed(input, diagonal) if input.array.ndim == 1 else input.diagonal(diagonal).clone()


@composite()
def diagflat(input, offset: int = 0):
    """A matrix with the elements of `input`, flattened, on a diagonal.

    >>> import corefw as torch
    >>> torch.diagflat(torch.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(input.reshape(-1), offset)


# -- grids and choices ------------------------------------------------------------------------------------------------
@composite()
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids of vectors: result i has the value of vector i at every point of their product.

    Args:
        tensors: vectors or scalars, of one dtype.
        indexing: "ij" (the default): dimension i belongs to vector i; "xy": the first two dimensions are exchanged.

    >>> import corefw as torch
    >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    >>> x, y
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    tensors = unpacked(tensors)
    if not tensors:
        raise ShapeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise ShapeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.array.ndim > 1:
            raise ShapeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {list(t.array.shape)}"
            )
        if (t.dtype, t.device) != (tensors[0].dtype, tensors[0].device):
            raise ShapeError("torch.meshgrid expects all tensors to have the same dtype and device")
    swap = indexing == "xy" and len(tensors) > 1
    ordered = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    sizes = tuple(prod(t.array.shape) for t in ordered)
    grids = [t.reshape((-1,) + (1,) * (len(sizes) - 1 - i)).expand(sizes) for i, t in enumerate(ordered)]
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


@composite()
def cartesian_prod(*tensors):
    """All tuples with one element of each vector, in order, as rows; a single vector is returned as it is.

    >>> import corefw as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for t in tensors:
        if t.array.ndim != 1:
            raise ShapeError(f"Expect a 1D vector, but got shape {list(t.array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


@composite()
def combinations(input, r: int = 2, with_replacement: bool = False):
    """All ways to choose `r` elements of a vector, in order, as rows.

    >>> import corefw as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input.array.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(input.array.shape)}")
    if r < 0:
        raise ShapeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    positions = meshgrid(*[ops.arange(input.array.shape[0], device=input.dispatch_key.device)] * r)
    chosen = ops.ones_like(positions[0], dtype=dtypes.bool_)
    for first, second in pairwise(positions):
        chosen = chosen & (first <= second if with_replacement else first < second)
    return stack([grid.masked_select(chosen) for grid in meshgrid(*[input] * r)], 1)


# -- depth and space --------------------------------------------------------------------------------------------------
def pixel_shuffle_shape(input, upscale_factor):
    """(..., c r^2, h, w) gives (..., c, h r, w r)."""
    r = upscale_factor
    if len(input) < 3:
        raise ShapeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got shape {list(input)}")
    if r <= 0:
        raise ShapeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, c, h, w = input
    if c % (r * r):
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    return (*batch, c // (r * r), h * r, w * r)


@composite(dtype=same.moving(), shape=pixel_shuffle_shape, public="corefw nn.functional")
def pixel_shuffle(input, upscale_factor: int):
    """Channels rearranged into space: (..., c r^2, h, w) becomes (..., c, h r, w r) for the factor r.

    Source: Shi et al., Real-time single image and video super-resolution, CVPR 2016.

    >>> import corefw as torch
    >>> torch.pixel_shuffle(torch.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    r = upscale_factor
    *batch, c, height, width = pixel_shuffle_shape(input.array.shape, r)
    n = len(batch)
    parts = input.reshape((*batch, c, r, r, height // r, width // r))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return parts.permute(order).clone(memory_format=contiguous_format).reshape((*batch, c, height, width))


@pixel_shuffle.gradient("input")
def pixel_shuffle_vjp(grad, upscale_factor):
    return pixel_unshuffle(grad, upscale_factor)


def pixel_unshuffle_shape(input, downscale_factor):
    """(..., c, h r, w r) gives (..., c r^2, h, w)."""
    r = downscale_factor
    if len(input) < 3:
        raise ShapeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got shape {list(input)}")
    if r <= 0:
        raise ShapeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, c, height, width = input
    for name, size in (("height", height), ("width", width)):
        if size % r:
            raise ShapeError(f"pixel_unshuffle expects {name} to be divisible by {r}, but {size} is not")
    return (*batch, c * r * r, height // r, width // r)


@composite(dtype=same.moving(), shape=pixel_unshuffle_shape, public="corefw nn.functional")
def pixel_unshuffle(input, downscale_factor: int):
    """Space rearranged into channels: (..., c, h r, w r) becomes (..., c r^2, h, w) for the factor r.

    >>> import corefw as torch
    >>> torch.pixel_unshuffle(torch.arange(4).reshape(1, 2, 2), 2).reshape(-1)
    tensor([0, 1, 2, 3])
    """
    r = downscale_factor
    *batch, channels, h, w = pixel_unshuffle_shape(input.array.shape, r)
    n = len(batch)
    parts = input.reshape((*batch, channels // (r * r), h, r, w, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return parts.permute(order).clone(memory_format=contiguous_format).reshape((*batch, channels, h, w))


pixel_unshuffle.gradients(input=lambda grad, downscale_factor: pixel_shuffle(grad, downscale_factor))
