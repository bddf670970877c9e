"""Convolutions of sequences whose first dimension is time."""

from __future__ import annotations

from corefw.dispatch.declare import composite, ops
from corefw.errors import ShapeError


@composite(public="corefw nn.functional")
def conv_tbc(input, weight, bias, pad: int = 0):
    """The 1-d convolution of sequences laid out as (time, batch, channels).

    Args:
        input: shape (T, N, C).
        weight: shape (kernel size, C, D).
        bias: shape (D,).
        pad: how many zeros lie before and behind the sequence.

    Returns:
        shape (T + 2 * pad - kernel size + 1, N, D).

    >>> import corefw as torch
    >>> torch.conv_tbc(torch.ones(3, 1, 2), torch.ones(2, 2, 1), torch.zeros(1)).flatten()
    tensor([4., 4.])
    """
    for name, tensor, expected, layout in (
        ("Input", input, 3, "time, batch, in_channel"),
        ("Weight tensor", weight, 3, "kernel_width, in_channels, out_channels"),
        ("Bias", bias, 1, "out_channels"),
    ):
        if tensor.ndim != expected:
            raise ShapeError(f"{name} must have {expected} dims: {layout}; got shape {list(tensor.shape)}")
    if input.shape[2] != weight.shape[1]:
        raise ShapeError(
            f"Input dim 2 (input channels) is not == dim 1 in the weight tensor: {input.shape[2]} and {weight.shape[1]}"
        )
    if bias.shape[0] != weight.shape[2]:
        raise ShapeError(
            f"Bias size must equal dim 2 in the weight tensor (output channels): {bias.shape[0]} and {weight.shape[2]}"
        )
    return ops.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
