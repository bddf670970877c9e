"""The loss of boxes by their generalized overlap: Rezatofighi et al., "Generalized intersection over union", 2019."""

from __future__ import annotations

from corefw import Tensor
from corefw.vision.ops._losses import overlap, reduced, wide

__all__ = ["generalized_box_iou_loss"]


def generalized_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 less the generalized overlap of each pair of boxes (see `generalized_box_iou`).

    Args:
        boxes1, boxes2: (..., 4), as (x1, y1, x2, y2).
        reduction: "none" (a loss for each pair), "mean" or "sum".
        eps: added to what is divided by.

    >>> import corefw as torch
    >>> generalized_box_iou_loss(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[0.0, 0.0, 2.0, 1.0]]))
    tensor([0.5000])
    """
    boxes1, boxes2 = wide(boxes1), wide(boxes2)
    part, union, around = overlap(boxes1, boxes2, eps)
    area = around.prod(-1)
    return reduced(1 - part + (area - union) / (area + eps), reduction)
