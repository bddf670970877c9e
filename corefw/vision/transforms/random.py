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
from corefw.vision.transforms.deterministic import listed, two_sizes
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode

_TRIES = 10  # draws of a rectangle before one that certainly fits


def _uniform(low: float = 0.0, high: float = 1.0) -> float:
    return low + (high - low) * float(corefw.rand(1))


def _below(bound: int) -> int:
    return int(corefw.randint(0, bound, (1,)))


def _check_range(scale: Any, ratio: Any) -> None:
    if not isinstance(scale, Sequence):
        raise TypeError("Scale should be a sequence")
    if not isinstance(ratio, Sequence):
        raise TypeError("Ratio should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=3)


def _edges(area: float, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int]:
    """Two edges whose product is a random part of `area`, and whose quotient is random on a logarithmic scale."""
    part = area * _uniform(scale[0], scale[1])
    quotient = math.exp(_uniform(math.log(ratio[0]), math.log(ratio[1])))
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
        if self.p < _uniform():
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
        index = bisect_right(sums, _uniform(0.0, sums[-1]), hi=len(sums) - 1)
        return self.transforms[index](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"


class RandomCrop(Module):
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
        self.fill = fill
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
        return _below(rows - height + 1), _below(columns - width + 1), height, width

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, rows, columns = F.get_dimensions(img)
            across, down = max(self.size[1] - columns, 0), max(self.size[0] - rows, 0)
            if across or down:
                img = F.pad(img, [across, down], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(Module):
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
                return _below(rows - height + 1), _below(columns - width + 1), height, width
        quotient = min(max(columns / rows, min(ratio)), max(ratio))
        width, height = min(columns, round(rows * quotient)), min(rows, round(columns / quotient))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def forward(self, img: Any) -> Any:
        rectangle = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *rectangle, self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={tuple(round(s, 4) for s in self.scale)}, "
            f"ratio={tuple(round(r, 4) for r in self.ratio)}, interpolation={self.interpolation.value}, "
            f"antialias={self.antialias})"
        )


class RandomHorizontalFlip(Module):
    """Left and right exchanged with probability `p`.

    >>> import corefw as torch
    >>> RandomHorizontalFlip(p=1)(torch.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.hflip(img) if _uniform() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(Module):
    """Top and bottom exchanged with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.vflip(img) if _uniform() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomGrayscale(Module):
    """An image's luma with probability `p`, in as many channels as the image has."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        channels, _, _ = F.get_dimensions(img)
        return F.rgb_to_grayscale(img, num_output_channels=channels) if _uniform() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomRotation(Module):
    """An image rotated by a random angle.

    Args:
        degrees: the least and largest angle, counter-clockwise; a number d stands for (-d, d).
        interpolation: for tensors nearest or bilinear.
        expand: make the image large enough to hold all of the rotated one.
        center: what it is rotated about, (x, y) from the upper left corner; the middle if missing.
        fill: the value outside of the old image.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: float | Sequence[float] | None = 0,
    ) -> None:
        super().__init__()
        if isinstance(degrees, int | float):
            if degrees < 0:
                raise ValueError("If degrees is a single number, it must be positive.")
            degrees = (-degrees, degrees)
        for name, pair in (("degrees", degrees), ("center", center)):
            if pair is None:
                continue
            if not isinstance(pair, Sequence):
                raise TypeError(f"{name} should be a sequence of length 2.")
            if len(pair) != 2:
                raise ValueError(f"{name} should be a sequence of length 2.")
        fill = 0 if fill is None else fill
        if not isinstance(fill, Sequence | Number):
            raise TypeError("Fill should be either a sequence or a number.")
        self.degrees = [float(d) for d in degrees]
        self.interpolation = interpolation_mode(interpolation)
        self.expand = expand
        self.center = center
        self.fill = fill

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle."""
        return _uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, interpolation={self.interpolation.value}, "
            f"expand={self.expand}{center}, fill={self.fill})"
        )


def _factors(value: Any, name: str, center: float, low: float, high: float) -> tuple[float, float] | None:
    """The least and largest factor, None if there is but the one that changes nothing."""
    if isinstance(value, int | float):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        least, largest = center - float(value), center + float(value)
        if center:
            least = max(least, 0.0)
    elif isinstance(value, tuple | list) and len(value) == 2:
        least, largest = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not low <= least <= largest <= high:
        raise ValueError(f"{name} values should be between {(low, high)}, but got {[least, largest]}.")
    return None if least == largest == center else (least, largest)


class ColorJitter(Module):
    """An image with random brightness, contrast, saturation and hue, changed in random order.

    Args:
        brightness, contrast, saturation: the least and largest factor; a number d stands for (max(0, 1 - d), 1 + d).
        hue: the least and largest turn of the colour circle, from -0.5 to 0.5; a number d stands for (-d, d).
    """

    def __init__(
        self,
        brightness: float | tuple[float, float] = 0,
        contrast: float | tuple[float, float] = 0,
        saturation: float | tuple[float, float] = 0,
        hue: float | tuple[float, float] = 0,
    ) -> None:
        super().__init__()
        self.brightness = _factors(brightness, "brightness", 1, 0, math.inf)
        self.contrast = _factors(contrast, "contrast", 1, 0, math.inf)
        self.saturation = _factors(saturation, "saturation", 1, 0, math.inf)
        self.hue = _factors(hue, "hue", 0, -0.5, 0.5)

    @staticmethod
    def get_params(
        brightness: Sequence[float] | None,
        contrast: Sequence[float] | None,
        saturation: Sequence[float] | None,
        hue: Sequence[float] | None,
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """The order of the four changes, and the factor of each."""
        order = corefw.randperm(4)
        b, c, s, h = (
            None if between is None else _uniform(between[0], between[1])
            for between in (brightness, contrast, saturation, hue)
        )
        return order, b, c, s, h

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for index in order.tolist():
            factor = factors[index]
            if factor is not None:
                img = changes[index](img, factor)
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )


class RandomErasing(Module):
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
        super().__init__()
        if not isinstance(value, Number | str | tuple | list):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        _check_range(scale, ratio)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p = p
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
                return _below(rows - height + 1), _below(columns - width + 1), height, width, written
        return 0, 0, rows, columns, img

    def forward(self, img: Tensor) -> Tensor:
        if _uniform() >= self.p:
            return img
        channels = F._tensor_image(img).shape[-3]
        value: Any = self.value
        if isinstance(value, str):
            value = None
        elif not isinstance(value, list | tuple):
            value = [value]
        if value is not None and len(value) not in (1, channels):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {channels} (number of input channels)"
            )
        return F.erase(img, *self.get_params(img, self.scale, self.ratio, value), self.inplace)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, "
            f"value={self.value}, inplace={self.inplace})"
        )
