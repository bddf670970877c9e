"""Convolutions whose windows are bent: Dai et al., "Deformable convolutional networks", 2017; with a mask, Zhu et al.,
"Deformable ConvNets v2", 2019."""

from __future__ import annotations

import math

import corefw
from corefw import Tensor, nn
from corefw.vision.ops._regions import pair

__all__ = ["DeformConv2d", "deform_conv2d"]

Pair = int | tuple[int, int]


def deform_conv2d(
    input: Tensor, offset: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Pair = (1, 1),
    padding: Pair = (0, 0), dilation: Pair = (1, 1), mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A convolution, each of whose windows takes elements at places moved by `offset`, interpolated, 0 outside.

    Args:
        input: (N, C, H, W).
        offset: (N, 2 * groups * kh * kw, oh, ow): of each element of the window its move along y, then along x, in
            each of some groups of input channels.
        weight: (out, C / g, kh, kw), with g groups of channels that are convolved apart.
        bias: (out,).
        stride, padding, dilation: as of `nn.functional.conv2d`.
        mask: (N, groups * kh * kw, oh, ow), what the elements are multiplied by.

    Returns:
        (N, out, oh, ow).

    Raises:
        ValueError: shapes that do not fit each other.

    >>> x, weight = corefw.arange(9.0).reshape(1, 1, 3, 3), corefw.ones(1, 1, 1, 1)
    >>> deform_conv2d(x, corefw.full((1, 2, 3, 3), 0.5), weight)
    tensor([[[[2.0000, 3.0000, 1.7500],
              [5.0000, 6.0000, 3.2500],
              [3.2500, 3.7500, 2.0000]]]])
    """
    stride, padding, dilation = pair(stride), pair(padding), pair(dilation)
    count, channels, height, width = input.shape
    outputs, own, *window = weight.shape
    elements = window[0] * window[1]
    sizes = [
        (size + 2 * pad - step * (kernel - 1) - 1) // by + 1
        for size, pad, step, kernel, by in zip((height, width), padding, dilation, window, stride, strict=True)
    ]
    _check(input, offset, weight, mask, sizes)
    groups = offset.shape[1] // (2 * elements)
    moves = offset.reshape(count, groups, elements, 2, *sizes)
    rows_and_columns = []
    for axis in (0, 1):
        element = corefw.arange(window[axis], device=input.device) * dilation[axis] - padding[axis]
        element = element.repeat_interleave(window[1]) if axis == 0 else element.repeat(window[0])
        first = (corefw.arange(sizes[axis], device=input.device) * stride[axis]).reshape(-1, *[1] * (1 - axis))
        rows_and_columns.append((moves[:, :, :, axis] + (element[:, None, None] + first)).flatten(2))
    columns = _interpolated(input.unflatten(1, (groups, -1)), *rows_and_columns)
    if mask is not None:
        columns = columns * mask.reshape(count, groups, 1, -1)
    parts = channels // own
    columns = columns.reshape(count, parts, own * elements, sizes[0] * sizes[1])
    out = (weight.reshape(parts, outputs // parts, own * elements) @ columns).reshape(count, outputs, *sizes)
    return out if bias is None else out + bias.reshape(-1, 1, 1)


def _check(input: Tensor, offset: Tensor, weight: Tensor, mask: Tensor | None, sizes: list[int]) -> None:
    """Refuse shapes that do not fit each other."""
    elements, own = weight.shape[2] * weight.shape[3], weight.shape[1]
    shapes = f"input {tuple(input.shape)}, offset {tuple(offset.shape)}, weight {tuple(weight.shape)}"
    groups = offset.shape[1] // (2 * elements)
    if not groups or offset.shape[1] % (2 * elements) or input.shape[1] % groups:
        raise ValueError(
            "deform_conv2d: the shape of the offset tensor at dimension 1 is not valid. It should be a multiple of 2 * "
            f"weight.size[2] * weight.size[3], with groups that divide the channels; got {shapes}"
        )
    if input.shape[1] % own or weight.shape[0] % (input.shape[1] // own):
        raise ValueError(f"deform_conv2d: groups of {own} channels do not fit; got {shapes}")
    wanted = [input.shape[0], groups * elements, *sizes]
    if [offset.shape[0], *offset.shape[2:]] != [wanted[0], *sizes]:
        raise ValueError(f"deform_conv2d: an offset of batch and size {wanted[0]}, {sizes} expected; got {shapes}")
    if mask is not None and [*mask.shape] != wanted:
        raise ValueError(f"deform_conv2d: a mask of shape {tuple(wanted)} expected, got {tuple(mask.shape)}")


def _interpolated(x: Tensor, y: Tensor, along: Tensor) -> Tensor:
    """Elements of pictures (N, G, C, H, W) at the rows `y` and columns `along` (N, G, L), 0 outside: (N, G, C, L)."""
    height, width = x.shape[3:]
    x = x.flatten(3)
    top, left = y.detach().floor(), along.detach().floor()
    down, right = y - top, along - left
    corners = []
    for row, high in ((top, 1 - down), (top + 1, down)):
        for column, wide in ((left, 1 - right), (left + 1, right)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()[:, :, None]
            corners.append(x.gather(3, place.expand(*x.shape[:3], -1)) * (high * wide * inside)[:, :, None])
    return corners[0] + corners[1] + corners[2] + corners[3]


class DeformConv2d(nn.Module):
    """`deform_conv2d` with a weight and a bias of its own; arguments as for `nn.Conv2d`.

    >>> DeformConv2d(4, 8, 3, padding=1)
    DeformConv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1, padding: Pair = 0,
        dilation: Pair = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding, self.dilation = map(pair, (kernel_size, stride, padding, dilation))
        self.weight = nn.Parameter(corefw.empty(out_channels, in_channels // groups, *self.kernel_size))
        self.bias = nn.Parameter(corefw.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, as `nn.Conv2d`."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        window = (self.stride, self.padding, self.dilation)
        return deform_conv2d(input, offset, self.weight, self.bias, *window, mask=mask)

    def extra_repr(self) -> str:
        told = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != usual:
                told += f", {name}={getattr(self, name)}"
        return told if self.bias is not None else f"{told}, bias=False"
