"""Pooling with steps that are fractions: of windows whose distances are one of two numbers, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from corefw import dtypes
from corefw.declarations._shared.drawing import check_floating
from corefw.declarations._shared.families import in_each_dimension
from corefw.declarations._shared.windowed import batched
from corefw.dispatch.declare import ops
from corefw.errors import DtypeError, ShapeError
from corefw.windows import per_dimension

_NOT_BATCHED = "{name}(): Expected {unbatched}D or {batched}D (batch mode) tensor, but got"


def _sizes(name: str, input, kernel_size, output_size, output_ratio, n: int) -> tuple:
    """The sizes of the windows and how many there are, by dimension."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    sizes = tuple(input.shape[2:])
    if 0 in input.shape[1:]:
        raise ShapeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}"
        )
    if output_size is None:
        ratios = per_dimension(output_ratio, n)
        output_size = [int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True)]
    windows, counts = per_dimension(kernel_size, n), per_dimension(output_size, n)
    for size, window, count in zip(sizes, windows, counts, strict=True):
        if window < 1 or count < 1 or count + window - 1 > size:
            raise ShapeError(
                f"{name}(): pool too large relative to input: {count} windows of {window} elements do not fit in "
                f"{size}, or there are none"
            )
    return windows, counts


def _begins(sample, size: int, window: int, count: int):
    """Where the windows along a dimension begin, for a number of each channel from 0 to 1; the last ends it."""
    last = (sample * 0 + (size - window)).unsqueeze(-1).to(dtypes.int64)
    if count == 1:
        return last
    step = (size - window) / (count - 1)
    steps = ops.arange(count - 1, dtype=sample.dtype, device=sample.device)
    first = (sample * step).floor().unsqueeze(-1)
    return ops.cat([((sample.unsqueeze(-1) + steps) * step).floor().sub(first).to(dtypes.int64), last], -1)


def _pooled(input, samples, kernel_size: tuple, output_size: tuple) -> tuple:
    """The maximum of each window of (N, C, *spatial), and where it is in the flattened spatial dimensions."""
    n, sizes = len(kernel_size), tuple(input.shape[2:])
    places: Any = 0
    for dim, (size, window, count) in enumerate(zip(sizes, kernel_size, output_size, strict=True)):
        begins = _begins(samples[..., dim], size, window, count)
        along = begins.unsqueeze(-1) + ops.arange(window, device=input.device)  # (N, C, windows, elements)
        shape = [1] * (2 * n)
        shape[dim], shape[n + dim] = count, window
        places = places * size + along.reshape(*input.shape[:2], *shape)
    places = places.reshape(*input.shape[:2], prod(output_size), prod(kernel_size))
    flat = input.reshape(*input.shape[:2], prod(sizes))
    elements = flat.detach().gather(2, places.reshape(*input.shape[:2], -1)).reshape(places.shape)
    indices = places.gather(3, elements.argmax(3, keepdim=True)).squeeze(3)
    found = (*input.shape[:2], *output_size)
    return flat.gather(2, indices).reshape(found), indices.reshape(found)


@in_each_dimension(2, 3, public="nn.functional")
def _fractional_max_pool(name: str, n: int):
    #: the dimension that each of the drawn numbers is for: images have them turned
    order = (1, 0) if n == 2 else (0, 1, 2)

    def function(
        input,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples=None,
    ) -> Any:
        """The maximum of each window, of which so many lie at drawn distances that they reach from end to end (Graham,
        "Fractional max-pooling", 2014).

        Args:
            input: (N, C, {axes}) or (C, {axes}), floating.
            kernel_size: the windows' size.
            output_size: how many windows there are in each dimension.
            output_ratio: the same as a part of the input's sizes, from 0 to 1.
            return_indices: whether to return also where the maxima are in the flattened spatial dimensions.
            _random_samples: what the distances follow from instead of drawn numbers, from 0 to 1, of shape (N, C, {n}).

        >>> import corefw as torch
        >>> torch.nn.functional.fractional_max_pool{n}d(torch.ones(1, 3, {5}), 2, output_ratio=0.5).shape
        torch.Size([1, 3, {2}])
        """
        input, unbatched = batched(name, input, n, _NOT_BATCHED)
        windows, counts = _sizes(name, input, kernel_size, output_size, output_ratio, n)
        check_floating("check_uniform_bounds", input.dispatch_key.dtype, complex_too=False)
        if _random_samples is None:
            _random_samples = ops.rand((*input.shape[:2], n), dtype=input.dtype, device=input.device)
        elif tuple(_random_samples.shape) != (*input.shape[:2], n):
            raise ShapeError(
                f"{name}(): expected _random_samples of shape {[*input.shape[:2], n]}, got "
                f"{list(_random_samples.shape)}"
            )
        elif (_random_samples.dtype, _random_samples.device) != (input.dtype, input.device):
            raise DtypeError(f"{name}(): expected _random_samples to have the same dtype and device as input")
        samples = ops.stack([_random_samples.detach()[..., dim] for dim in order], -1)
        values, indices = _pooled(input, samples, windows, counts)
        if unbatched:
            values, indices = values.squeeze(0), indices.squeeze(0)
        return (values, indices) if return_indices else values

    return function
