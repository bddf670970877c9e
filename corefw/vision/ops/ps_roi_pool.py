"""Regions with a channel of its own for each bin, by means: Dai et al., "R-FCN", 2016."""

from __future__ import annotations

import corefw
from corefw import Tensor
from corefw.nn import Module
from corefw.vision.ops._regions import covered, nearest, of_own_channels, of_pictures, pair, summed
from corefw.vision.ops.ps_roi_align import check_channels
from corefw.vision.ops.roi_align import Size

__all__ = ["PSRoIPool", "ps_roi_pool"]


def ps_roi_pool(input: Tensor, boxes: Tensor | list[Tensor], output_size: Size, spatial_scale: float = 1.0) -> Tensor:
    """The mean in each bin of each box, each bin from channels of its own, 0 where it has no element; boxes are
    rounded to whole places.

    The gradient is that of `input`; boxes have none.

    Args:
        input: (N, C * h * w, H, W), h and w being the bins.
        boxes: (K, 5) of a picture's index and (x1, y1, x2, y2), or for each picture a tensor (L, 4) of corners.
        output_size: bins of a box, height and width.
        spatial_scale: what turns the boxes' numbers into places of `input`.

    Returns:
        (K, C, h, w).

    >>> import corefw as torch
    >>> x = torch.arange(4.0).reshape(1, 4, 1, 1).expand(1, 4, 3, 3)
    >>> ps_roi_pool(x, [torch.tensor([[0.0, 0.0, 2.0, 2.0]])], 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """
    height, width = bins = pair(output_size)
    check_channels("ps_roi_pool", input, bins)
    with corefw.no_grad():
        pictures, corners = of_pictures("ps_roi_pool", input, boxes)
        corners = nearest(corners * spatial_scale)
        lengths = (corners[:, 2:] - corners[:, :2]).clamp(min=1)
        rows = _means(corners[:, 1], lengths[:, 1], height, input.shape[2])
        columns = _means(corners[:, 0], lengths[:, 0], width, input.shape[3])
    return summed(input, pictures, rows, columns, of_own_channels)


def _means(start: Tensor, length: Tensor, bins: int, size: int) -> Tensor:
    """How much each place counts for the mean of a bin along one dimension, whose last place no bin has."""
    place, step = corefw.arange(bins, device=start.device), (length / bins)[:, None]
    begin = (start[:, None] + (place * step).floor()).clamp(0, size - 1)
    end = (start[:, None] + ((place + 1) * step).ceil()).clamp(0, size - 1)
    return covered(begin, end, size)


class PSRoIPool(Module):
    """`ps_roi_pool` as a module.

    >>> PSRoIPool(7, 0.25)
    PSRoIPool(output_size=7, spatial_scale=0.25)
    """

    def __init__(self, output_size: Size, spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, spatial_scale={self.spatial_scale}"
