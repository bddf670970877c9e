"""Dropout of whole blocks: Ghiasi et al., "DropBlock: a regularization method for convolutional networks", 2018."""

from __future__ import annotations

import math

import corefw
from corefw import Tensor
from corefw.nn import Module, functional

__all__ = ["DropBlock2d", "DropBlock3d", "drop_block2d", "drop_block3d"]


def _dropped(input: Tensor, p: float, block_size: int, inplace: bool, eps: float, training: bool, dims: int) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.ndim != dims + 2:
        raise ValueError(f"input should be {dims + 2} dimensional. Got {input.ndim} dimensions.")
    if not training or p == 0.0:
        return input
    sizes = input.shape[2:]
    side = min(block_size, *sizes)
    firsts = [size - side + 1 for size in sizes]
    chance = p * math.prod(sizes) / (side**dims * math.prod(firsts))
    drawn = corefw.empty((*input.shape[:2], *firsts), dtype=input.dtype, device=input.device).bernoulli_(chance)
    drawn = functional.pad(drawn, [side - 1] * 2 * dims)
    pool = functional.max_pool2d if dims == 2 else functional.max_pool3d
    kept = 1 - pool(drawn, side, stride=1)
    scale = kept.numel() / (eps + kept.sum())
    return input.mul_(kept).mul_(scale) if inplace else input * kept * scale


def drop_block2d(
    input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True
) -> Tensor:
    """`input` (N, C, H, W) with about a part `p` of it set to 0, in squares, and the rest scaled to keep its mean.

    Args:
        input: any floating dtype.
        p: probability of an element to be dropped, where blocks do not overlap.
        block_size: sides of the squares, which overlap where they meet.
        inplace: whether to change `input`.
        eps: added to the number of elements that stay.
        training: without it, `input` comes back as it is.

    >>> drop_block2d(corefw.ones(1, 1, 4, 4), 0.0, 2).sum().item()
    16.0
    """
    return _dropped(input, p, block_size, inplace, eps, training, 2)


def drop_block3d(
    input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True
) -> Tensor:
    """`drop_block2d` of (N, C, D, H, W), in cubes.

    >>> drop_block3d(corefw.ones(1, 1, 2, 4, 4), 0.5, 2, training=False).sum().item()
    32.0
    """
    return _dropped(input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(Module):
    """`drop_block2d` as a module, which acts in training.

    >>> DropBlock2d(0.1, 3)
    DropBlock2d(p=0.1, block_size=3, inplace=False)
    """

    _drop = staticmethod(drop_block2d)

    def __init__(self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6) -> None:
        super().__init__()
        self.p, self.block_size, self.inplace, self.eps = p, block_size, inplace, eps

    def forward(self, input: Tensor) -> Tensor:
        return self._drop(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, block_size={self.block_size}, inplace={self.inplace}"


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a module, which acts in training.

    >>> DropBlock3d(0.1, 3)
    DropBlock3d(p=0.1, block_size=3, inplace=False)
    """

    _drop = staticmethod(drop_block3d)
