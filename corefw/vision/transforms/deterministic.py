"""Transforms that do the same to every image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import corefw
from corefw import Tensor
from corefw.nn import Module
from corefw.vision.transforms import functional as F
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode


def listed(name: str, *items: Any) -> str:
    """The text of a transform that has others: one a line."""
    return "\n".join([f"{name}(", *(f"    {item}" for item in items), ")"])


def two_sizes(size: Any) -> Any:
    """Height and width, of a number or a sequence of one or two."""
    return size if not isinstance(size, Number) and len(size) == 2 else F._pair(size)


class Compose:
    """One transform after the other.

    >>> from corefw.vision.transforms import Compose, Normalize, ToTensor
    >>> Compose([ToTensor(), Normalize([0.5], [0.5])])
    Compose(
        ToTensor()
        Normalize(mean=[0.5], std=[0.5])
    )
    """

    def __init__(self, transforms: Sequence[Callable]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return listed(type(self).__name__, *self.transforms)


class Lambda:
    """A function as a transform; to reach worker processes that are not forked it must be one that pickles."""

    def __init__(self, lambd: Callable) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToTensor:
    """A tensor (C, H, W) of a Pillow image or of an array (H, W, C); bytes become numbers from 0 to 1.

    >>> import numpy as np
    >>> ToTensor()(np.full((1, 2, 1), 255, np.uint8))
    tensor([[[1., 1.]]])
    """

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """A tensor (C, H, W) of a Pillow image, with the same numbers."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """A Pillow image of a tensor (C, H, W) or of an array (H, W, C); `mode` names the meaning of its channels."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(Module):
    """A tensor image in another dtype: full brightness is the largest integer, or 1 of floating-point numbers."""

    def __init__(self, dtype: corefw.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Module):
    """``(tensor - mean) / std`` for each channel of a tensor (..., C, H, W) of floating-point numbers.

    Args:
        mean, std: one number for each channel.
        inplace: change the tensor that is given.

    >>> import corefw as torch
    >>> Normalize([0.5], [0.5])(torch.tensor([[[0.0, 1.0]]]))
    tensor([[[-1.,  1.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Resize(Module):
    """An image with other numbers of rows and columns.

    Args:
        size: (height, width), or the length of the smaller edge.
        interpolation: for tensors nearest, nearest-exact, bilinear or bicubic.
        max_size: the larger edge's length at most, if `size` is a number.
        antialias: smooth a tensor that becomes smaller; Pillow always does.

    >>> import corefw as torch
    >>> Resize(5)(torch.zeros(3, 10, 20)).shape
    torch.Size([3, 5, 10])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, int | Sequence):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(Module):
    """The middle of an image, of `size` (height, width) or a square; an image that is smaller gets a frame of 0."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = two_sizes(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(Module):
    """An image with a frame.

    Args:
        padding: the width of the frame: one for all sides, two for left and right and for top and bottom, or four for
            left, top, right and bottom.
        fill: the constant, for Pillow images one of each channel if need be.
        padding_mode: "constant", "edge" repeats the outermost pixel, "reflect" mirrors the image without it,
            "symmetric" with it.

    >>> import corefw as torch
    >>> Pad(1, padding_mode="edge")(torch.tensor([[[1, 2]]]))
    tensor([[[1, 1, 2, 2],
             [1, 1, 2, 2],
             [1, 1, 2, 2]]])
    """

    def __init__(
        self, padding: int | Sequence[int], fill: float | Sequence[float] = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        if not isinstance(padding, Number | tuple | list):
            raise TypeError("Got inappropriate padding arg")
        if not isinstance(fill, Number | tuple | list):
            raise TypeError("Got inappropriate fill arg")
        if padding_mode not in F._PADDING_MODES:
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if isinstance(padding, Sequence) and len(padding) not in (1, 2, 4):
            raise ValueError(
                f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
            )
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class Grayscale(Module):
    """An image's luma, in one channel or the same in three."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"
