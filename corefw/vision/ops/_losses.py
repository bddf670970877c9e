"""What losses of boxes and of pictures share: reductions, and the overlaps of boxes pair by pair."""

from __future__ import annotations

import corefw
from corefw import Tensor


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """`loss` as it is ("none"), or its "mean" (0 of nothing) or "sum"."""
    if reduction == "mean":
        return loss.mean() if loss.numel() else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', 'mean', 'sum'"
        )
    return loss


def wide(boxes: Tensor) -> Tensor:
    """`boxes` in a dtype that holds their products."""
    return boxes if boxes.dtype in (corefw.float32, corefw.float64) else boxes.float()


def sides(boxes: Tensor) -> Tensor:
    """Width and height of boxes (..., 4)."""
    return boxes[..., 2:] - boxes[..., :2]


def overlap(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Of each pair of boxes (..., 4): shared part of the union, union, and sides of the smallest box around both."""
    inside = corefw.minimum(boxes1[..., 2:], boxes2[..., 2:]) - corefw.maximum(boxes1[..., :2], boxes2[..., :2])
    around = corefw.maximum(boxes1[..., 2:], boxes2[..., 2:]) - corefw.minimum(boxes1[..., :2], boxes2[..., :2])
    shared = inside.clamp(min=0).prod(-1)
    union = sides(boxes1).prod(-1) + sides(boxes2).prod(-1) - shared
    return shared / (union + eps), union, around


def by_distance(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The loss by distance of each pair of boxes, and the shared part of their union."""
    part, _, around = overlap(boxes1, boxes2, eps)
    apart = (boxes1[..., :2] + boxes1[..., 2:] - boxes2[..., :2] - boxes2[..., 2:]) / 2
    return 1 - part + apart.square().sum(-1) / (around.square().sum(-1) + eps), part
