"""Transforms that do the same to every image."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import corefw
from corefw import Tensor
from corefw.vision.transforms import functional as F
from corefw.vision.transforms.base import ImageTransform, checked_fill, fill_of, listed, two_sizes
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode


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


class ConvertImageDtype(ImageTransform):
    """A tensor image in another dtype: full brightness is the largest integer, or 1 of floating-point numbers."""

    def __init__(self, dtype: corefw.dtype = corefw.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_image_dtype(inpt, self.dtype)


class Normalize(ImageTransform):
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

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.normalize(inpt, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Resize(ImageTransform):
    """An image with other numbers of rows and columns.

    Args:
        size: (height, width), the length of the smaller edge, or None if `max_size` says all.
        interpolation: for tensors nearest, nearest-exact, bilinear or bicubic.
        max_size: the larger edge's length, at most if `size` is a number.
        antialias: smooth a tensor that becomes smaller; Pillow always does.

    >>> import corefw as torch
    >>> Resize(5)(torch.zeros(3, 10, 20)).shape
    torch.Size([3, 5, 10])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, int | Sequence | None):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.resize(inpt, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(ImageTransform):
    """The middle of an image, of `size` (height, width) or a square; an image that is smaller gets a frame of 0."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = two_sizes(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.center_crop(inpt, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class FiveCrop(ImageTransform):
    """The four corners of an image and its middle, each of `size` (height, width) or a square, as a tuple.

    >>> import corefw as torch
    >>> crops = FiveCrop(2)(torch.zeros(3, 4, 5))
    >>> torch.stack(crops).shape
    torch.Size([5, 3, 2, 2])
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = two_sizes(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.five_crop(inpt, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(ImageTransform):
    """What `FiveCrop` gives of an image, and of the image with left and right (top and bottom) exchanged."""

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = two_sizes(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.ten_crop(inpt, self.size, self.vertical_flip)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, vertical_flip={self.vertical_flip})"


class Pad(ImageTransform):
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
        if padding_mode not in F._PADDING_MODES:
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if isinstance(padding, Sequence) and len(padding) not in (1, 2, 4):
            raise ValueError(
                f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
            )
        self.padding = padding
        self.fill = checked_fill(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pad(inpt, self.padding, fill_of(self.fill, inpt), self.padding_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class Grayscale(ImageTransform):
    """An image's luma, in one channel or the same in three."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.rgb_to_grayscale(inpt, num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class LinearTransformation(ImageTransform):
    """``(tensor - mean_vector) @ transformation_matrix`` of a tensor (..., C, H, W), whose pixels are one vector.

    Args:
        transformation_matrix: square, with a row for each of the C * H * W values: one that whitens, for example.
        mean_vector: as many values.

    >>> import corefw as torch
    >>> LinearTransformation(2 * torch.eye(2), torch.ones(2))(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[0., 4.]]])
    """

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        matrix, mean = transformation_matrix, mean_vector
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"transformation_matrix should be square. Got {tuple(matrix.shape)} rectangular matrix.")
        if len(mean) != len(matrix):
            raise ValueError(
                f"mean_vector should have the same length {len(mean)} as any one of the dimensions of the "
                f"transformation_matrix [{tuple(matrix.shape)}]"
            )
        if matrix.device != mean.device:
            raise ValueError(f"Input tensors should be on the same device. Got {matrix.device} and {mean.device}")
        if matrix.dtype != mean.dtype:
            raise ValueError(f"Input tensors should have the same dtype. Got {matrix.dtype} and {mean.dtype}")
        self.transformation_matrix = matrix
        self.mean_vector = mean

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        size = math.prod(inpt.shape[-3:])
        if size != len(self.mean_vector):
            shape = " x ".join(map(str, inpt.shape[-3:]))
            raise ValueError(
                f"Input tensor and transformation matrix have incompatible shape. [{shape}] != {len(self.mean_vector)}"
            )
        if inpt.device.type != self.mean_vector.device.type:
            raise ValueError(
                "Input tensor should be on the same device as transformation matrix and mean vector. "
                f"Got {inpt.device} vs {self.mean_vector.device}"
            )
        vectors = inpt.reshape(-1, size) - self.mean_vector
        return (vectors @ self.transformation_matrix.to(vectors.dtype)).reshape(inpt.shape)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, "
            f"mean_vector={self.mean_vector.tolist()})"
        )
