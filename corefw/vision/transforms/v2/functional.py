"""Transforms as functions, of images, videos, masks and boxes, in the form of `torchvision.transforms.v2.functional`.

They are those of `transforms.functional`: what they do to a `TVTensor` is again one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision import io
from corefw.vision.pillow import is_pillow_image
from corefw.vision.transforms import functional as F
from corefw.vision.transforms import on_points
from corefw.vision.transforms.functional import get_image_size, pil_to_tensor, to_pil_image, to_tensor
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.on_boxes import clamped, converted
from corefw.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    TVTensor,
    bounding_box_format,
    wrap,
)

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "clamp_bounding_boxes",
    "clamp_keypoints",
    "convert_bounding_box_format",
    "convert_image_dtype",
    "crop",
    "elastic",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "gaussian_noise",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "get_num_channels",
    "get_num_frames",
    "get_size",
    "grayscale_to_rgb",
    "hflip",
    "horizontal_flip",
    "invert",
    "is_pure_tensor",
    "jpeg",
    "normalize",
    "pad",
    "permute_channels",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "sanitize_bounding_boxes",
    "sanitize_keypoints",
    "solarize",
    "ten_crop",
    "to_dtype",
    "to_grayscale",
    "to_image",
    "to_pil_image",
    "to_tensor",
    "uniform_temporal_subsample",
    "vertical_flip",
    "vflip",
]
_NO_PICTURES = (BoundingBoxes, KeyPoints, Mask)


def is_pure_tensor(inpt: Any) -> bool:
    """Whether `inpt` is a tensor that does not say what it is."""
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def kept(result: Any, like: Any) -> Any:
    """A result of what was done to `like`, or several, saying of itself what `like` does."""
    if isinstance(result, tuple):
        return tuple(kept(part, like) for part in result)
    return wrap(result, like=like) if is_pure_tensor(result) else result


def _of_everything(function: Callable) -> Callable:
    """A function of images as one that keeps what its input says of itself."""

    @wraps(function)
    def keeping(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        return kept(function(inpt, *args, **kwargs), inpt)

    keeping.__module__ = __name__
    return keeping


def _of_pictures(function: Callable) -> Callable:
    """Likewise, of a function that has no meaning for masks and boxes."""
    keeping = _of_everything(function)

    @wraps(function)
    def picturing(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(inpt, _NO_PICTURES):
            raise TypeError(f"{function.__name__}: a picture is expected, not a {type(inpt).__name__}")
        return keeping(inpt, *args, **kwargs)

    picturing.__module__ = __name__
    return picturing


affine = _of_everything(F.affine)
center_crop = _of_everything(F.center_crop)
crop = _of_everything(F.crop)
elastic_transform = elastic = _of_everything(F.elastic_transform)
hflip = horizontal_flip = _of_everything(F.hflip)
pad = _of_everything(F.pad)
perspective = _of_everything(F.perspective)
resize = _of_everything(F.resize)
resized_crop = _of_everything(F.resized_crop)
rotate = _of_everything(F.rotate)
vflip = vertical_flip = _of_everything(F.vflip)

adjust_brightness = _of_pictures(F.adjust_brightness)
adjust_contrast = _of_pictures(F.adjust_contrast)
adjust_gamma = _of_pictures(F.adjust_gamma)
adjust_hue = _of_pictures(F.adjust_hue)
adjust_saturation = _of_pictures(F.adjust_saturation)
adjust_sharpness = _of_pictures(F.adjust_sharpness)
autocontrast = _of_pictures(F.autocontrast)
equalize = _of_pictures(F.equalize)
erase = _of_pictures(F.erase)
five_crop = _of_pictures(F.five_crop)
gaussian_blur = _of_pictures(F.gaussian_blur)
invert = _of_pictures(F.invert)
normalize = _of_pictures(F.normalize)
posterize = _of_pictures(F.posterize)
rgb_to_grayscale = to_grayscale = _of_pictures(F.rgb_to_grayscale)
solarize = _of_pictures(F.solarize)
ten_crop = _of_pictures(F.ten_crop)
convert_image_dtype = _of_pictures(F.convert_image_dtype)

get_dimensions = F.get_dimensions


def get_size(inpt: Any) -> list[int]:
    """Height and width of an image, or of that which a mask or boxes belong to."""
    return F.get_dimensions(inpt)[1:]


def get_num_channels(inpt: Any) -> int:
    """The number of an image's channels."""
    return F.get_dimensions(inpt)[0]


get_image_num_channels = get_num_channels


def get_num_frames(inpt: Tensor) -> int:
    """The number of a video's frames."""
    return inpt.shape[-4]


def to_image(inpt: Any) -> Image:
    """An `Image` of a Pillow image, a tensor, or an array (H, W, C), with the same numbers.

    >>> to_image(np.zeros((2, 3, 1), np.uint8)).shape
    torch.Size([1, 2, 3])
    """
    if isinstance(inpt, np.ndarray):
        return Image(corefw.from_numpy(np.atleast_3d(inpt)).permute(2, 0, 1).contiguous())
    if not is_pillow_image(inpt) and not isinstance(inpt, Tensor):
        raise TypeError(
            f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)} instead."
        )
    return Image(inpt)


def to_dtype(inpt: Any, dtype: corefw.dtype = corefw.float32, scale: bool = False) -> Any:
    """A tensor in another dtype; with `scale`, a picture's full brightness stays full brightness.

    >>> import corefw as torch
    >>> to_dtype(torch.tensor([[0, 255]], dtype=torch.uint8), torch.float32, scale=True)
    tensor([[0., 1.]])
    """
    if scale and not isinstance(inpt, _NO_PICTURES):
        return convert_image_dtype(inpt, dtype)
    return kept(inpt.to(dtype), inpt)


def convert_bounding_box_format(
    inpt: Tensor,
    old_format: BoundingBoxFormat | str | None = None,
    new_format: BoundingBoxFormat | str | None = None,
    inplace: bool = False,
) -> Any:
    """Boxes whose four numbers mean something else.

    Args:
        inpt: `BoundingBoxes`, or a tensor (..., 4).
        old_format: of a tensor that does not say it.
        new_format: the format that is wanted.
        inplace: write the result over the input.
    """
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    if isinstance(inpt, BoundingBoxes):
        if old_format is not None:
            raise ValueError("For bounding box tv_tensor inputs, `old_format` must not be passed.")
        old_format = inpt.format
    elif not is_pure_tensor(inpt):
        raise TypeError(
            f"Input can either be a plain tensor or a bounding box tv_tensor, but got {type(inpt)} instead."
        )
    elif old_format is None:
        raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
    boxes = converted(inpt.as_subclass(Tensor), old_format, new_format)
    if inplace:
        boxes = inpt.as_subclass(Tensor).copy_(boxes)
    if isinstance(inpt, BoundingBoxes):
        return wrap(boxes, like=inpt, format=bounding_box_format(new_format))
    return boxes


def clamp_bounding_boxes(
    inpt: Tensor,
    format: BoundingBoxFormat | str | None = None,
    canvas_size: Sequence[int] | None = None,
    clamping_mode: str | None = "auto",
) -> Any:
    """Boxes cut off at their image's edges; `format` and `canvas_size` are said of tensors that do not say them."""
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"clamping_mode must be soft, hard, auto or None, got {clamping_mode}")
    if isinstance(inpt, BoundingBoxes):
        if format is not None or canvas_size is not None:
            raise ValueError("For bounding box tv_tensor inputs, `format` and `canvas_size` must not be passed.")
        mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
        return wrap(clamped(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size, mode), like=inpt)
    if not is_pure_tensor(inpt):
        raise TypeError(
            f"Input can either be a plain tensor or a bounding box tv_tensor, but got {type(inpt)} instead."
        )
    if format is None or canvas_size is None or clamping_mode == "auto":
        raise ValueError("For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` have to be passed.")
    return clamped(inpt, bounding_box_format(format), canvas_size, clamping_mode)


def valid_boxes(
    boxes: Tensor, format: BoundingBoxFormat | str, canvas_size: Sequence[int], min_size: float, min_area: float
) -> Tensor:
    """Which boxes are large enough and lie within their image."""
    corners = converted(boxes, format, BoundingBoxFormat.XYXY)
    width, height = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    edges = corefw.tensor([canvas_size[1], canvas_size[0]] * 2, device=corners.device)
    inside = ((corners >= 0) & (corners <= edges)).all(-1)
    return (width >= min_size) & (height >= min_size) & (width * height >= min_area) & inside


def sanitize_bounding_boxes(
    bounding_boxes: Tensor, format: BoundingBoxFormat | str | None = None,
    canvas_size: Sequence[int] | None = None, min_size: float = 1.0, min_area: float = 1.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The boxes that are large enough and within their image, and which these are."""
    if isinstance(bounding_boxes, BoundingBoxes):
        if format is not None or canvas_size is not None:
            raise ValueError(
                "format and canvas_size must be None when bounding_boxes is a tv_tensors.BoundingBoxes instance. "
                f"Got {format=} and {canvas_size=}."
            )
        format, canvas_size = bounding_boxes.format, bounding_boxes.canvas_size
    elif format is None or canvas_size is None:
        raise ValueError(
            "format and canvas_size cannot be None if bounding_boxes is a pure tensor. "
            f"Got {format=} and {canvas_size=}."
        )
    valid = valid_boxes(bounding_boxes.as_subclass(Tensor), format, canvas_size, min_size, min_area)
    return kept(bounding_boxes.as_subclass(Tensor)[valid], bounding_boxes), valid


def clamp_keypoints(inpt: Tensor, canvas_size: Sequence[int] | None = None) -> Any:
    """Points brought to the nearest pixels of their image; `canvas_size` is said of tensors that do not say it."""
    return kept(on_points.clamped(inpt.as_subclass(Tensor), _canvas_of_points(inpt, canvas_size)), inpt)


def _canvas_of_points(points: Tensor, canvas_size: Sequence[int] | None) -> Sequence[int]:
    if isinstance(points, KeyPoints):
        if canvas_size is not None:
            raise ValueError(
                "canvas_size must be None when the points are a tv_tensors.KeyPoints, which have their own"
            )
        return points.canvas_size
    if canvas_size is None:
        raise ValueError("canvas_size cannot be None if the points are a pure tensor")
    return canvas_size


def sanitize_keypoints(key_points: Tensor, canvas_size: Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
    """The points within their image, or the groups of points that all are, and which these are."""
    height, width = _canvas_of_points(key_points, canvas_size)
    points = key_points.as_subclass(Tensor)
    x, y = points[..., 0], points[..., 1]
    valid = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    valid = valid.flatten(1).all(1) if valid.ndim > 1 else valid
    return kept(points[valid], key_points), valid


@_of_pictures
def permute_channels(inpt: Any, permutation: Sequence[int]) -> Any:
    """A picture with its channels in another order."""
    if is_pillow_image(inpt):
        return to_pil_image(permute_channels(pil_to_tensor(inpt), permutation), inpt.mode)
    order = corefw.as_tensor(permutation, device=inpt.device)
    if order.shape != (inpt.shape[-3],):
        raise ValueError(f"Length of permutation does not match number of channels: {len(order)} != {inpt.shape[-3]}")
    return inpt.index_select(-3, order)


@_of_pictures
def grayscale_to_rgb(inpt: Any) -> Any:
    """A picture with three channels, of one with three or with one."""
    channels = get_num_channels(inpt)
    return inpt if channels >= 3 else rgb_to_grayscale(inpt, 3)


@_of_pictures
def gaussian_noise(inpt: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Tensor:
    """A picture with normal noise; `mean` and `sigma` are parts of full brightness, for bytes as well."""
    if not isinstance(inpt, Tensor):
        raise ValueError("Gaussian Noise is not implemented for PIL images.")
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")
    if not inpt.is_floating_point() and inpt.dtype != corefw.uint8:
        raise ValueError(f"Input tensor is expected to be in uint8 or float dtype, got dtype={inpt.dtype}")
    top = 1 if inpt.is_floating_point() else 255
    noise = corefw.randn(inpt.shape, device=inpt.device, dtype=inpt.dtype if top == 1 else corefw.float32)
    noise = noise * (sigma * top) + mean * top
    noisy = inpt + (noise if top == 1 else noise.to(corefw.int16))
    return (noisy.clamp(0, top) if clip else noisy).to(inpt.dtype)


@_of_pictures
def jpeg(inpt: Any, quality: int) -> Any:
    """A picture of bytes as JPEG leaves it, at a quality from 1 to 100."""
    if is_pillow_image(inpt):
        return to_pil_image(jpeg(pil_to_tensor(inpt), quality), inpt.mode)
    pictures = inpt.reshape(-1, *inpt.shape[-3:])
    if len(pictures) == 0:
        return inpt.clone()
    coded = [io.decode_jpeg(io.encode_jpeg(picture, quality)) for picture in pictures]
    return corefw.stack(coded).reshape(inpt.shape).to(inpt.device)


@_of_pictures
def uniform_temporal_subsample(inpt: Tensor, num_samples: int) -> Tensor:
    """`num_samples` frames of a video (..., T, C, H, W), evenly spaced from the first to the last."""
    indices = corefw.linspace(0, inpt.shape[-4] - 1, num_samples, device=inpt.device).long()
    return inpt.index_select(-4, indices)
