"""The array API's functions that change shapes and join arrays."""

from __future__ import annotations

from typing import Any

import corefw
from corefw.array_api.data_types import promoted
from corefw.tensor import Tensor


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Views of arrays that have the shape that all broadcast to."""
    return tuple(corefw.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of `x` with the shape that it broadcasts to."""
    return corefw.broadcast_to(x, tuple(shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis; flattened first if it is None.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().concat([torch.ones(1, 2), torch.zeros(1, 1)], axis=None)
    tensor([1., 1., 0.])
    """
    parts = promoted(*arrays)
    return corefw.cat([p.flatten() for p in parts]) if axis is None else corefw.cat(parts, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape joined along a new axis."""
    return corefw.stack(promoted(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of `x` along an axis."""
    return tuple(corefw.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """`x` with an axis of size 1 put at position `axis`; IndexError if there is no such position."""
    return x.unsqueeze(axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """`x` without axes of size 1; ValueError if one has another size.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().squeeze(torch.ones(1, 3, 1), (0, 2)).shape
    torch.Size([3])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has size {x.shape[a]}, only axes of size 1 can go")
    return x.squeeze(axes) if axes else x.view(x.shape)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """`x` in reverse order along axes, all of them if `axis` is None."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return x.flip(axes)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """`x` with axes at other positions; the others keep their order."""
    return corefw.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """`x` with its axes in the order that `axes` gives."""
    return x.permute(tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Matrices with rows and columns exchanged; ValueError for fewer than two axes."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: matrices are wanted, not an array of {x.ndim} dimensions")
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element along an axis (of the flattened array if it is None) several times.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().repeat(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if isinstance(repeats, Tensor):
        flat = repeats.to(corefw.int64).flatten()
        repeats = int(flat) if flat.numel() == 1 else flat
    return corefw.repeat_interleave(x, repeats, dim=axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """`x` in another shape, of which one size may be -1.

    Args:
        x: the array.
        shape: with as many elements.
        copy: True copies always, False never (ValueError where one is needed), None where needed.
    """
    if copy:
        return x.clone().reshape(shape)
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: {tuple(x.shape)} to {tuple(shape)} needs a copy: {error}") from None
    return x.reshape(shape)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """`x` shifted cyclically along axes; flattened for the shift if `axis` is None."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return corefw.roll(x, shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """`x` as a tile laid several times along each axis."""
    return corefw.tile(x, tuple(repetitions))
