"""Transforms of tensor images, of shape (..., channels, height, width); a tensor (height, width) has one channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.transforms.modes import InterpolationMode

#: the largest value of an image of integers; that of floating-point numbers is 1
_WHITE = {
    corefw.uint8: 255,
    corefw.int8: 127,
    corefw.int16: 32767,
    corefw.uint16: 65535,
    corefw.int32: 2**31 - 1,
    corefw.int64: 2**63 - 1,
}
_COMPUTED = (corefw.float32, corefw.float64)


def white(dtype: corefw.dtype) -> int:
    """The value of full brightness."""
    return _WHITE.get(dtype, 1)


def get_dimensions(img: Tensor) -> list[int]:
    """Channels, height and width."""
    if img.ndim < 2:
        raise TypeError("Tensor is not a torch image.")
    return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]


def _colours(img: Tensor) -> int:
    channels = get_dimensions(img)[0]
    if channels not in (1, 3):
        raise TypeError(f"Input image tensor permitted channel values are [1, 3], but found {channels}")
    return channels


def _computable(img: Tensor) -> Tensor:
    return img if img.dtype in _COMPUTED else img.to(corefw.float32)


def _restored(img: Tensor, dtype: corefw.dtype) -> Tensor:
    if img.dtype == dtype:
        return img
    return (img if dtype.is_floating_point else img.round()).to(dtype)


def convert_image_dtype(image: Tensor, dtype: corefw.dtype) -> Tensor:
    """`image` in another dtype, full brightness staying full brightness."""
    if image.dtype == dtype:
        return image
    top, old_top = white(dtype), white(image.dtype)
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        if dtype == corefw.int64 or (dtype == corefw.int32 and image.dtype != corefw.float64):
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely.")
        return (image * (top + 1.0 - 1e-3)).to(dtype)  # so that each integer stands for an equal part of 0 to 1
    if dtype.is_floating_point:
        return image.to(dtype) / old_top
    if old_top > top:
        return corefw.div(image, (old_top + 1) // (top + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((top + 1) // (old_top + 1))


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool) -> Tensor:
    """``(tensor - mean) / std`` for each channel."""
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    shift, scale = (corefw.as_tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (mean, std))
    if bool((scale == 0).any()):
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    shift, scale = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (shift, scale))
    return tensor.sub_(shift).div_(scale) if inplace else (tensor - shift) / scale


def hflip(img: Tensor) -> Tensor:
    """Left and right exchanged."""
    get_dimensions(img)
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    get_dimensions(img)
    return img.flip(-2)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The pixels of a rectangle; what lies outside of the image is 0."""
    _, rows, columns = get_dimensions(img)
    bottom, right = top + height, left + width
    inside = img[..., max(top, 0) : max(min(bottom, rows), 0), max(left, 0) : max(min(right, columns), 0)]
    if inside.shape[-2:] == (height, width):
        return inside
    framed = img.new_zeros((*img.shape[:-2], height, width))
    if inside.numel():
        y, x = max(-top, 0), max(-left, 0)
        framed[..., y : y + inside.shape[-2], x : x + inside.shape[-1]] = inside
    return framed


def pad(img: Tensor, borders: Sequence[int], fill: float | Sequence[float], padding_mode: str) -> Tensor:
    """A frame around the image; `borders` are left, top, right and bottom, and a negative one cuts off."""
    _, height, width = get_dimensions(img)
    left, top, right, bottom = borders
    if min(borders) < 0:
        kept = [max(-border, 0) for border in borders]
        img = crop(img, kept[1], kept[0], height - kept[1] - kept[3], width - kept[0] - kept[2])
        return pad(img, [max(border, 0) for border in borders], fill, padding_mode)
    if padding_mode == "constant":
        if not isinstance(fill, int | float):
            raise TypeError("Got inappropriate fill arg")
        framed = img.new_full((*img.shape[:-2], height + top + bottom, width + left + right), fill)
        framed[..., top : top + height, left : left + width] = img
        return framed
    mode = padding_mode  # by NumPy's name
    rows, columns = (
        corefw.from_numpy(np.pad(np.arange(size), border, mode=mode)).to(img.device)  # type: ignore[call-overload]
        for size, border in ((height, (top, bottom)), (width, (left, right)))
    )
    return img.index_select(-2, rows).index_select(-1, columns)


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
    image = _computable(img)
    down, across = (
        corefw.from_numpy(_resampling(o, n, cubic, bool(antialias))).to(image.device, image.dtype)
        for n, o in ((height, old[0]), (width, old[1]))
    )
    resized = down @ (image @ across.transpose(0, 1))
    if cubic and img.dtype == corefw.uint8:
        resized = resized.clamp(0, 255)
    return _restored(resized, img.dtype)


def _rotated_size(width: int, height: int, cos: float, sin: float, dx: float, dy: float) -> tuple[int, int]:
    """The width and height that hold a rotated image whole; tolerant of rounding in sines and cosines."""
    x = np.array([-0.5, -0.5, 0.5, 0.5]) * width
    y = np.array([-0.5, 0.5, 0.5, -0.5]) * height
    corners = np.stack([cos * x + sin * y + dx + 0.5 * width, -sin * x + cos * y + dy + 0.5 * height])
    rounded = corners.round(4)
    new = np.ceil(rounded.max(1)) - np.floor(rounded.min(1))
    return int(new[0]), int(new[1])


def rotate(
    img: Tensor,
    angle: float,
    mode: InterpolationMode,
    expand: bool,
    center: Sequence[float] | None,
    fill: float | Sequence[float] | None,
) -> Tensor:
    """`img` rotated counter-clockwise by `angle` degrees about `center` (x, y), its middle if missing."""
    if mode not in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR):
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")
    channels, height, width = get_dimensions(img)
    values = [fill or 0.0] if isinstance(fill, int | float | None) else [float(v) for v in fill]
    if len(values) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    cx, cy = (0.0, 0.0) if center is None else (center[0] - 0.5 * width, center[1] - 0.5 * height)
    dx, dy = cx - cos * cx + sin * cy, cy - sin * cx - cos * cy  # from the middle of the image
    new_width, new_height = _rotated_size(width, height, cos, -sin, dx, dy) if expand else (width, height)
    x = (np.arange(new_width) - 0.5 * (new_width - 1))[None, :]
    y = (np.arange(new_height) - 0.5 * (new_height - 1))[:, None]
    # where each new pixel comes from: columns and rows of the old image
    columns = cos * x - sin * y + dx + 0.5 * (width - 1)
    rows = sin * x + cos * y + dy + 0.5 * (height - 1)
    image = _computable(img)
    background = corefw.tensor(values, dtype=image.dtype, device=image.device)
    background = background.view(-1, 1, 1) if img.ndim > 2 else background
    if mode is InterpolationMode.NEAREST:
        picked, inside = _picked(image, np.rint(rows.round(6)), np.rint(columns.round(6)))  # noise decides no tie
        return _restored(corefw.where(inside, picked, background), img.dtype)
    top, left = np.floor(rows), np.floor(columns)
    total = covered = image.new_zeros(())
    for i in (0, 1):
        for j in (0, 1):
            weight = (1 - np.abs(rows - (top + i))) * (1 - np.abs(columns - (left + j)))
            picked, inside = _picked(image, top + i, left + j)
            share = corefw.from_numpy(weight).to(image.device, image.dtype) * inside
            total, covered = total + picked * share, covered + share
    if fill is not None:  # torchvision's blend: what was covered in part is darkened before the background is added
        total = total * covered + background * (1.0 - covered)
    return _restored(total, img.dtype)


def _picked(img: Tensor, rows: np.ndarray, columns: np.ndarray) -> tuple[Tensor, Tensor]:
    """The pixels at whole positions, and which of these lie inside of the image."""
    height, width = img.shape[-2:]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    y, x = rows.clip(0, height - 1).astype(np.int64), columns.clip(0, width - 1).astype(np.int64)
    y_index, x_index, mask = (corefw.from_numpy(v).to(img.device) for v in (y, x, inside))
    return img[..., y_index, x_index], mask


def rgb_to_grayscale(img: Tensor, num_output_channels: int) -> Tensor:
    """The luma of the ITU-R 601-2 transform: 0.2989 red + 0.587 green + 0.114 blue."""
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if _colours(img) == 3:
        red, green, blue = img.unbind(-3)
        luma = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    else:
        luma = img.clone()
    return luma.expand(*luma.shape[:-3], 3, *luma.shape[-2:]) if num_output_channels == 3 else luma


def _blend(img: Tensor, other: Tensor | float, ratio: float) -> Tensor:
    return (img * ratio + other * (1.0 - ratio)).clamp(0, white(img.dtype)).to(img.dtype)


def adjust_brightness(img: Tensor, brightness_factor: float) -> Tensor:
    """Blended with black."""
    _colours(img)
    return _blend(img, 0.0, brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: float) -> Tensor:
    """Blended with the mean of its luma."""
    luma = rgb_to_grayscale(img, 1) if _colours(img) == 3 else img
    mean = (luma if img.is_floating_point() else luma.to(corefw.float32)).mean(
        tuple(range(-min(luma.ndim, 3), 0)), keepdim=True
    )
    return _blend(img, mean, contrast_factor)


def adjust_saturation(img: Tensor, saturation_factor: float) -> Tensor:
    """Blended with its luma."""
    return img if _colours(img) == 1 else _blend(img, rgb_to_grayscale(img, 1), saturation_factor)


def adjust_hue(img: Tensor, hue_factor: float) -> Tensor:
    """The hue turned by `hue_factor` turns."""
    if _colours(img) == 1:
        return img
    hue, saturation, value = _hsv(convert_image_dtype(img, corefw.float32))
    turned = _rgb((hue + hue_factor) % 1.0, saturation, value)
    return convert_image_dtype(turned, img.dtype)


def _hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value, each from 0 to 1 (A. Smith, Color gamut transform pairs, 1978)."""
    red, green, blue = img.unbind(-3)
    value, low = img.amax(-3), img.amin(-3)
    chroma = value - low
    grey = chroma == 0
    divisor = corefw.where(grey, 1.0, chroma)
    sextant = corefw.where(
        value == red,
        (green - blue) / divisor,
        corefw.where(value == green, 2.0 + (blue - red) / divisor, 4.0 + (red - green) / divisor),
    )
    return (sextant / 6.0) % 1.0, chroma / corefw.where(grey, 1.0, value), value


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """The inverse of `_hsv`: each colour is ``value * (1 - saturation * clamp(min(k, 4 - k), 0, 1))`` with
    ``k = (n + 6 hue) mod 6`` and n = 5, 3, 1 for red, green and blue."""
    channels = []
    for n in (5.0, 3.0, 1.0):
        k = (n + hue * 6.0) % 6.0
        channels.append(value * (1.0 - saturation * corefw.minimum(k, 4.0 - k).clamp(0.0, 1.0)))
    return corefw.stack(channels, -3)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool) -> Tensor:
    """`v` in the rectangle of `h` rows from row `i` and `w` columns from column `j`."""
    get_dimensions(img)
    if not inplace:
        img = img.clone()
    img[..., i : i + h, j : j + w] = v
    return img
