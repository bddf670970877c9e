"""Regions with a channel of its own for each bin, by interpolation: Li et al., "Light-head R-CNN", 2017."""

from __future__ import annotations

from corefw import Tensor, no_grad
from corefw.nn import Module
from corefw.vision.ops._regions import of_own_channels, of_pictures, pair, sampled, summed
from corefw.vision.ops.roi_align import Size

__all__ = ["PSRoIAlign", "ps_roi_align"]


def check_channels(op: str, input: Tensor, bins: tuple[int, int]) -> None:
    """Refuse channels that bins do not divide."""
    if input.ndim == 4 and input.shape[1] % (bins[0] * bins[1]):
        raise ValueError(
            f"{op}: input channels must be a multiple of pooling height * pooling width, got {input.shape[1]} channels "
            f"and {bins[0]} * {bins[1]} bins"
        )


def ps_roi_align(
    input: Tensor, boxes: Tensor | list[Tensor], output_size: Size, spatial_scale: float = 1.0, sampling_ratio: int = -1
) -> Tensor:
    """The means of interpolated samples in each bin of each box, each bin from channels of its own.

    The gradient is that of `input`; boxes have none.

    Args:
        input: (N, C * h * w, H, W), h and w being the bins.
        boxes: (K, 5) of a picture's index and (x1, y1, x2, y2), or for each picture a tensor (L, 4) of corners.
        output_size: bins of a box, height and width.
        spatial_scale: what turns the boxes' numbers into places of `input`.
        sampling_ratio: samples of a bin along each dimension; if not positive, one for each place it covers.

    Returns:
        (K, C, h, w).

    >>> import corefw as torch
    >>> x = torch.arange(4.0).reshape(1, 4, 1, 1).expand(1, 4, 3, 3)
    >>> ps_roi_align(x, [torch.tensor([[0.0, 0.0, 3.0, 3.0]])], 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """
    height, width = bins = pair(output_size)
    check_channels("ps_roi_align", input, bins)
    with no_grad():
        pictures, corners = of_pictures("ps_roi_align", input, boxes)
        corners = corners * spatial_scale - 0.5
        lengths = corners[:, 2:] - corners[:, :2]
        rows = sampled(corners[:, 1], lengths[:, 1], height, sampling_ratio, input.shape[2])
        columns = sampled(corners[:, 0], lengths[:, 0], width, sampling_ratio, input.shape[3])
    return summed(input, pictures, rows, columns, of_own_channels)


class PSRoIAlign(Module):
    """`ps_roi_align` as a module.

    >>> PSRoIAlign(7, 0.25, 2)
    PSRoIAlign(output_size=7, spatial_scale=0.25, sampling_ratio=2)
    """

    def __init__(self, output_size: Size, spatial_scale: float, sampling_ratio: int) -> None:
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio = output_size, spatial_scale, sampling_ratio

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in ("output_size", "spatial_scale", "sampling_ratio"))
