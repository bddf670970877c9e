"""Regions of pictures of features at a fixed size, by maxima: Girshick, "Fast R-CNN", 2015."""

from __future__ import annotations

import corefw
from corefw import Tensor
from corefw.nn import Module
from corefw.vision.ops._regions import nearest, of_pictures, pair
from corefw.vision.ops.roi_align import Size

__all__ = ["RoIPool", "roi_pool"]

_ELEMENTS = 1 << 24  # that are compared at once


def roi_pool(input: Tensor, boxes: Tensor | list[Tensor], output_size: Size, spatial_scale: float = 1.0) -> Tensor:
    """The largest element in each bin of each box, 0 where a bin has none; boxes are rounded to whole places, of which
    their ends are part.

    The gradient is that of `input`; boxes have none.

    Args:
        input: (N, C, H, W).
        boxes: (K, 5) of a picture's index and (x1, y1, x2, y2), or for each picture a tensor (L, 4) of corners.
        output_size: bins of a box, height and width.
        spatial_scale: what turns the boxes' numbers into places of `input`.

    Returns:
        (K, C, *output_size).

    >>> import corefw as torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> roi_pool(x, [torch.tensor([[0.0, 0.0, 3.0, 3.0]])], 2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    bins = pair(output_size)
    with corefw.no_grad():
        pictures, corners = of_pictures("roi_pool", input, boxes)
        channels, height, width = input.shape[1:]
        corners = nearest(corners * spatial_scale)
        lengths = (corners[:, 2:] - corners[:, :2] + 1).clamp(min=1)
        rows, has_row = _members(corners[:, 1], lengths[:, 1], bins[0], height)
        columns, has_column = _members(corners[:, 0], lengths[:, 0], bins[1], width)
        places = rows[:, :, None, :, None] * width + columns[:, None, :, None, :]
        inside = (has_row[:, :, None, :, None] & has_column[:, None, :, None, :]).expand_as(places).flatten(3)
        places = places.flatten(3)
        flat = input.detach().flatten(2)
        at_once = max(1, _ELEMENTS // max(1, channels * places[:1].numel()))
        best = [
            _places_of_largest(flat, *part)
            for part in zip(pictures.split(at_once), places.split(at_once), inside.split(at_once), strict=True)
        ]
        found = corefw.cat(best) if best else places.new_zeros((0, channels, *bins))
        found = found + (pictures[:, None, None, None] * channels + corefw.arange(channels)[:, None, None]) * (
            height * width
        )
    return input.reshape(-1)[found] * inside.any(-1)[:, None].to(input.dtype)


def _members(start: Tensor, length: Tensor, bins: int, size: int) -> tuple[Tensor, Tensor]:
    """The places of each bin along one dimension, (K, bins, most that one has), and which of these are its own."""
    place = corefw.arange(bins, device=start.device)
    step = (length / bins)[:, None]
    begin = (start[:, None] + (place * step).floor()).clamp(0, size)
    end = (start[:, None] + ((place + 1) * step).ceil()).clamp(0, size)
    most = int((end - begin).max().clamp(min=1)) if len(start) else 1
    members = begin[..., None] + corefw.arange(most, device=start.device)
    return members.clamp(max=size - 1).long(), members < end[..., None]


def _places_of_largest(flat: Tensor, pictures: Tensor, places: Tensor, inside: Tensor) -> Tensor:
    """Where the largest element of each bin lies, (k, C, rows' bins, columns' bins)."""
    channels = corefw.arange(flat.shape[1], device=flat.device)[:, None, None, None]
    elements = flat[pictures[:, None, None, None, None], channels, places[:, None]]
    best = elements.masked_fill(~inside[:, None], -float("inf")).argmax(-1, keepdim=True)
    return places[:, None].expand_as(elements).gather(-1, best)[..., 0]


class RoIPool(Module):
    """`roi_pool` as a module.

    >>> RoIPool(7, 0.25)
    RoIPool(output_size=7, spatial_scale=0.25)
    """

    def __init__(self, output_size: Size, spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"
