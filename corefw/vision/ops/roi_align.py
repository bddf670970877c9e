"""Regions of pictures of features at a fixed size, by interpolation: He et al., "Mask R-CNN", 2017."""

from __future__ import annotations

from corefw import Tensor, no_grad
from corefw.nn import Module
from corefw.vision.ops._regions import of_all_channels, of_pictures, pair, sampled, summed

__all__ = ["RoIAlign", "roi_align"]

Size = int | tuple[int, int] | list[int]


def roi_align(
    input: Tensor, boxes: Tensor | list[Tensor], output_size: Size, spatial_scale: float = 1.0,
    sampling_ratio: int = -1, aligned: bool = False,
) -> Tensor:  # fmt: skip
    """The means of interpolated samples in each bin of each box.

    The gradient is that of `input`; boxes have none.

    Args:
        input: (N, C, H, W).
        boxes: (K, 5) of a picture's index and (x1, y1, x2, y2), or for each picture a tensor (L, 4) of corners.
        output_size: bins of a box, height and width.
        spatial_scale: what turns the boxes' numbers into places of `input`.
        sampling_ratio: samples of a bin along each dimension; if not positive, one for each place it covers.
        aligned: whether places are the middles of pixels, which moves boxes by half of one; without it, boxes have at
            least a length of 1.

    Returns:
        (K, C, *output_size).

    >>> import corefw as torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> roi_align(x, [torch.tensor([[0.0, 0.0, 2.0, 2.0]])], 2, sampling_ratio=1)
    tensor([[[[2.5000, 3.5000],
              [6.5000, 7.5000]]]])
    """
    height, width = pair(output_size)
    with no_grad():
        pictures, corners = of_pictures("roi_align", input, boxes)
        start = corners * spatial_scale - (0.5 if aligned else 0.0)
        length = start[:, 2:] - start[:, :2]
        if not aligned:
            length = length.clamp(min=1.0)
        rows = sampled(start[:, 1], length[:, 1], height, sampling_ratio, input.shape[2])
        columns = sampled(start[:, 0], length[:, 0], width, sampling_ratio, input.shape[3])
    return summed(input, pictures, rows, columns, of_all_channels)


class RoIAlign(Module):
    """`roi_align` as a module.

    >>> RoIAlign(7, 0.25, 2)
    RoIAlign(output_size=7, spatial_scale=0.25, sampling_ratio=2, aligned=False)
    """

    def __init__(self, output_size: Size, spatial_scale: float, sampling_ratio: int, aligned: bool = False) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def extra_repr(self) -> str:
        names = ("output_size", "spatial_scale", "sampling_ratio", "aligned")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)
