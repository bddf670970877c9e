"""Resampling layers: spatial sizes changed by interpolation, or exchanged for channels."""

from __future__ import annotations

from typing import Any

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor


class Upsample(Module):
    """The input resampled to other spatial sizes: see `corefw.nn.functional.interpolate`.

    Args:
        size: the new spatial sizes.
        scale_factor: or by how much they grow.
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear", ...
        align_corners: for the linear and cubic modes: whether the corner elements stay where they are.
        recompute_scale_factor: whether the scale is computed anew from the rounded sizes.

    >>> import corefw as torch
    >>> torch.nn.Upsample(scale_factor=2)(torch.zeros(1, 3, 4, 4)).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, list | tuple):
            self.scale_factor = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return ops.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """An older name of `Upsample` with mode "nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """An older name of `Upsample` with mode "bilinear" and aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels rearranged into space: (..., C r^2, H, W) becomes (..., C, H r, W r).

    >>> import corefw as torch
    >>> torch.nn.PixelShuffle(2)(torch.zeros(1, 8, 3, 3)).shape
    torch.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return ops.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Space rearranged into channels: (..., C, H r, W r) becomes (..., C r^2, H, W).

    >>> import corefw as torch
    >>> torch.nn.PixelUnshuffle(2)(torch.zeros(1, 2, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return ops.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels dealt anew: see `corefw.nn.functional.channel_shuffle`.

    >>> import corefw as torch
    >>> torch.nn.ChannelShuffle(2)(torch.arange(4).reshape(1, 4, 1)).reshape(-1)
    tensor([0, 2, 1, 3])
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return ops.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
