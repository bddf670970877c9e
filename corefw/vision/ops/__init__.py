"""Operations on boxes, in the form of `torchvision.ops`."""

from corefw.vision.ops.boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    nms,
    remove_small_boxes,
)

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "nms",
    "remove_small_boxes",
]
