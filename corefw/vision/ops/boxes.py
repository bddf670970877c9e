"""Boxes of objects in pictures: areas, overlaps, forms and the suppression of overlapping ones."""

from __future__ import annotations

import math

import numpy as np

import corefw
from corefw import Tensor

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
]

_AT_ONCE = 256  # boxes that are compared with all others, so that memory grows with their number alone
_FORMS = ("xyxy", "xywh", "cxcywh")


def _checked(op: str, boxes: Tensor) -> Tensor:
    if boxes.ndim == 0 or boxes.shape[-1] != 4:
        raise ValueError(f"{op}: boxes of shape (..., 4) expected, got {tuple(boxes.shape)}")
    return boxes


def _wide(boxes: Tensor) -> Tensor:
    """Coordinates in a dtype in which their products do not overflow."""
    if boxes.is_floating_point():
        return boxes if boxes.dtype in (corefw.float32, corefw.float64) else boxes.float()
    return boxes if boxes.dtype in (corefw.int32, corefw.int64) else boxes.int()


def _corners(op: str, boxes: Tensor, fmt: str) -> Tensor:
    """Boxes of the form `fmt` as (x1, y1, x2, y2)."""
    if fmt not in _FORMS:
        raise ValueError(f"{op}: a form of {', '.join(_FORMS)} expected, got {fmt!r}")
    return boxes if fmt == "xyxy" else box_convert(boxes, fmt, "xyxy")


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """Areas of `boxes` (..., 4) of the form `fmt` (see `box_convert`); shape (...).

    >>> box_area(corefw.tensor([[0.0, 0.0, 2.0, 3.0]])).tolist()
    [6.0]
    """
    boxes = _corners("box_area", _wide(_checked("box_area", boxes)), fmt)
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _shared_and_union(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """Areas of the intersections and the unions of every pair of boxes, (N, M)."""
    area1, area2 = box_area(boxes1), box_area(boxes2)
    first = boxes1[:, None]
    start, end = corefw.maximum(first[..., :2], boxes2[:, :2]), corefw.minimum(first[..., 2:], boxes2[:, 2:])
    shared = _wide(end - start).clamp(min=0).prod(-1)
    return shared, area1[:, None] + area2 - shared


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Intersection over union of every one of `boxes1` (N, 4) with every one of `boxes2` (M, 4); shape (N, M).

    Boxes are of the form `fmt` (see `box_convert`). Two boxes without any area give nan.

    >>> box_iou(corefw.tensor([[0.0, 0.0, 2.0, 2.0]]), corefw.tensor([[1.0, 0.0, 2.0, 2.0]])).tolist()
    [[0.5]]
    """
    boxes1, boxes2 = (_corners("box_iou", _checked("box_iou", boxes), fmt) for boxes in (boxes1, boxes2))
    shared, union = _shared_and_union(boxes1, boxes2)
    return shared / union


def _around(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Width and height of the smallest box around every pair of boxes, (N, M, 2)."""
    first = boxes1[:, None]
    start, end = corefw.minimum(first[..., :2], boxes2[:, :2]), corefw.maximum(first[..., 2:], boxes2[:, 2:])
    return _wide(end - start).clamp(min=0)


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """`box_iou` less the part of the smallest box around a pair that neither covers; boxes are (x1, y1, x2, y2).

    Source: Rezatofighi et al., "Generalized intersection over union", 2019.

    >>> generalized_box_iou(corefw.tensor([[0.0, 0.0, 1.0, 1.0]]), corefw.tensor([[1.0, 0.0, 3.0, 1.0]])).tolist()
    [[0.0]]
    """
    shared, union = _shared_and_union(boxes1, boxes2)
    around = _around(boxes1, boxes2).prod(-1)
    return shared / union - (around - union) / around


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`box_iou` less the squared distance of the centres by the squared diagonal of the smallest box around a pair, to
    which `eps` is added; boxes are (x1, y1, x2, y2).

    Source: Zheng et al., "Distance-IoU loss", 2020.

    >>> distance_box_iou(corefw.tensor([[0.0, 0.0, 2.0, 2.0]]), corefw.tensor([[0.0, 0.0, 2.0, 2.0]])).tolist()
    [[1.0]]
    """
    shared, union = _shared_and_union(boxes1, boxes2)
    diagonal = _around(boxes1, boxes2).square().sum(-1) + eps
    centres1, centres2 = ((_wide(boxes)[:, :2] + _wide(boxes)[:, 2:]) / 2 for boxes in (boxes1, boxes2))
    return shared / union - (centres1[:, None] - centres2).square().sum(-1) / diagonal


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`distance_box_iou` less ``v * v / (1 - iou + v + eps)``, where v is the squared difference of the boxes' angles
    ``atan(width / height)`` times ``4 / pi ** 2``; boxes are (x1, y1, x2, y2). No gradient flows through the weight
    ``v / (1 - iou + v + eps)``.

    Source: Zheng et al., "Distance-IoU loss", 2020, equations 8 to 11.

    >>> complete_box_iou(corefw.tensor([[0.0, 0.0, 2.0, 2.0]]), corefw.tensor([[0.0, 0.0, 2.0, 2.0]])).tolist()
    [[1.0]]
    """
    sizes1, sizes2 = (_wide(boxes)[:, 2:] - _wide(boxes)[:, :2] for boxes in (boxes1, boxes2))
    angles1, angles2 = (corefw.atan(sizes[:, 0] / sizes[:, 1]) for sizes in (sizes1, sizes2))
    difference = 4 / math.pi**2 * (angles1[:, None] - angles2).square()
    with corefw.no_grad():
        weight = difference / (1 - box_iou(boxes1, boxes2) + difference + eps)
    return distance_box_iou(boxes1, boxes2, eps) - weight * difference


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The smallest boxes (N, 4), as (x1, y1, x2, y2), around the elements of masks (N, H, W) that are not 0; zeros
    around none.

    >>> masks_to_boxes(corefw.tensor([[[0, 0, 0], [0, 1, 1]]])).tolist()
    [[1.0, 1.0, 2.0, 1.0]]
    """
    if masks.ndim != 3:
        raise ValueError(f"masks_to_boxes: masks of shape (N, H, W) expected, got {tuple(masks.shape)}")
    boxes = corefw.zeros((len(masks), 4), device=masks.device, dtype=corefw.float)
    for box, mask in zip(boxes, masks):
        rows, columns = mask.nonzero(as_tuple=True)
        if len(rows):
            box.copy_(corefw.stack([columns.min(), rows.min(), columns.max(), rows.max()]))
    return boxes


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """`boxes` (..., 4) of the form `in_fmt` in the form `out_fmt`.

    Forms are "xyxy" (corners), "xywh" (corner and size) and "cxcywh" (centre and size).

    >>> box_convert(corefw.tensor([0.0, 0.0, 2.0, 4.0]), "xyxy", "cxcywh").tolist()
    [1.0, 2.0, 2.0, 4.0]
    """
    for form in (in_fmt, out_fmt):
        if form not in _FORMS:
            raise ValueError(f"box_convert: a form of {', '.join(_FORMS)} expected, got {form!r}")
    _checked("box_convert", boxes)
    if in_fmt == out_fmt:
        return boxes.clone()
    start, end = boxes[..., :2], boxes[..., 2:]
    if in_fmt == "xywh":
        end = start + end
    elif in_fmt == "cxcywh":
        start, end = start - 0.5 * end, start + 0.5 * end
    if out_fmt == "xywh":
        end = end - start
    elif out_fmt == "cxcywh":
        start, end = (start + end) / 2, end - start
    return corefw.cat([start, end], dim=-1)


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """`boxes` (..., 4) as (x1, y1, x2, y2), cut at the edges of a picture of `size` (height, width) in pixels.

    >>> clip_boxes_to_image(corefw.tensor([[-1.0, 2.0, 9.0, 9.0]]), (4, 6)).tolist()
    [[0.0, 2.0, 6.0, 4.0]]
    """
    height, width = size
    _checked("clip_boxes_to_image", boxes)
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return corefw.stack([x, y], dim=-1).reshape(boxes.shape)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """Indices of those of `boxes` (N, 4) whose width and height are both at least `min_size` (pixels).

    >>> remove_small_boxes(corefw.tensor([[0.0, 0.0, 1.0, 9.0], [0.0, 0.0, 3.0, 3.0]]), 2).tolist()
    [1]
    """
    _checked("remove_small_boxes", boxes)
    return ((boxes[:, 2:] - boxes[:, :2]) >= min_size).all(dim=1).nonzero()[:, 0]


@corefw.no_grad()
def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that stay when each gives way to a better one.

    It gives way to one whose intersection over union with it is above `iou_threshold`.

    `boxes` (N, 4) are (x1, y1, x2, y2), `scores` (N,); the indices (int64) come by falling score.

    >>> boxes = corefw.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, 6.0]])
    >>> nms(boxes, corefw.tensor([0.5, 0.9, 0.7]), 0.5).tolist()
    [1, 2]
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise RuntimeError(
            f"nms: boxes (N, 4) and scores (N,) expected, got {tuple(boxes.shape)} and {tuple(scores.shape)}"
        )
    order = corefw.argsort(scores, descending=True, stable=True)
    ordered = boxes[order]
    gone = np.zeros(len(ordered), dtype=bool)
    for begin in range(0, len(ordered), _AT_ONCE):
        rest = ordered[begin:]
        overlap = (box_iou(rest[:_AT_ONCE], rest) > iou_threshold).cpu().numpy()
        for index, row in enumerate(overlap):
            if not gone[begin + index]:
                gone[begin + index + 1 :] |= row[index + 1 :]
    return order[corefw.from_numpy(np.flatnonzero(~gone)).to(order.device)]


@corefw.no_grad()
def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` within each category: boxes of different `idxs` (N,) do not suppress each other.

    >>> boxes = corefw.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0]])
    >>> batched_nms(boxes, corefw.tensor([0.5, 0.9]), corefw.tensor([0, 1]), 0.5).tolist()
    [1, 0]
    """
    keep = corefw.zeros(scores.shape, dtype=corefw.bool, device=scores.device)
    for category in idxs.unique():
        members = (idxs == category).nonzero()[:, 0]
        keep[members[nms(boxes[members], scores[members], iou_threshold)]] = True
    kept = keep.nonzero()[:, 0]
    return kept[corefw.argsort(scores[kept], descending=True, stable=True)]
