"""What a tensor image is: its dimensions, its brightest value, and the dtype that is computed in."""

from __future__ import annotations

import corefw
from corefw import Tensor

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


def colours(img: Tensor) -> int:
    channels = get_dimensions(img)[0]
    if channels not in (1, 3):
        raise TypeError(f"Input image tensor permitted channel values are [1, 3], but found {channels}")
    return channels


def computable(img: Tensor) -> Tensor:
    return img if img.dtype in _COMPUTED else img.to(corefw.float32)


def restored(img: Tensor, dtype: corefw.dtype) -> Tensor:
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
