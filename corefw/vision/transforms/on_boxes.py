"""Transforms of bounding boxes: the same names as for tensors. A box becomes the smallest that holds its corners."""

from __future__ import annotations

from collections.abc import Sequence

import corefw
from corefw import Tensor
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.point_maps import by_affine, by_displacement, by_perspective
from corefw.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, bounding_box_format, wrap

_XYXY = BoundingBoxFormat.XYXY


def get_dimensions(img: BoundingBoxes) -> list[int]:
    """One channel, and height and width of the image that the boxes are of."""
    return [1, *img.canvas_size]


def converted(boxes: Tensor, old: BoundingBoxFormat | str, new: BoundingBoxFormat | str) -> Tensor:
    """The numbers of boxes in another format; whole numbers stay whole, halves of their sizes rounded up.

    >>> converted(corefw.tensor([[2.0, 3.0, 4.0, 6.0]]), "XYWH", "CXCYWH")
    tensor([[4., 6., 4., 6.]])
    """
    old, new = bounding_box_format(old), bounding_box_format(new)
    if old is new:
        return boxes.clone()
    first, second = boxes[..., :2], boxes[..., 2:]
    floor = None if boxes.is_floating_point() else "floor"
    if old is _XYXY:
        corner, size = first, second - first
    else:
        corner = (
            first if old is BoundingBoxFormat.XYWH else first + (-second).div(2, rounding_mode=floor).to(boxes.dtype)
        )
        size = second
    if new is _XYXY:
        return corefw.cat([corner, corner + size], -1)
    if new is BoundingBoxFormat.CXCYWH:
        corner = (corner * 2 + size).div(2, rounding_mode=floor).to(boxes.dtype)
    return corefw.cat([corner, size], -1)


def clamped(boxes: Tensor, format: BoundingBoxFormat, canvas_size: Sequence[int], clamping_mode: str | None) -> Tensor:
    """Boxes cut off at the edges of their image."""
    if clamping_mode is None:
        return boxes.clone()
    computed = boxes if boxes.is_floating_point() else boxes.to(corefw.float32)
    corners = converted(computed, format, _XYXY)
    height, width = canvas_size
    across, down = corners[..., 0::2].clamp(0, width), corners[..., 1::2].clamp(0, height)
    cut = corefw.stack([across[..., 0], down[..., 0], across[..., 1], down[..., 1]], -1)
    return converted(cut, _XYXY, format).to(boxes.dtype)


def _plain(img: BoundingBoxes) -> Tensor:
    return img.as_subclass(Tensor)


def _on(canvas_size: Sequence[int], boxes: Tensor, img: BoundingBoxes) -> BoundingBoxes:
    """Boxes in the format of `img`, of an image of this height and width."""
    cut = clamped(boxes, img.format, canvas_size, img.clamping_mode)
    return wrap(cut, like=img, canvas_size=canvas_size)


def _flipped(img: BoundingBoxes, axis: int) -> BoundingBoxes:
    edge = img.canvas_size[1 - axis]
    boxes = _plain(img).clone()
    if img.format is _XYXY:
        boxes[..., axis], boxes[..., axis + 2] = edge - _plain(img)[..., axis + 2], edge - _plain(img)[..., axis]
    else:
        boxes[..., axis] = edge - boxes[..., axis]
        if img.format is BoundingBoxFormat.XYWH:
            boxes[..., axis] -= boxes[..., axis + 2]
    return wrap(boxes, like=img)


def hflip(img: BoundingBoxes) -> BoundingBoxes:
    """Left and right exchanged."""
    return _flipped(img, 0)


def vflip(img: BoundingBoxes) -> BoundingBoxes:
    """Top and bottom exchanged."""
    return _flipped(img, 1)


def _moved(img: BoundingBoxes, right: int, down: int, canvas_size: Sequence[int]) -> BoundingBoxes:
    by = [right, down, right, down] if img.format is _XYXY else [right, down, 0, 0]
    return _on(canvas_size, _plain(img) + corefw.tensor(by, dtype=img.dtype, device=img.device), img)


def crop(img: BoundingBoxes, top: int, left: int, height: int, width: int) -> BoundingBoxes:
    """Seen from a rectangle of the image."""
    return _moved(img, -left, -top, (height, width))


def pad(img: BoundingBoxes, borders: Sequence[int], fill: object, padding_mode: str) -> BoundingBoxes:
    """Seen from a frame around the image."""
    if padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported with bounding boxes")
    left, top, right, bottom = borders
    height, width = img.canvas_size
    return _moved(img, left, top, (height + top + bottom, width + left + right))


def resize(img: BoundingBoxes, size: Sequence[int], mode: InterpolationMode, antialias: bool | None) -> BoundingBoxes:
    """Of an image with other numbers of rows and columns."""
    down, across = (new / old for new, old in zip(size, img.canvas_size, strict=True))
    ratios = corefw.tensor([across, down, across, down], dtype=corefw.float32, device=img.device)
    return wrap((_plain(img) * ratios).to(img.dtype), like=img, canvas_size=size)


def _corners(img: BoundingBoxes) -> Tensor:
    """The corners (N, 4, 2) of boxes, as floating-point numbers."""
    boxes = _plain(img) if img.is_floating_point() else _plain(img).to(corefw.float32)
    return converted(boxes, img.format, _XYXY)[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)


def _around(corners: Tensor, canvas_size: Sequence[int], img: BoundingBoxes) -> BoundingBoxes:
    """The smallest boxes that hold their corners (N, 4, 2)."""
    boxes = corefw.cat([corners.amin(1), corners.amax(1)], -1) if len(corners) else corners.reshape(0, 4)
    cut = clamped(boxes, _XYXY, canvas_size, img.clamping_mode)
    return wrap(converted(cut, _XYXY, img.format).to(img.dtype), like=img, canvas_size=canvas_size)


def affine(
    img: BoundingBoxes, matrix: Sequence[float], mode: InterpolationMode, fill: object, expand: bool = False
) -> BoundingBoxes:
    """Of a mapped image: `matrix` (a, b, c, d, e, f) leads from the new pixels to the old, seen from the middle."""
    return _around(*by_affine(_corners(img), matrix, img.canvas_size, expand), img)


def perspective(
    img: BoundingBoxes, coefficients: Sequence[float], mode: InterpolationMode, fill: object
) -> BoundingBoxes:
    """Of a mapped image: x comes from (a x + b y + c) / (g x + h y + 1), y from (d x + e y + f) / (g x + h y + 1)."""
    return _around(by_perspective(_corners(img), coefficients), img.canvas_size, img)


def elastic_transform(img: BoundingBoxes, displacement: Tensor, mode: InterpolationMode, fill: object) -> BoundingBoxes:
    """Of a bent image: a corner moves against the displacement of its pixel, roughly where that changes."""
    return _around(by_displacement(_corners(img).ceil(), displacement, img.canvas_size), img.canvas_size, img)
