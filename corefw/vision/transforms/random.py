"""Transforms that chance has a hand in: it is drawn from corefw's generator, so that a seed repeats it."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from numbers import Number
from typing import Any

import corefw
from corefw import Tensor
from corefw.nn import Module
from corefw.vision.transforms import functional as F
from corefw.vision.transforms.base import (
    ByChance,
    ImageTransform,
    below,
    checked_fill,
    fill_of,
    height_and_width,
    listed,
    two_sizes,
    uniform,
)
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode

_TRIES = 10  # draws of a rectangle before one that certainly fits


def _check_range(scale: Any, ratio: Any) -> None:
    if not isinstance(scale, Sequence):
        raise TypeError("Scale should be a sequence")
    if not isinstance(ratio, Sequence):
        raise TypeError("Ratio should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=3)


def _edges(area: float, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int]:
    """Two edges whose product is a random part of `area`, and whose quotient is random on a logarithmic scale."""
    part = area * uniform(scale[0], scale[1])
    quotient = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(part * quotient)), round(math.sqrt(part / quotient))


class RandomTransforms:
    """Base of what chooses among transforms."""

    def __init__(self, transforms: Sequence[Callable]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return listed(type(self).__name__, *self.transforms)


class RandomApply(Module):
    """All of `transforms` with probability `p`, else none of them."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if self.p < uniform():
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return listed(type(self).__name__, f"p={self.p}", *self.transforms)


class RandomOrder(RandomTransforms):
    """All of the transforms, in random order."""

    def __call__(self, img: Any) -> Any:
        for index in corefw.randperm(len(self.transforms)).tolist():
            img = self.transforms[index](img)
        return img


class RandomChoice(RandomTransforms):
    """One of the transforms, each as likely as the other or as its weight in `p` says."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        if p is not None and len(p) != len(transforms):
            raise ValueError(f"The number of weights does not match the population: {len(p)} for {len(transforms)}")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        sums = list(accumulate(self.p or [1.0] * len(self.transforms)))
        index = bisect_right(sums, uniform(0.0, sums[-1]), hi=len(sums) - 1)
        return self.transforms[index](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"


class RandomCrop(ImageTransform):
    """A rectangle of an image, at a random place.

    Args:
        size: (height, width), or the edge of a square.
        padding: a frame that the image is given first, as `Pad` takes it.
        pad_if_needed: give an image that is too small a frame that makes it large enough.
        fill, padding_mode: of the frame, as `Pad` takes them.

    >>> import corefw as torch
    >>> RandomCrop(3, padding=1)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 3, 3])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = tuple(two_sizes(size))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = checked_fill(fill)
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Top, left, height and width of a random rectangle."""
        _, rows, columns = F.get_dimensions(img)
        height, width = output_size
        if rows < height or columns < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(rows, columns)}")
        if (rows, columns) == (height, width):
            return 0, 0, height, width
        return below(rows - height + 1), below(columns - width + 1), height, width

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """The frames to give, and then the rectangle."""
        rows, columns = height_and_width(inputs)
        frames = []
        if self.padding is not None:
            left, top, right, bottom = F._four_sides(self.padding)
            rows, columns = rows + top + bottom, columns + left + right
            frames.append(self.padding)
        if self.pad_if_needed:
            across, down = max(self.size[1] - columns, 0), max(self.size[0] - rows, 0)
            if across or down:
                rows, columns = rows + 2 * down, columns + 2 * across
                frames.append([across, down])
        framed = corefw.empty(1, rows, columns, device="meta") if frames else inputs[0]
        return {"frames": frames, "rectangle": self.get_params(framed, self.size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for frame in params["frames"]:
            inpt = F.pad(inpt, frame, fill_of(self.fill, inpt), self.padding_mode)
        return F.crop(inpt, *params["rectangle"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(ImageTransform):
    """A random rectangle of an image, resized.

    Args:
        size: (height, width) of the result, or the edge of a square.
        scale: the least and largest part of the image's area.
        ratio: the least and largest quotient of width and height.
        interpolation, antialias: as `Resize` takes them.

    Source: C. Szegedy and others, Going Deeper with Convolutions, 2015.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        _check_range(scale, ratio)
        self.size = two_sizes(size)
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Top, left, height and width of a random rectangle; the largest in the middle if none is found."""
        _, rows, columns = F.get_dimensions(img)
        for _ in range(_TRIES):
            width, height = _edges(rows * columns, scale, ratio)
            if 0 < width <= columns and 0 < height <= rows:
                return below(rows - height + 1), below(columns - width + 1), height, width
        quotient = min(max(columns / rows, min(ratio)), max(ratio))
        width, height = min(columns, round(rows * quotient)), min(rows, round(columns / quotient))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height_and_width(inputs)  # which is that of all
        return {"rectangle": self.get_params(inputs[0], self.scale, self.ratio)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        top, left, height, width = params["rectangle"]
        return F.resized_crop(inpt, top, left, height, width, self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={tuple(round(s, 4) for s in self.scale)}, "
            f"ratio={tuple(round(r, 4) for r in self.ratio)}, interpolation={self.interpolation.value}, "
            f"antialias={self.antialias})"
        )


class RandomHorizontalFlip(ByChance):
    """Left and right exchanged with probability `p`.

    >>> import corefw as torch
    >>> RandomHorizontalFlip(p=1)(torch.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.hflip(inpt)


class RandomVerticalFlip(ByChance):
    """Top and bottom exchanged with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.vflip(inpt)


class RandomErasing(ByChance):
    """A random rectangle of a tensor image overwritten, with probability `p`.

    Args:
        p: how likely that is.
        scale: the least and largest part of the image's area.
        ratio: the least and largest quotient of height and width.
        value: what is written: a number, one for each channel, or "random" for normal random numbers.
        inplace: change the tensor that is given.

    Source: Z. Zhong and others, Random Erasing Data Augmentation, 2017, arXiv:1708.04896.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        if not isinstance(value, Number | str | tuple | list):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        _check_range(scale, ratio)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.scale = scale
        self.ratio = ratio
        self.value = value
        self.inplace = inplace

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float], value: Sequence[float] | None = None
    ) -> tuple[int, int, int, int, Tensor]:
        """Top, left, height and width of a random rectangle, and its values; all of the image if none is found."""
        channels, rows, columns = img.shape[-3:]
        for _ in range(_TRIES):
            height, width = _edges(rows * columns, scale, ratio)
            if height < rows and width < columns:
                if value is None:
                    written = corefw.randn(channels, height, width)
                else:
                    written = corefw.tensor([float(v) for v in value])[:, None, None]
                return below(rows - height + 1), below(columns - width + 1), height, width, written
        return 0, 0, rows, columns, img

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any] | None:
        if super().make_params(inputs) is None:
            return None
        img = F._tensor_image(inputs[0])
        channels = img.shape[-3]
        value: Any = self.value
        if isinstance(value, str):
            value = None
        elif not isinstance(value, list | tuple):
            value = [value]
        if value is not None and len(value) not in (1, channels):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {channels} (number of input channels)"
            )
        return {"erased": self.get_params(img, self.scale, self.ratio, value)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        i, j, h, w, v = params["erased"]
        return F.erase(inpt, i, j, h, w, v, self.inplace)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, "
            f"value={self.value}, inplace={self.inplace})"
        )
