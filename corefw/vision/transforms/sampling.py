"""Tensor images whose pixels come from elsewhere: turned, sheared, seen from another side, and bent.

The places that the pixels come from are computed as torchvision computes them, in the dtype of the image, so that what
is uint8 is equal pixel for pixel unless a place lies between two pixels but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

import corefw
from corefw import Tensor
from corefw.nn.functional import grid_sample
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.values import computable, get_dimensions, restored

_Fill = float | Sequence[float] | None


def _checked_fill(img: Tensor, mode: InterpolationMode, fill: _Fill) -> list[float] | None:
    """The values outside of the image, one or one for each channel; None where they stay 0 unblended."""
    if mode not in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR):
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")
    if fill is None:
        return None
    values = [float(fill)] if isinstance(fill, int | float) else [float(value) for value in fill]
    if len(values) not in (1, channels := get_dimensions(img)[0]):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    return values


def _sampled(img: Tensor, grid: Tensor, mode: InterpolationMode, fill: list[float] | None) -> Tensor:
    """The image's values at `grid` (1, H, W, 2), where -1 and 1 are the image's edges."""
    image = computable(img)
    count = prod(image.shape[:-3])
    stack = image.reshape(count, get_dimensions(img)[0], *image.shape[-2:])
    if fill is not None:  # one channel more tells how much of a pixel is covered
        stack = corefw.cat([stack, stack.new_ones((count, 1, *stack.shape[-2:]))], 1)
    places = grid.to(stack.dtype).expand(count, *grid.shape[1:])
    sampled = grid_sample(stack, places, mode.value, "zeros", align_corners=False)
    if fill is not None:
        covered, sampled = sampled[:, -1:], sampled[:, :-1]
        background = corefw.tensor(fill, dtype=stack.dtype, device=stack.device).view(1, -1, 1, 1)
        if mode is InterpolationMode.NEAREST:
            sampled = corefw.where(covered < 0.5, background, sampled)
        else:  # torchvision's blend: what was covered in part is darkened before the background is added
            sampled = sampled * covered + (1.0 - covered) * background
    return restored(sampled.reshape(*img.shape[:-2], *grid.shape[1:3]), img.dtype)


def _on_device(grid: np.ndarray, img: Tensor) -> Tensor:
    return corefw.from_numpy(np.ascontiguousarray(grid)[None]).to(img.device)


def _element_type(img: Tensor) -> type:
    return np.float64 if img.dtype == corefw.float64 else np.float32


def warped_size(matrix: np.ndarray, width: int, height: int) -> tuple[int, int]:
    """The width and height that hold a mapped image whole; tolerant of rounding in sines and cosines.

    A quarter turn exchanges width and height, where torchvision's may be a pixel larger for its float32 sines.
    """
    half = np.array([width, height]) * 0.5
    corners = half * np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) @ matrix[:, :2].T + matrix[:, 2] + half
    across, down = np.ceil(corners.max(0).round(4)) - np.floor(corners.min(0).round(4))
    return int(across), int(down)


def affine(img: Tensor, matrix: Sequence[float], mode: InterpolationMode, fill: _Fill, expand: bool = False) -> Tensor:
    """`img` mapped: `matrix` (a, b, c, d, e, f) leads from the new pixels to the old ones, both from the middle."""
    background = _checked_fill(img, mode, fill)
    _, height, width = get_dimensions(img)
    exact = np.array(matrix, np.float64).reshape(2, 3)
    new_width, new_height = warped_size(exact, width, height) if expand else (width, height)
    theta: np.ndarray = exact.astype(_element_type(img))
    x = (np.arange(new_width) - 0.5 * (new_width - 1)).astype(theta.dtype)[None, :, None]
    y = (np.arange(new_height) - 0.5 * (new_height - 1)).astype(theta.dtype)[:, None, None]
    scaled = theta / (0.5 * np.array([[width], [height]], theta.dtype))
    return _sampled(img, _on_device(x * scaled[:, 0] + y * scaled[:, 1] + scaled[:, 2], img), mode, background)


def perspective(img: Tensor, coefficients: Sequence[float], mode: InterpolationMode, fill: _Fill) -> Tensor:
    """`img` mapped: x comes from (a x + b y + c) / (g x + h y + 1), y from (d x + e y + f) / (g x + h y + 1)."""
    background = _checked_fill(img, mode, fill)
    _, height, width = get_dimensions(img)
    theta: np.ndarray = np.array(coefficients, _element_type(img))
    x = (np.arange(width, dtype=theta.dtype) + 0.5)[None, :, None]
    y = (np.arange(height, dtype=theta.dtype) + 0.5)[:, None, None]
    above = theta[:6].reshape(2, 3) / (0.5 * np.array([[width], [height]], theta.dtype))
    below = x * theta[6] + y * theta[7] + 1
    grid = (x * above[:, 0] + y * above[:, 1] + above[:, 2]) / below - 1
    return _sampled(img, _on_device(grid, img), mode, background)


def elastic_transform(img: Tensor, displacement: Tensor, mode: InterpolationMode, fill: _Fill) -> Tensor:
    """`img` with each pixel from where `displacement` (1, H, W, 2) says, in halves of the image's edges."""
    background = _checked_fill(img, mode, fill)
    _, height, width = get_dimensions(img)
    rows, columns = (
        corefw.linspace((1 - size) / size, (size - 1) / size, size, device=img.device) for size in (height, width)
    )
    identity = corefw.stack([columns.expand(height, width), rows[:, None].expand(height, width)], -1)
    return _sampled(img, identity[None] + displacement.to(img.device), mode, background)
