"""Transforms of points of an image: the same names as for tensors."""

from __future__ import annotations

from collections.abc import Sequence

import corefw
from corefw import Tensor
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.point_maps import by_affine, by_displacement, by_perspective
from corefw.vision.tv_tensors import KeyPoints, wrap


def get_dimensions(img: KeyPoints) -> list[int]:
    """One channel, and height and width of the image that the points are of."""
    return [1, *img.canvas_size]


def clamped(points: Tensor, canvas_size: Sequence[int]) -> Tensor:
    """Points brought to the nearest pixels of their image."""
    height, width = canvas_size
    return corefw.stack([points[..., 0].clamp(0, width - 1), points[..., 1].clamp(0, height - 1)], -1)


def _plain(img: KeyPoints) -> Tensor:
    return img.as_subclass(Tensor)


def _computable(img: KeyPoints) -> Tensor:
    return _plain(img) if img.is_floating_point() else _plain(img).to(corefw.float32)


def _on(canvas_size: Sequence[int], points: Tensor, img: KeyPoints) -> KeyPoints:
    return wrap(points.to(img.dtype), like=img, canvas_size=canvas_size)


def hflip(img: KeyPoints) -> KeyPoints:
    """Left and right exchanged."""
    points = _plain(img)
    return wrap(corefw.stack([img.canvas_size[1] - 1 - points[..., 0], points[..., 1]], -1), like=img)


def vflip(img: KeyPoints) -> KeyPoints:
    """Top and bottom exchanged."""
    points = _plain(img)
    return wrap(corefw.stack([points[..., 0], img.canvas_size[0] - 1 - points[..., 1]], -1), like=img)


def crop(img: KeyPoints, top: int, left: int, height: int, width: int) -> KeyPoints:
    """Seen from a rectangle of the image."""
    return _on((height, width), _plain(img) - corefw.tensor([left, top], dtype=img.dtype, device=img.device), img)


def pad(img: KeyPoints, borders: Sequence[int], fill: object, padding_mode: str) -> KeyPoints:
    """Seen from a frame around the image."""
    if padding_mode != "constant":
        raise ValueError(
            f"Padding mode '{padding_mode}' is not supported with KeyPoints (supported modes are constant)"
        )
    left, top, right, bottom = borders
    height, width = img.canvas_size
    return crop(img, -top, -left, height + top + bottom, width + left + right)


def resize(img: KeyPoints, size: Sequence[int], mode: InterpolationMode, antialias: bool | None) -> KeyPoints:
    """Of an image with other numbers of rows and columns."""
    down, across = (new / old for new, old in zip(size, img.canvas_size, strict=True))
    return _on(size, _plain(img) * corefw.tensor([across, down], dtype=corefw.float32, device=img.device), img)


def affine(
    img: KeyPoints, matrix: Sequence[float], mode: InterpolationMode, fill: object, expand: bool = False
) -> KeyPoints:
    """Of a mapped image: `matrix` (a, b, c, d, e, f) leads from the new pixels to the old, seen from the middle."""
    points, canvas_size = by_affine(_computable(img), matrix, img.canvas_size, expand)
    return _on(canvas_size, points, img)


def perspective(img: KeyPoints, coefficients: Sequence[float], mode: InterpolationMode, fill: object) -> KeyPoints:
    """Of a mapped image: x comes from (a x + b y + c) / (g x + h y + 1), y from (d x + e y + f) / (g x + h y + 1)."""
    return _on(img.canvas_size, by_perspective(_computable(img), coefficients), img)


def elastic_transform(img: KeyPoints, displacement: Tensor, mode: InterpolationMode, fill: object) -> KeyPoints:
    """Of a bent image: a point moves against the displacement of its pixel, roughly where that changes."""
    return _on(img.canvas_size, by_displacement(_computable(img), displacement, img.canvas_size), img)
