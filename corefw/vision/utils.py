"""Many images as one picture, and pictures as files, in the form of `torchvision.utils`."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import corefw
from corefw import Tensor
from corefw.files import replacing
from corefw.vision.pillow import image_from_array, pillow

__all__ = ["make_grid", "save_image"]


def _batch(tensor: Any) -> Tensor:
    """Images as one tensor (images, channels, height, width), single channels as three."""
    if isinstance(tensor, list):
        if wrong := [item for item in tensor if not isinstance(item, Tensor)]:
            raise TypeError(f"tensor or list of tensors expected, got a list containing {type(wrong[0])}")
        tensor = corefw.stack(tensor)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    while tensor.ndim in (2, 3):
        tensor = tensor.unsqueeze(0)
    if tensor.ndim != 4:
        raise ValueError(f"make_grid: 2 to 4 dimensions expected, got shape {tuple(tensor.shape)}")
    return tensor.repeat(1, 3, 1, 1) if tensor.shape[1] == 1 else tensor


def _stretched(images: Tensor, between: tuple[float, float] | None) -> Tensor:
    low, high = between if between is not None else (float(images.min()), float(images.max()))
    return (images.clamp(low, high) - low) / max(high - low, 1e-5)


@corefw.no_grad()
def make_grid(
    tensor: Tensor | list[Tensor], nrow: int = 8, padding: int = 2, normalize: bool = False,
    value_range: tuple[float, float] | None = None, scale_each: bool = False, pad_value: float = 0.0,
) -> Tensor:  # fmt: skip
    """Many images side by side, as one.

    Args:
        tensor: (images, channels, H, W), or a list of images of the same shape; a single image is returned as it is,
            with three channels.
        nrow: images in a row.
        padding: pixels between the images, and around them.
        normalize: stretch the values to reach from 0 to 1.
        value_range: the values that become 0 and 1; the least and the largest if missing.
        scale_each: stretch each image by itself.
        pad_value: the value of the pixels between the images.

    >>> import corefw as torch
    >>> make_grid(torch.zeros(10, 1, 28, 28), nrow=5).shape
    torch.Size([3, 62, 152])
    """
    images = _batch(tensor)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        if scale_each:
            images = corefw.stack([_stretched(image, value_range) for image in images])
        else:
            images = _stretched(images, value_range)
    count, channels, height, width = images.shape
    if count == 1:
        return images.squeeze(0)
    columns = min(nrow, count)
    rows = -(-count // columns)
    down, across = height + padding, width + padding
    grid = images.new_full((channels, down * rows + padding, across * columns + padding), pad_value)
    for index in range(count):
        top, left = index // columns * down + padding, index % columns * across + padding
        grid[:, top : top + height, left : left + width] = images[index]
    return grid


@corefw.no_grad()
def save_image(
    tensor: Tensor | list[Tensor],
    fp: str | os.PathLike | BinaryIO,
    format: str | None = None,
    **kwargs: Any,
) -> None:
    """Write images as one picture.

    A file that is there already is replaced when the new one is complete.

    Args:
        tensor: values from 0 to 1, in a shape that `make_grid` takes.
        fp: the file; its extension tells the format.
        format: "PNG", "JPEG" or another of Pillow's formats.
        kwargs: arguments of `make_grid`.
    """
    grid = make_grid(tensor, **kwargs)
    pixels = (grid * 255 + 0.5).clamp(0, 255).permute(1, 2, 0).to(corefw.uint8).cpu().numpy()
    image = image_from_array(pixels)
    if not isinstance(fp, str | os.PathLike):
        image.save(fp, format=format)
        return
    with replacing(fp) as file:
        image.save(file, format=format or _format_of(fp))


def _format_of(path: str | os.PathLike) -> str:
    extension = os.path.splitext(path)[1].lower()
    try:
        return pillow().registered_extensions()[extension]
    except KeyError:
        raise ValueError(f"unknown file extension: {extension!r} of {os.fspath(path)}; say format=") from None
