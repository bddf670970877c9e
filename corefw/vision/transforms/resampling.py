"""Tensor images with other numbers of rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.values import computable, get_dimensions, restored


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys' convolution kernel (R. Keys, Cubic convolution interpolation for digital image processing, 1981)."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


@lru_cache(maxsize=64)
def _resampling(old: int, new: int, cubic: bool, antialias: bool) -> np.ndarray:
    """The matrix (new, old) that resamples one dimension."""
    scale = old / new
    centres = scale * (np.arange(new) + 0.5)[:, None]  # of the new pixels, in old pixels
    if antialias:
        distances = (np.arange(old) + 0.5 - centres) / max(scale, 1)
        weights = _cubic(distances, -0.5) if cubic else _triangle(distances)
        return weights / weights.sum(1, keepdims=True)
    sources = centres - 0.5
    if not cubic:
        sources = sources.clip(0)
    taps = np.floor(sources).astype(int) + (np.arange(-1, 3) if cubic else np.arange(2))
    values = _cubic(sources - taps, -0.75) if cubic else _triangle(sources - taps)
    weights = np.zeros((new, old))
    np.add.at(weights, (np.arange(new)[:, None], taps.clip(0, old - 1)), values)
    return weights


@lru_cache(maxsize=64)
def _whole_resampling(old: int, new: int, cubic: bool, antialias: bool) -> tuple[np.ndarray, int]:
    """The matrix of `_resampling` as whole numbers of 16 bits, and how many of the bits are a fraction's."""
    weights = _resampling(old, new, cubic, antialias)
    largest, bits = weights.max(), 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    return np.trunc(scaled + np.copysign(0.5, scaled)), bits


def _resized_bytes(img: Tensor, size: Sequence[int], cubic: bool, antialias: bool) -> Tensor:
    """A uint8 image resampled as Pillow does: weights of fixed point, and uint8 again between columns and rows."""
    for axis in (-1, -2):
        old, new = img.shape[axis], size[axis]
        if old == new:
            continue
        whole, bits = _whole_resampling(old, new, cubic, antialias)
        weights = corefw.from_numpy(whole).to(img.device)
        values = img.to(corefw.float64)  # which holds every sum exactly
        sums = values @ weights.transpose(0, 1) if axis == -1 else weights @ values
        img = ((sums + (1 << (bits - 1))) / (1 << bits)).floor().clamp(0, 255).to(corefw.uint8)
    return img


def resize(img: Tensor, size: Sequence[int], mode: InterpolationMode, antialias: bool | None) -> Tensor:
    """`img` with other numbers of rows and columns."""
    old, (height, width) = get_dimensions(img)[1:], size
    if mode in (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT):
        offset = 0.5 if mode is InterpolationMode.NEAREST_EXACT else 0.0
        rows, columns = (
            corefw.from_numpy(np.minimum((np.arange(n) + offset) * o // n, o - 1).astype(np.int64)).to(img.device)
            for n, o in ((height, old[0]), (width, old[1]))
        )
        return img.index_select(-2, rows).index_select(-1, columns)
    if mode not in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")
    cubic = mode is InterpolationMode.BICUBIC
    if img.dtype == corefw.uint8:
        return _resized_bytes(img, size, cubic, bool(antialias))
    image = computable(img)
    down, across = (
        corefw.from_numpy(_resampling(o, n, cubic, bool(antialias))).to(image.device, image.dtype)
        for n, o in ((height, old[0]), (width, old[1]))
    )
    return restored(down @ (image @ across.transpose(0, 1)), img.dtype)
