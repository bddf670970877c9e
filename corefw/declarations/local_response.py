"""Normalisation across neighbouring channels."""

from __future__ import annotations

from corefw.dispatch.declare import composite, ops
from corefw.errors import ShapeError


@composite(public="nn.functional")
def local_response_norm(input, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
    """The input over ``(k + alpha * mean of the squares of `size` channels around) ** beta`` (Krizhevsky et al. 2012).

    Channels beyond the first and the last count as 0.

    Args:
        input: shape (N, C, *).
        size: how many channels.
        alpha, beta, k: as in the formula.

    >>> import corefw as torch
    >>> torch.nn.functional.local_response_norm(torch.ones(1, 1, 1), 1, alpha=3.0, beta=1.0)
    tensor([[[0.2500]]])
    """
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if not input.numel():
        return input
    if size < 1:
        raise ShapeError(f"local_response_norm: size must be positive, got {size}")
    channels = input.shape[1]
    around = ops.constant_pad_nd(input * input, (0, 0) * (input.ndim - 2) + (size // 2, (size - 1) // 2))
    total = around.narrow(1, 0, channels)
    for shift in range(1, size):
        total = total + around.narrow(1, shift, channels)
    return input / (total * (alpha / size) + k) ** beta
