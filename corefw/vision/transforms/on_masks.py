"""Transforms of masks: the same names as for tensors. A mask's values are names, which are never mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from corefw import Tensor
from corefw.vision.transforms import on_tensors
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.on_tensors import get_dimensions
from corefw.vision.tv_tensors import Mask, wrap

__all__ = ["affine", "crop", "elastic_transform", "get_dimensions", "hflip", "pad", "perspective", "resize", "vflip"]


def _of_masks(kernel: Callable) -> Callable:
    """A kernel of tensors as one of masks."""

    @wraps(kernel)
    def kept(img: Mask, *args: Any, **kwargs: Any) -> Mask:
        return wrap(kernel(img.as_subclass(Tensor), *args, **kwargs), like=img)

    return kept


hflip, vflip, crop, pad = (
    _of_masks(kernel) for kernel in (on_tensors.hflip, on_tensors.vflip, on_tensors.crop, on_tensors.pad)
)
_resize, _affine, _perspective, _elastic = (
    _of_masks(kernel)
    for kernel in (on_tensors.resize, on_tensors.affine, on_tensors.perspective, on_tensors.elastic_transform)
)


def resize(img: Mask, size: Sequence[int], mode: InterpolationMode, antialias: bool | None) -> Mask:
    """`img` with other numbers of rows and columns."""
    exact = mode is InterpolationMode.NEAREST_EXACT
    return _resize(img, size, mode if exact else InterpolationMode.NEAREST, False)


def affine(img: Mask, matrix: Sequence[float], mode: InterpolationMode, fill: Any, expand: bool = False) -> Mask:
    """`img` mapped by a matrix."""
    return _affine(img, matrix, InterpolationMode.NEAREST, fill, expand)


def perspective(img: Mask, coefficients: Sequence[float], mode: InterpolationMode, fill: Any) -> Mask:
    """`img` seen from another side."""
    return _perspective(img, coefficients, InterpolationMode.NEAREST, fill)


def elastic_transform(img: Mask, displacement: Tensor, mode: InterpolationMode, fill: Any) -> Mask:
    """`img` bent."""
    return _elastic(img, displacement, InterpolationMode.NEAREST, fill)
