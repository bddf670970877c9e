"""What poolings of regions share: which boxes belong to which picture, and weighted sums over rows and columns."""

from __future__ import annotations

from collections.abc import Callable

import corefw
from corefw import Tensor

_ELEMENTS = 1 << 25  # of what lies between the two sums of a part of the boxes


def pair(size: int | list[int] | tuple[int, ...]) -> tuple[int, int]:
    """A height and width, of one number for both or of two."""
    return (size, size) if isinstance(size, int) else (size[0], size[-1])


def of_pictures(op: str, input: Tensor, boxes: Tensor | list[Tensor] | tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """The indices of the boxes' pictures (K,) and the boxes (K, 4), in the dtype that positions are computed in.

    Raises:
        ValueError: shapes other than (K, 5), with the picture's index first, or one of (L, 4) for each picture; no such
            picture.
    """
    if input.ndim != 4:
        raise ValueError(f"{op}: an input of shape (N, C, H, W) expected, got {tuple(input.shape)}")
    wide = corefw.promote_types(input.dtype, corefw.float32)
    if isinstance(boxes, (list, tuple)):
        if not boxes:
            boxes = [input.new_zeros((0, 4))]
        for one in boxes:
            if one.ndim != 2 or one.shape[1] != 4:
                raise ValueError(f"{op}: boxes of shape (L, 4) expected for each picture, got {tuple(one.shape)}")
        pictures = corefw.cat([corefw.full((len(one),), place, device=one.device) for place, one in enumerate(boxes)])
        corners = corefw.cat([*boxes])
    else:
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise ValueError(f"{op}: boxes of shape (K, 5) expected, got {tuple(boxes.shape)}")
        pictures, corners = boxes[:, 0].long(), boxes[:, 1:]
    if ((pictures < 0) | (pictures >= len(input))).any():
        raise ValueError(f"{op}: boxes of pictures 0 to {len(input) - 1} expected, got {pictures.unique().tolist()}")
    return pictures, corners.detach().to(wide)


def sampled(start: Tensor, length: Tensor, bins: int, ratio: int, size: int) -> Tensor:
    """How much each of `size` places counts for the mean of a bin's samples, linearly interpolated: (K, bins, size).

    Args:
        start, length: (K,), of the regions along one dimension.
        bins: that each region is cut into.
        ratio: samples of a bin; one for each place that it covers if it is not positive.
        size: places; samples beyond the places next to them count as 0.
    """
    step = (length / bins)[:, None, None]
    count = corefw.full_like(step, ratio) if ratio > 0 else step.ceil()
    most = int(count.max()) if len(count) else 0
    sample = corefw.arange(most, device=start.device)
    place = corefw.arange(bins, device=start.device)[:, None] * step + (sample + 0.5) * step / count
    place = start[:, None, None] + place
    counted = (place >= -1) & (place <= size) & (sample < count)
    place = corefw.where(counted, place, 0.0).clamp(0, size - 1)
    low = place.floor()
    part = place - low
    weights = corefw.zeros((*place.shape[:2], size), dtype=place.dtype, device=place.device)
    weights.scatter_add_(2, low.long(), (1 - part) * counted)
    weights.scatter_add_(2, (low.long() + 1).clamp(max=size - 1), part * counted)
    return weights / count.clamp(min=1)


def covered(start: Tensor, end: Tensor, size: int) -> Tensor:
    """How much each of `size` places counts for the mean of those from `start` to before `end` (K, bins)."""
    place = corefw.arange(size, device=start.device)
    inside = ((place >= start[..., None]) & (place < end[..., None])).to(start.dtype)
    return inside / (end - start).clamp(min=1)[..., None]


def nearest(x: Tensor) -> Tensor:
    """`x` rounded, a half away from 0."""
    return (x + 0.5 * x.sign()).trunc()


def summed(
    input: Tensor, pictures: Tensor, rows: Tensor, columns: Tensor, combine: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Tensor:
    """``combine(picture, rows, columns)`` of the boxes of each picture, in the boxes' order.

    `rows` (K, bins, H) and `columns` (K, bins, W) tell how much each place of `input` (N, C, H, W) counts.
    """
    rows, columns = rows.to(input.dtype), columns.to(input.dtype)
    at_once = max(1, _ELEMENTS // max(1, input[0].numel() // input.shape[2] * rows.shape[1]))
    parts, order = [], []
    for place, picture in enumerate(input):
        for members in (pictures == place).nonzero()[:, 0].split(at_once):
            parts.append(combine(picture, rows[members], columns[members]))
            order.append(members)
    if not sum(map(len, order)):
        return combine(input.sum(0), rows, columns)
    return corefw.cat(parts)[corefw.cat(order).argsort()]


def of_all_channels(picture: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The weighted sums of each channel in each bin, (k, C, rows' bins, columns' bins)."""
    channels, height, width = picture.shape
    lines = rows.reshape(-1, height) @ picture.transpose(0, 1).reshape(height, -1)
    lines = lines.reshape(*rows.shape[:2], channels, width)
    return (lines @ columns.mT[:, None]).transpose(1, 2)


def of_own_channels(picture: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The weighted sums of a channel of its own in each bin, (k, C / bins, rows' bins, columns' bins)."""
    bins = rows.shape[1], columns.shape[1]
    channels, height, width = picture.shape
    channels //= bins[0] * bins[1]
    own = picture.reshape(channels, *bins, height, width).permute(1, 3, 0, 2, 4).reshape(bins[0], height, -1)
    lines = (rows.transpose(0, 1) @ own).reshape(bins[0], len(rows), channels, bins[1], width)
    return (lines * columns[:, None]).sum(-1).permute(1, 2, 0, 3)
