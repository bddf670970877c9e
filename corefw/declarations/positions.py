"""Positions of elements: of those that are not zero, of triangles, and the coordinates of numbered ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Literal, overload

from corefw import dtypes
from corefw.declarations._shared.families import family
from corefw.dispatch.batching.arrays import base_of
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import index
from corefw.errors import DtypeError, ShapeError
from corefw.tensor import Tensor


# -- of nonzero elements ----------------------------------------------------------------------------------------------
@overload
def nonzero(input, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@primitive(dtype=index, shape=None, rewrites=("as_tuple",), out=True)
def nonzero(input, *, as_tuple: bool = False):
    """The positions of the nonzero elements of `input`, in order.

    Args:
        input: any shape.
        as_tuple: whether to return one tensor per dimension, fit to index with, instead of one of shape (n, ndim).

    >>> import corefw as torch
    >>> torch.nonzero(torch.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input if input.array.ndim else input.reshape((1,))).unbind(1)


@composite()
def argwhere(input):
    """The positions of the nonzero elements of `input`: shape (n, ndim).

    >>> import corefw as torch
    >>> torch.argwhere(torch.tensor([0, 5, 7]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


@composite(out=True)
def nonzero_static(input, *, size: int, fill_value: int = -1):
    """The first `size` positions of `nonzero`, followed by rows of `fill_value` if there are fewer: (size, ndim).

    >>> import corefw as torch
    >>> torch.nonzero_static(torch.tensor([0, 5, 7]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise ShapeError("nonzero_static: 'size' must be an non-negative integer")
    found = ops.nonzero(input)[:size]
    return ops.cat([found, found.new_full((size - found.shape[0], found.shape[1]), fill_value)])


# -- of numbered elements ---------------------------------------------------------------------------------------------
@composite(public="corefw")
def unravel_index(indices, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, one tensor for each dimension, of elements of a tensor of `shape` that are numbered row by row.

    Args:
        indices: integers; those beyond the last element begin again with the first.
        shape: the sizes of the dimensions.

    >>> import corefw as torch
    >>> torch.unravel_index(torch.tensor([5, 7]), (3, 4))
    (tensor([1, 1]), tensor([1, 3]))
    """
    if not isinstance(indices, Tensor) or indices.dtype.category != dtypes.INTEGER:
        found = indices.dtype if isinstance(indices, Tensor) else type(indices).__name__
        raise TypeError(f"expected 'indices' to be integer dtype, but got {found}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {shape}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if 0 in sizes and indices.numel():
        raise ShapeError(f"unravel_index: a tensor of shape {sizes} has no elements, but positions of some were given")
    indices = indices.long()
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    return tuple(indices.div(step or 1, rounding_mode="floor") % (size or 1) for step, size in zip(steps, sizes))


# -- of triangles -----------------------------------------------------------------------------------------------------
@family()
def _triangle(name: str, kept: Callable[[Any, int], Any]):
    """Functions that give the positions in a triangle of a matrix.

    Args:
        kept: what lies in it, by the numbers of the diagonals and the offset.
    """

    def positions(
        row: int, col: int, offset: int = 0, *, dtype=None, device=None, layout=None, pin_memory: bool = False
    ):
        for side, size in (("row", row), ("col", col)):
            if size < 0:
                raise ShapeError(f"{name}: {side} must be non-negative, got {size}")
        if dtype not in (None, dtypes.int64, dtypes.int32):
            raise DtypeError(f'"{name}" not implemented for {dtype!r}: positions are int64 or int32')
        where = base_of(device)  # in all examples of a `vmap` the same
        diagonal = ops.arange(col, device=where) - ops.arange(row, device=where).unsqueeze(1)
        if diagonal.is_meta:  # where nothing can be counted
            return positions(row, col, offset, dtype=dtype, device="cpu").to(diagonal.device)
        found = nonzero(kept(diagonal, offset)).t().to(dtype or dtypes.int64).contiguous()
        return found.pin_memory() if pin_memory else found

    return positions


@_triangle(operator.le)
def tril_indices():
    """The positions of the lower triangle of a matrix of `row` rows and `col` columns: shape (2, n), row by row.

    Args:
        offset: the last diagonal of the triangle: 0 the main one, positive above it.
        dtype: int64, or int32.
        device: where the result lies.
        pin_memory: whether it lies in memory that a device can read by itself.

    >>> import corefw as torch
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """


@_triangle(operator.ge)
def triu_indices():
    """The positions of the upper triangle, whose first diagonal is `offset`. Arguments as for `tril_indices`.

    >>> import corefw as torch
    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
