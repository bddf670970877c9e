"""The loss of boxes by overlap, distance and form: Zheng et al., "Distance-IoU loss", 2020, equations 8 to 11."""

from __future__ import annotations

import math

import corefw
from corefw import Tensor
from corefw.vision.ops._losses import by_distance, reduced, sides, wide

__all__ = ["complete_box_iou_loss"]


def complete_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 less the complete overlap of each pair of boxes (see `complete_box_iou`); no gradient flows through the weight
    of the forms' difference.

    Args:
        boxes1, boxes2: (..., 4), as (x1, y1, x2, y2).
        reduction: "none" (a loss for each pair), "mean" or "sum".
        eps: added to what is divided by.

    >>> import corefw as torch
    >>> complete_box_iou_loss(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[0.0, 0.0, 2.0, 2.0]]))
    tensor([0.])
    """
    boxes1, boxes2 = wide(boxes1), wide(boxes2)
    loss, part = by_distance(boxes1, boxes2, eps)
    angle1, angle2 = (corefw.atan(side[..., 0] / side[..., 1]) for side in (sides(boxes1), sides(boxes2)))
    difference = 4 / math.pi**2 * (angle2 - angle1).square()
    with corefw.no_grad():
        weight = difference / (1 - part + difference + eps)
    return reduced(loss + weight * difference, reduction)
