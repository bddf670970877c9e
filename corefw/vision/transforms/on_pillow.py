"""Transforms of Pillow images: the same names as for tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from corefw.vision.pillow import image_from_array, pillow
from corefw.vision.transforms.modes import PILLOW_NUMBERS, InterpolationMode


def get_dimensions(img: Any) -> list[int]:
    """Channels, height and width."""
    return [len(img.getbands()), img.height, img.width]


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    return img.transpose(pillow().Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    return img.transpose(pillow().Transpose.FLIP_TOP_BOTTOM)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The pixels of a rectangle; what lies outside of the image is 0."""
    return img.crop((left, top, left + width, top + height))


def _colour(fill: float | Sequence[float] | None, img: Any) -> Any:
    """`fill` as Pillow wants it: a number for one channel, else a tuple."""
    channels = len(img.getbands())
    values = [fill or 0] if isinstance(fill, int | float | None) else list(fill)
    if len(values) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    numbers = values if img.mode == "F" else [int(value) for value in values]
    return tuple(numbers * (channels // len(numbers))) if channels > 1 else numbers[0]


def pad(img: Any, borders: Sequence[int], fill: float | Sequence[float], padding_mode: str) -> Any:
    """A frame around the image; `borders` are left, top, right and bottom, and a negative one cuts off."""
    palette = img.getpalette() if img.mode == "P" else None
    if padding_mode == "constant":
        framed = pillow("ImageOps").expand(img, border=tuple(borders), fill=_colour(fill, img))
    else:
        left, top, right, bottom = (max(-border, 0) for border in borders)
        img = img.crop((left, top, img.width - right, img.height - bottom)) if min(borders) < 0 else img
        left, top, right, bottom = (max(border, 0) for border in borders)
        pixels = np.asarray(img)
        frame = ((top, bottom), (left, right), (0, 0))[: pixels.ndim]
        framed = image_from_array(np.pad(pixels, frame, mode=padding_mode))  # type: ignore[call-overload]
    if palette is not None:
        framed.putpalette(palette)
    return framed


def resize(img: Any, size: Sequence[int], mode: InterpolationMode, antialias: bool | None) -> Any:
    """`img` with other numbers of rows and columns; Pillow always smooths what it shrinks."""
    if antialias is False:
        warnings.warn(
            "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.", stacklevel=4
        )
    return img.resize((size[1], size[0]), PILLOW_NUMBERS[mode])


def rotate(
    img: Any,
    angle: float,
    mode: InterpolationMode,
    expand: bool,
    center: Sequence[float] | None,
    fill: float | Sequence[float] | None,
) -> Any:
    """`img` rotated counter-clockwise by `angle` degrees about `center` (x, y), its middle if missing."""
    return img.rotate(angle, PILLOW_NUMBERS[mode], expand, center, fillcolor=_colour(fill, img))


def affine(img: Any, matrix: Sequence[float], mode: InterpolationMode, fill: float | Sequence[float] | None) -> Any:
    """`img` mapped: `matrix` (a, b, c, d, e, f) leads from the new pixels to the old ones."""
    kind = pillow().Transform.AFFINE
    return img.transform(img.size, kind, tuple(matrix), PILLOW_NUMBERS[mode], fillcolor=_colour(fill, img))


def perspective(
    img: Any, coefficients: Sequence[float], mode: InterpolationMode, fill: float | Sequence[float] | None
) -> Any:
    """`img` mapped: x comes from (a x + b y + c) / (g x + h y + 1), y from (d x + e y + f) / (g x + h y + 1)."""
    kind = pillow().Transform.PERSPECTIVE
    return img.transform(img.size, kind, tuple(coefficients), PILLOW_NUMBERS[mode], fillcolor=_colour(fill, img))


def rgb_to_grayscale(img: Any, num_output_channels: int) -> Any:
    """The luma of the ITU-R 601-2 transform, in one channel or three."""
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    grey = img.convert("L")
    return grey if num_output_channels == 1 else pillow().merge("RGB", (grey,) * 3)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Blended with black."""
    return pillow("ImageEnhance").Brightness(img).enhance(brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Blended with the mean of its luma."""
    return pillow("ImageEnhance").Contrast(img).enhance(contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Blended with its luma."""
    return pillow("ImageEnhance").Color(img).enhance(saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """The hue turned by `hue_factor` turns."""
    if img.mode in ("L", "1", "I", "F"):
        return img
    pixels = np.array(img.convert("HSV"))
    pixels[..., 0] += np.uint8(int(hue_factor * 255) % 256)  # the hue's 256 values are a circle
    return image_from_array(pixels, "HSV").convert(img.mode)


def adjust_gamma(img: Any, gamma: float, gain: float) -> Any:
    """``gain * img ** gamma``, with full brightness as 1."""
    table = [int((255 + 1 - 1e-3) * gain * (value / 255.0) ** gamma) for value in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Blended with a smoothed image."""
    return pillow("ImageEnhance").Sharpness(img).enhance(sharpness_factor)


def invert(img: Any) -> Any:
    """Bright and dark exchanged."""
    return pillow("ImageOps").invert(img)


def posterize(img: Any, bits: int) -> Any:
    """The highest `bits` bits of each value."""
    return pillow("ImageOps").posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Bright and dark exchanged from `threshold` on."""
    return pillow("ImageOps").solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """The values of each channel stretched from 0 to full brightness."""
    return pillow("ImageOps").autocontrast(img)


def equalize(img: Any) -> Any:
    """Each channel's values mapped so that all are about as frequent."""
    return pillow("ImageOps").equalize(img)
