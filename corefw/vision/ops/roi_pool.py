"""Regions of pictures of features at a fixed size, by maxima: Girshick, "Fast R-CNN", 2015."""

from __future__ import annotations

import corefw
from corefw import Tensor
from corefw.nn import Module
from corefw.vision.ops._regions import nearest, of_pictures, pair
from corefw.vision.ops.roi_align import Size

__all__ = ["RoIPool", "roi_pool"]


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
    height, width = pair(output_size)
    with corefw.no_grad():
        pictures, corners = of_pictures("roi_pool", input, boxes)
        corners = nearest(corners * spatial_scale)
        lengths = (corners[:, 2:] - corners[:, :2] + 1).clamp(min=1)
        top, high = _spans(corners[:, 1], lengths[:, 1], height, input.shape[2])
        left, wide = _spans(corners[:, 0], lengths[:, 0], width, input.shape[3])
        top = top + (pictures * input.shape[2])[:, None]
        first = (top[:, :, None] * input.shape[3] + left[:, None]).flatten()
        counts = (high[:, :, None] * wide[:, None]).flatten()
        sides = wide[:, None].expand(-1, height, -1).flatten().clamp(min=1)
        largest = _places_of_largest(_by_places(input.detach()), first, counts, sides, input.shape[3])
    found = _by_places(input).gather(0, largest) * (counts > 0)[:, None].to(input.dtype)
    return found.reshape(len(corners), height, width, input.shape[1]).permute(0, 3, 1, 2)


def _by_places(input: Tensor) -> Tensor:
    """(N, C, H, W) as (N * H * W, C), in which a place's channels lie side by side."""
    return input.permute(0, 2, 3, 1).reshape(-1, input.shape[1])


def _spans(start: Tensor, length: Tensor, bins: int, size: int) -> tuple[Tensor, Tensor]:
    """The first place of each bin along one dimension and how many it has, (K, bins)."""
    place, step = corefw.arange(bins, device=start.device), (length / bins)[:, None]
    begin = (start[:, None] + (place * step).floor()).clamp(0, size)
    end = (start[:, None] + ((place + 1) * step).ceil()).clamp(0, size)
    return begin.clamp(max=size - 1).long(), (end - begin).long()


def _places_of_largest(elements: Tensor, first: Tensor, counts: Tensor, sides: Tensor, width: int) -> Tensor:
    """Of each bin and channel the first place of its largest element, (bins, C).

    Args:
        elements: (all places, C).
        first, counts, sides: of each bin its first place, how many it has, and how many of these lie in a row.
        width: places from a row to the next.
    """
    order = counts.argsort(descending=True)  # so that the bins with a further place come first
    begin, side = first[order], sides[order]
    best = elements[begin]
    step = corefw.zeros(best.shape, dtype=corefw.int64, device=best.device)  # of the place within the bin
    most = int(counts.max()) if len(counts) else 0
    left = (counts > corefw.arange(most, device=counts.device)[:, None]).sum(1).tolist()
    for number in range(1, most):
        bins = slice(left[number])
        row = side[bins]
        value = elements.index_select(0, begin[bins] + number // row * width + number % row)
        step[bins].masked_fill_(value > best[bins], number)
        best[bins] = corefw.maximum(best[bins], value)
    found = begin[:, None] + step // side[:, None] * width + step % side[:, None]
    return found[order.argsort()]


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
