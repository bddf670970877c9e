"""Where points of an image go when its pixels come from elsewhere: the inverses of the maps in `sampling`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.transforms.sampling import warped_size


def _like(points: Tensor, values: object) -> Tensor:
    return corefw.tensor(values, dtype=points.dtype, device=points.device)


def by_affine(
    points: Tensor, matrix: Sequence[float], canvas_size: Sequence[int], expand: bool
) -> tuple[Tensor, tuple[int, int]]:
    """Points (..., 2), each x and y, of an affine map, and the height and width of the new image."""
    height, width = canvas_size
    theta = np.array(matrix).reshape(2, 3)
    new_width, new_height = warped_size(theta, width, height) if expand else (width, height)
    old_middle = _like(points, [width / 2 + theta[0, 2], height / 2 + theta[1, 2]])
    forward = _like(points, np.linalg.inv(theta[:, :2]).T)
    moved = (points - old_middle) @ forward + _like(points, [new_width / 2, new_height / 2])
    return moved, (new_height, new_width)


def by_perspective(points: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Points (..., 2) of a map with perspective."""
    forward = _like(points, np.linalg.inv(np.array([*coefficients, 1.0]).reshape(3, 3)).T)
    moved = corefw.cat([points, points.new_ones((*points.shape[:-1], 1))], -1) @ forward
    return moved[..., :2] / moved[..., 2:]


def by_displacement(points: Tensor, displacement: Tensor, canvas_size: Sequence[int]) -> Tensor:
    """Points (..., 2), which are pixels, of a bent image."""
    height, width = canvas_size
    x, y = points[..., 0].long().clamp(0, width - 1), points[..., 1].long().clamp(0, height - 1)
    shift = displacement.to(points.device, points.dtype)[0, y, x] * _like(points, [width / 2, height / 2])
    return corefw.stack([x, y], -1).to(points.dtype) - shift
