"""Pillow, imported when an image first needs it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

import corefw
from corefw import Tensor


def pillow(name: str = "Image") -> ModuleType:
    """A module of Pillow, by name.

    Raises:
        ImportError: Pillow is not installed; the text says how to install it.
    """
    try:
        from PIL import Image, ImageEnhance, ImageOps
    except ImportError as error:
        raise ImportError("images need Pillow: pip install 'corefw[images]', or pip install pillow") from error
    return {"Image": Image, "ImageEnhance": ImageEnhance, "ImageOps": ImageOps}[name]


def is_pillow_image(value: Any) -> bool:
    """Whether `value` is an image of Pillow's; Pillow is not imported to tell."""
    loaded = sys.modules.get("PIL.Image")
    return loaded is not None and isinstance(value, loaded.Image)


def image_from_array(array: np.ndarray, mode: str | None = None) -> Any:
    """The Pillow image of an array of shape (H, W) or (H, W, C); `mode` names the meaning of the channels.

    >>> image_from_array(np.zeros((2, 3, 3), np.uint8)).size
    (3, 2)
    """
    if mode is None:
        return pillow().fromarray(np.ascontiguousarray(array))
    return pillow().frombytes(mode, (array.shape[1], array.shape[0]), array.tobytes())


def tensor_from_array(pixels: np.ndarray) -> Tensor:
    """The tensor (C, H, W) of an array of shape (H, W) or (H, W, C)."""
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return corefw.from_numpy(pixels.transpose(2, 0, 1).copy())
