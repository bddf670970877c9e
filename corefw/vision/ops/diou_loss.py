"""The loss of boxes by overlap and distance: Zheng et al., "Distance-IoU loss", 2020."""

from __future__ import annotations

from corefw import Tensor
from corefw.vision.ops._losses import by_distance, reduced, wide

__all__ = ["distance_box_iou_loss"]


def distance_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 less the overlap by distance of each pair of boxes (see `distance_box_iou`).

    Args:
        boxes1, boxes2: (..., 4), as (x1, y1, x2, y2).
        reduction: "none" (a loss for each pair), "mean" or "sum".
        eps: added to what is divided by.

    >>> import corefw as torch
    >>> distance_box_iou_loss(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[0.0, 0.0, 2.0, 2.0]]))
    tensor([0.])
    """
    return reduced(by_distance(wide(boxes1), wide(boxes2), eps)[0], reduction)
