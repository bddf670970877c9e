"""Transforms as functions, of Pillow images and of tensors, in the form of `torchvision.transforms.functional`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.pillow import image_from_array, is_pillow_image, tensor_from_array
from corefw.vision.transforms import on_boxes, on_masks, on_pillow, on_points, on_tensors
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode
from corefw.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask

_SHORT_MODE = "I;16" if sys.byteorder == "little" else "I;16B"
#: the element types of Pillow's modes other than uint8
_MODE_TYPES = {"I": np.int32, _SHORT_MODE: np.int16, "F": np.float32}
#: what an image of these channels may mean; the first is meant if nothing is said
_CHANNEL_MODES = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
_SINGLE_MODES = {np.uint8: "L", np.int16: _SHORT_MODE, np.int32: "I", np.float32: "F"}
#: what transforms tensors that are no images
_KINDS = {BoundingBoxes: on_boxes, KeyPoints: on_points, Mask: on_masks}
_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def _kind(img: Any) -> Any:
    """The module that transforms images of this kind."""
    if isinstance(img, Tensor):
        return _KINDS.get(type(img), on_tensors)
    if is_pillow_image(img):
        return on_pillow
    raise TypeError(f"img should be PIL Image or Tensor. Got {type(img)}")


def _tensor_image(img: Any) -> Tensor:
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    return img


def _pair(size: Any) -> tuple[int, int]:
    """Height and width of a size that is a number, a sequence of one, or one of two."""
    if isinstance(size, int | float):
        return int(size), int(size)
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return tuple(size)


def get_dimensions(img: Any) -> list[int]:
    """Channels, height and width of an image.

    >>> import corefw as torch
    >>> get_dimensions(torch.zeros(3, 4, 5))
    [3, 4, 5]
    """
    return _kind(img).get_dimensions(img)


def get_image_size(img: Any) -> list[int]:
    """Width and height of an image."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """The number of an image's channels."""
    return get_dimensions(img)[0]


def to_tensor(pic: Any) -> Tensor:
    """A tensor (C, H, W) of a Pillow image or of an array (H, W, C) or (H, W); bytes become numbers from 0 to 1.

    >>> to_tensor(np.array([[0, 255]], np.uint8))
    tensor([[[0., 1.]]])
    """
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        pixels = pic
    elif is_pillow_image(pic):
        pixels = np.array(pic, _MODE_TYPES.get(pic.mode, np.uint8))
        if pic.mode == "1":
            pixels *= 255
    else:
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    image = tensor_from_array(pixels)
    return image.to(corefw.get_default_dtype()).div(255) if image.dtype == corefw.uint8 else image


def pil_to_tensor(pic: Any) -> Tensor:
    """A tensor (C, H, W) of a Pillow image, with the same numbers."""
    if not is_pillow_image(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return tensor_from_array(np.array(pic))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A Pillow image of a tensor (C, H, W) or an array (H, W, C), or of either without channels.

    Args:
        pic: 1 to 4 channels; floating-point numbers are multiplied by 255 unless `mode` is "F".
        mode: the meaning of the channels; "L", "LA", "RGB" or "RGBA" if missing, and for one channel of other
            numbers than bytes "I", "I;16" or "F".

    >>> import corefw as torch
    >>> to_pil_image(torch.ones(3, 4, 5)).getpixel((0, 0))
    (255, 255, 255)
    """
    if isinstance(pic, Tensor):
        pixels = pic.detach().cpu().numpy()
        pixels = pixels.transpose(1, 2, 0) if pixels.ndim == 3 else pixels
    elif isinstance(pic, np.ndarray):
        pixels = pic
    else:
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pixels.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pixels.ndim} dimensions.")
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    channels = pixels.shape[2]
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if np.issubdtype(pixels.dtype, np.floating) and mode != "F":
        pixels = (pixels * 255).astype(np.int64).astype(np.uint8)  # what lies outside wraps round on every machine
    if channels == 1:
        only = _SINGLE_MODES.get(pixels.dtype.type)
        if mode is not None and mode != only:
            raise ValueError(f"Incorrect mode ({mode}) supplied for input type {pixels.dtype}. Should be {only}")
        mode, pixels = only, pixels[:, :, 0]
    else:
        allowed = _CHANNEL_MODES[channels]
        if mode is not None and mode not in allowed:
            raise ValueError(f"Only modes {list(allowed)} are supported for {channels}D inputs")
        if pixels.dtype != np.uint8:
            mode = None
        elif mode is None:
            mode = allowed[0]
    if mode is None:
        raise TypeError(f"Input type {pixels.dtype} is not supported")
    return image_from_array(pixels, mode)


def convert_image_dtype(image: Tensor, dtype: corefw.dtype = corefw.float32) -> Tensor:
    """A tensor image in another dtype: full brightness is the largest integer, or 1 of floating-point numbers.

    >>> import corefw as torch
    >>> convert_image_dtype(torch.tensor([[0, 255]], dtype=torch.uint8))
    tensor([[0., 1.]])
    """
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    return on_tensors.convert_image_dtype(image, dtype)


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """``(tensor - mean) / std`` for each channel of a tensor (..., C, H, W) of floating-point numbers."""
    return on_tensors.normalize(_tensor_image(tensor), mean, std, inplace)


def _resized(height: int, width: int, size: Any, max_size: int | None) -> tuple[int, int]:
    """The height and width that `resize` makes."""
    if size is None:
        if max_size is None:
            raise ValueError("max_size must be an integer when size is None, but got max_size=None")
        edge = max_size / max(height, width)
        return (max_size, int(width * edge)) if height >= width else (int(height * edge), max_size)
    wanted = [size] if isinstance(size, int) else list(size)
    if len(wanted) not in (1, 2):
        raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not a {len(wanted)} element tuple/list")
    if len(wanted) == 2:
        if max_size is not None:
            raise ValueError("max_size should only be passed if size specifies the length of the smaller edge")
        return wanted[0], wanted[1]
    short, long = sorted((height, width))
    new_short, new_long = wanted[0], int(wanted[0] * long / short)
    if max_size is not None:
        if max_size <= new_short:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested "
                f"size for the smaller edge size = {size}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)


def resize(
    img: Any,
    size: int | Sequence[int] | None,
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """An image with other numbers of rows and columns.

    Args:
        img: Pillow image or tensor (..., H, W).
        size: (height, width), the length of the smaller edge, or None if `max_size` says all.
        interpolation: for tensors nearest, nearest-exact, bilinear or bicubic.
        max_size: the larger edge's length, at most if `size` is a number.
        antialias: smooth a tensor that becomes smaller; Pillow always does.

    >>> import corefw as torch
    >>> resize(torch.zeros(3, 10, 20), 5).shape
    torch.Size([3, 5, 10])
    """
    mode = interpolation_mode(interpolation)
    _, height, width = get_dimensions(img)
    new = _resized(height, width, size, max_size)
    return img if new == (height, width) else _kind(img).resize(img, new, mode, antialias)


def _four_sides(padding: int | Sequence[int]) -> list[int]:
    """The width of a frame at the left, top, right and bottom."""
    sides = [padding] if isinstance(padding, int) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(sides)} element tuple")
    return sides * (4 // len(sides))


def pad(
    img: Any,
    padding: int | Sequence[int],
    fill: float | Sequence[float] | None = 0,
    padding_mode: str = "constant",
) -> Any:
    """An image with a frame.

    Args:
        img: Pillow image or tensor (..., H, W).
        padding: the width of the frame: one for all sides, two for left and right and for top and bottom, or four for
            left, top, right and bottom.
        fill: the constant, for Pillow images one of each channel if need be.
        padding_mode: "constant", "edge" repeats the outermost pixel, "reflect" mirrors the image without it,
            "symmetric" with it.
    """
    if not isinstance(padding, int | list | tuple):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(fill, int | float | list | tuple | None):
        raise TypeError("Got inappropriate fill arg")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    sides = _four_sides(padding)
    if padding_mode not in _PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    return _kind(img).pad(img, sides, 0 if fill is None else fill, padding_mode)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The rectangle of an image with its upper left corner at (top, left); what lies outside of the image is 0."""
    return _kind(img).crop(img, top, left, height, width)


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """The middle of an image; an image that is smaller gets a frame of 0.

    >>> import corefw as torch
    >>> center_crop(torch.arange(9).reshape(1, 3, 3), 1)
    tensor([[[4]]])
    """
    height, width = _pair(output_size)
    _, rows, columns = get_dimensions(img)
    if height > rows or width > columns:
        across, down = max(width - columns, 0), max(height - rows, 0)
        img = pad(img, [across // 2, down // 2, (across + 1) // 2, (down + 1) // 2])
        _, rows, columns = get_dimensions(img)
    return crop(img, round((rows - height) / 2), round((columns - width) / 2), height, width)


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: int | Sequence[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool | None = True,
) -> Any:  # fmt: skip
    """A rectangle of an image, resized."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def five_crop(img: Any, size: int | Sequence[int]) -> tuple[Any, Any, Any, Any, Any]:
    """The upper left, upper right, lower left and lower right corner of an image, and its middle.

    >>> import corefw as torch
    >>> [int(part) for part in five_crop(torch.arange(9).reshape(1, 3, 3), 1)]
    [0, 2, 6, 8, 4]
    """
    height, width = _pair(size)
    _, rows, columns = get_dimensions(img)
    if height > rows or width > columns:
        raise ValueError(f"Requested crop size {(height, width)} is bigger than input size {(rows, columns)}")
    corners = [(top, left) for top in (0, rows - height) for left in (0, columns - width)]
    return (*(crop(img, *corner, height, width) for corner in corners), center_crop(img, (height, width)))


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    """What `five_crop` gives of an image, and of the image with left and right (top and bottom) exchanged."""
    size = _pair(size)
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


def hflip(img: Any) -> Any:
    """An image with left and right exchanged."""
    return _kind(img).hflip(img)


def vflip(img: Any) -> Any:
    """An image with top and bottom exchanged."""
    return _kind(img).vflip(img)


def rotate(
    img: Any,
    angle: float,
    interpolation: InterpolationMode = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: float | Sequence[float] | None = None,
) -> Any:
    """An image rotated counter-clockwise.

    Args:
        img: Pillow image or tensor (..., H, W).
        angle: in degrees.
        interpolation: for tensors nearest or bilinear.
        expand: make the image large enough to hold all of the rotated one.
        center: what it is rotated about, (x, y) from the upper left corner; the middle if missing.
        fill: the value outside of the old image, 0 if missing.

    >>> import corefw as torch
    >>> rotate(torch.tensor([[[1, 2], [3, 4]]]), 90)
    tensor([[[2, 4],
             [1, 3]]])
    """
    mode = interpolation_mode(interpolation)
    if not isinstance(angle, int | float):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, list | tuple):
        raise TypeError("Argument center should be a sequence")
    if is_pillow_image(img):
        return on_pillow.rotate(img, angle, mode, expand, center, fill)
    matrix = _inverse_affine_matrix(_from_middle(img, center), -angle, (0.0, 0.0), 1.0, (0.0, 0.0))
    return _kind(img).affine(img, matrix, mode, fill, expand)


def _from_middle(img: Any, center: Sequence[float] | None) -> tuple[float, float]:
    """A point (x, y) of an image, the middle if missing, as seen from the middle."""
    _, height, width = get_dimensions(img)
    return (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)


def _inverse_affine_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """The inverse of moving by `translate`, and turning, shearing and enlarging about `center`: T C R S C^-1.

    With the angle r and the shears x and y, R S is ``scale / cos y`` times
    ``[[cos(r - y), -cos(r - y) tan x - sin r cos y], [sin(r - y), -sin(r - y) tan x + cos r cos y]]``.
    """
    turn, shear_x, shear_y = (math.radians(degrees) for degrees in (angle, *shear))
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    x, y = -center[0] - translate[0], -center[1] - translate[1]
    (a, b), (c, d) = (d / scale, -b / scale), (-c / scale, a / scale)  # the determinant of R S is the scale's square
    return [a, b, a * x + b * y + center[0], c, d, c * x + d * y + center[1]]


def affine(
    img: Any, angle: float, translate: Sequence[float], scale: float, shear: float | Sequence[float],
    interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: float | Sequence[float] | None = None,
    center: Sequence[float] | None = None,
) -> Any:  # fmt: skip
    """An image sheared, enlarged, rotated and moved.

    Args:
        img: Pillow image or tensor (..., H, W).
        angle: in degrees, clockwise.
        translate: pixels to the right and down.
        scale: how much larger.
        shear: degrees along x, or along x and y.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image, 0 if missing.
        center: what stays in its place but for `translate`, (x, y) from the upper left corner; the middle if missing.

    >>> import corefw as torch
    >>> affine(torch.tensor([[[1, 2, 3]]]), 0, (1, 0), 1.0, 0.0)
    tensor([[[0, 1, 2]]])
    """
    mode = interpolation_mode(interpolation)
    if not isinstance(angle, int | float):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, list | tuple):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, int | float | list | tuple):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    shears = (shear, 0.0) if isinstance(shear, int | float) else tuple(shear) * (2 if len(shear) == 1 else 1)
    if len(shears) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    if center is not None and not isinstance(center, list | tuple):
        raise TypeError("Argument center should be a sequence")
    if is_pillow_image(img):
        around = (img.width * 0.5, img.height * 0.5) if center is None else center
    else:
        around = _from_middle(img, center)
    matrix = _inverse_affine_matrix(around, float(angle), translate, scale, shears)
    return _kind(img).affine(img, matrix, mode, fill)


def _perspective_coefficients(startpoints: Sequence[Sequence[int]], endpoints: Sequence[Sequence[int]]) -> list[float]:
    """The eight numbers of the map from new pixels to old ones that leads each end point to its start point."""
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"Please provide exactly four corners, got {len(startpoints)} startpoints and {len(endpoints)} endpoints."
        )
    equations = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        equations += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    solution = np.linalg.lstsq(np.array(equations, np.float64), np.array(startpoints, np.float64).ravel(), rcond=None)
    return solution[0].astype(np.float32).tolist()


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    fill: float | Sequence[float] | None = None,
) -> Any:
    """An image seen from another side.

    Args:
        img: Pillow image or tensor (..., H, W).
        startpoints: four points (x, y), such as the image's corners.
        endpoints: where these come to lie.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image, 0 if missing.
    """
    mode = interpolation_mode(interpolation)
    return _kind(img).perspective(img, _perspective_coefficients(startpoints, endpoints), mode, fill)


def _by_tensor(img: Any, transform: Any) -> Any:
    """`transform`, which knows tensors alone, of a tensor or a Pillow image."""
    if is_pillow_image(img):
        return to_pil_image(transform(pil_to_tensor(img)), img.mode)
    _kind(img)
    return transform(img)


def gaussian_blur(img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> Any:
    """An image smoothed by a Gaussian function, mirrored at its edges.

    Args:
        img: Pillow image or tensor (..., H, W).
        kernel_size: columns and rows of the function, odd.
        sigma: its standard deviations across and down; ``0.15 * kernel_size + 0.35`` if missing.
    """
    if not isinstance(kernel_size, int | list | tuple):
        raise TypeError(f"kernel_size should be int or a sequence of integers. Got {type(kernel_size)}")
    sizes = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
    sizes *= 2 if len(sizes) == 1 else 1
    if len(sizes) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(sizes)}")
    if any(size % 2 == 0 or size < 0 for size in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    if not isinstance(sigma, int | float | list | tuple | None):
        raise TypeError(f"sigma should be either float or sequence of floats. Got {type(sigma)}")
    if sigma is None:
        sigmas: tuple[float, ...] = tuple(size * 0.15 + 0.35 for size in sizes)
    else:
        sigmas = (sigma,) if isinstance(sigma, int | float) else tuple(sigma)
    sigmas *= 2 if len(sigmas) == 1 else 1
    if len(sigmas) != 2:
        raise ValueError(f"If sigma is a sequence, its length should be 2. Got {len(sigmas)}")
    if min(sigmas) <= 0:
        raise ValueError(f"sigma should have positive values. Got {sigmas}")
    return _by_tensor(img, lambda image: on_tensors.gaussian_blur(image, sizes, sigmas))


def elastic_transform(
    img: Any,
    displacement: Tensor,
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    fill: float | Sequence[float] | None = None,
) -> Any:
    """An image bent as if drawn on rubber.

    Args:
        img: Pillow image or tensor (..., H, W).
        displacement: how far to the right and down each pixel's value is fetched from, in halves of the image's width
            and height, of shape (1, H, W, 2).
        interpolation: nearest or bilinear.
        fill: the value outside of the old image, 0 if missing.
    """
    mode = interpolation_mode(interpolation)
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    wanted = (1, *get_dimensions(img)[1:], 2)
    if tuple(displacement.shape) != wanted:
        raise ValueError(f"Argument displacement shape should be {wanted}, but given {tuple(displacement.shape)}")
    return _by_tensor(img, lambda image: _kind(image).elastic_transform(image, displacement, mode, fill))


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """An image's luma, in one channel or the same in three."""
    return _kind(img).rgb_to_grayscale(img, num_output_channels)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """A Pillow image's luma, in one channel or the same in three."""
    if not is_pillow_image(img):
        raise TypeError("Input should be PIL Image")
    return on_pillow.rgb_to_grayscale(img, num_output_channels)


def _not_negative(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """An image made brighter: factor 0 gives black, 1 the image, 2 twice its values."""
    _not_negative("brightness_factor", brightness_factor)
    return _kind(img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """An image with more contrast: factor 0 gives an even grey, 1 the image."""
    _not_negative("contrast_factor", contrast_factor)
    return _kind(img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """An image with stronger colours: factor 0 gives a grey image, 1 the image."""
    _not_negative("saturation_factor", saturation_factor)
    return _kind(img).adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """An image with its hues turned by `hue_factor` turns of the colour circle, from -0.5 to 0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return _kind(img).adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """``gain * img ** gamma``, with full brightness as 1: `gamma` above 1 makes the shadows darker."""
    _not_negative("Gamma", gamma)
    return _kind(img).adjust_gamma(img, gamma, gain)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """A sharper image: factor 0 gives a smoothed one, 1 the image, 2 twice its differences from the smoothed one."""
    _not_negative("sharpness_factor", sharpness_factor)
    return _kind(img).adjust_sharpness(img, sharpness_factor)


def invert(img: Any) -> Any:
    """An image with bright and dark exchanged.

    >>> import corefw as torch
    >>> invert(torch.tensor([[[0, 255]]], dtype=torch.uint8))
    tensor([[[255,   0]]], dtype=torch.uint8)
    """
    return _kind(img).invert(img)


def posterize(img: Any, bits: int) -> Any:
    """An image of bytes with the highest `bits` bits, 0 to 8, of each value alone."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    return _kind(img).posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """An image whose values from `threshold` on are inverted."""
    return _kind(img).solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """An image whose darkest value becomes 0 and whose brightest becomes full brightness, in each channel."""
    return _kind(img).autocontrast(img)


def equalize(img: Any) -> Any:
    """An image of bytes whose values are spread so that all are about as frequent, in each channel."""
    return _kind(img).equalize(img)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """A tensor image with `v` in the rectangle of `h` rows and `w` columns from row `i`, column `j`."""
    return on_tensors.erase(_tensor_image(img), i, j, h, w, v, inplace)
