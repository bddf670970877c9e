"""Transforms that move an image's pixels about, by chance."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import corefw
from corefw import Tensor
from corefw.vision.transforms import functional as F
from corefw.vision.transforms.base import (
    ByChance,
    ImageTransform,
    below,
    checked_fill,
    checked_pair,
    fill_of,
    height_and_width,
    symmetric_range,
    two_sizes,
    uniform,
)
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode


class RandomRotation(ImageTransform):
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
        self.degrees = symmetric_range("degrees", degrees)
        self.interpolation = interpolation_mode(interpolation)
        self.expand = expand
        self.center = checked_pair("center", center)
        self.fill = checked_fill(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle."""
        return uniform(degrees[0], degrees[1])

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"angle": self.get_params(self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = fill_of(self.fill, inpt)
        return F.rotate(inpt, params["angle"], self.interpolation, self.expand, self.center, fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, interpolation={self.interpolation.value}, "
            f"expand={self.expand}{center}, fill={self.fill})"
        )


class RandomAffine(ImageTransform):
    """An image rotated, moved, enlarged and sheared by chance.

    Args:
        degrees: the least and largest angle, clockwise; a number d stands for (-d, d).
        translate: the largest parts of the width and of the height that it is moved by; not moved if missing.
        scale: the least and largest factor; 1 if missing.
        shear: the least and largest angle along x, and along y if there are four; a number d stands for (-d, d).
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image.
        center: what it is rotated about, (x, y) from the upper left corner; the middle if missing.

    >>> import corefw as torch
    >>> RandomAffine(30, translate=(0.1, 0.1), scale=(0.8, 1.2))(torch.zeros(3, 8, 8)).shape
    torch.Size([3, 8, 8])
    """

    def __init__(
        self, degrees: float | Sequence[float], translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None, shear: float | Sequence[float] | None = None,
        interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: float | Sequence[float] | None = 0,
        center: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.degrees = symmetric_range("degrees", degrees)
        self.translate = checked_pair("translate", translate)
        if translate is not None and not all(0 <= part <= 1 for part in translate):
            raise ValueError("translation values should be between 0 and 1")
        self.scale = checked_pair("scale", scale)
        if scale is not None and min(scale) <= 0:
            raise ValueError("scale values should be positive")
        self.shear = None if shear is None else symmetric_range("shear", shear, (2, 4))
        self.interpolation = interpolation_mode(interpolation)
        self.fill = checked_fill(fill)
        self.center = checked_pair("center", center)

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """A random angle, translation, scale and shear, of an image of `img_size` (width, height)."""
        angle = uniform(degrees[0], degrees[1])
        dx = dy = 0
        if translate is not None:
            dx, dy = (round(uniform(-part * n, part * n)) for part, n in zip(translate, img_size, strict=True))
        scale = 1.0 if scale_ranges is None else uniform(scale_ranges[0], scale_ranges[1])
        across = 0.0 if shears is None else uniform(shears[0], shears[1])
        down = 0.0 if shears is None or len(shears) == 2 else uniform(shears[2], shears[3])
        return angle, (dx, dy), scale, (across, down)

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height, width = height_and_width(inputs)
        return {"map": self.get_params(self.degrees, self.translate, self.scale, self.shear, (width, height))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        angle, translate, scale, shear = params["map"]
        return F.affine(inpt, angle, translate, scale, shear, self.interpolation, fill_of(self.fill, inpt), self.center)

    def __repr__(self) -> str:
        text = f"degrees={self.degrees}"
        for name in ("translate", "scale", "shear"):
            if getattr(self, name) is not None:
                text += f", {name}={getattr(self, name)}"
        if self.interpolation is not InterpolationMode.NEAREST:
            text += f", interpolation={self.interpolation.value}"
        if self.fill != 0:
            text += f", fill={self.fill}"
        if self.center is not None:
            text += f", center={self.center}"
        return f"{type(self).__name__}({text})"


class RandomPerspective(ByChance):
    """An image seen from another side, with probability `p`.

    Args:
        distortion_scale: how far a corner may move, as a part of half of the image.
        p: how likely that is.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image.
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        fill: float | Sequence[float] | None = 0,
    ) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.interpolation = interpolation_mode(interpolation)
        self.distortion_scale = distortion_scale
        self.fill = checked_fill(fill)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """The corners (x, y) of an image, clockwise from the upper left, and where these come to lie."""
        across, down = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        moved = []
        for x, y in corners:
            dx, dy = below(across + 1), below(down + 1)
            moved.append([x - dx if x else dx, y - dy if y else dy])
        return corners, moved

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any] | None:
        if super().make_params(inputs) is None:
            return None
        height, width = height_and_width(inputs)
        return {"corners": self.get_params(width, height, self.distortion_scale)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        startpoints, endpoints = params["corners"]
        return F.perspective(inpt, startpoints, endpoints, self.interpolation, fill_of(self.fill, inpt))


class ElasticTransform(ImageTransform):
    """An image bent as if drawn on rubber.

    Args:
        alpha: how far pixels move, across and down.
        sigma: how smoothly that changes from pixel to pixel, across and down.
        interpolation: nearest or bilinear.
        fill: the value outside of the old image.

    Source: P. Simard and others, Best Practices for Convolutional Neural Networks, 2003.
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        fill: float | Sequence[float] = 0,
    ) -> None:
        super().__init__()
        self.alpha = self._two("alpha", alpha)
        self.sigma = self._two("sigma", sigma)
        self.interpolation = interpolation_mode(interpolation)
        self.fill = [float(fill)] if isinstance(fill, Number) else checked_fill(fill)  # type: ignore[arg-type]

    @staticmethod
    def _two(name: str, value: Any) -> list[float]:
        if not isinstance(value, float | int | Sequence):
            raise TypeError(f"{name} should be float or a sequence of floats. Got {type(value)}")
        values = [value] if isinstance(value, float | int) else list(value)
        if len(values) not in (1, 2):
            raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(values)}")
        if wrong := [v for v in values if not isinstance(v, float | int)]:
            raise TypeError(f"{name} should be a sequence of floats. Got {type(wrong[0])}")
        return [float(v) for v in values] * (2 // len(values))

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """A random displacement (1, H, W, 2) of an image of `size` (height, width)."""
        shifts = []
        for strength, width, edge in zip(alpha, sigma, (size[1], size[0]), strict=True):
            shift = corefw.rand(1, 1, *size) * 2 - 1
            if width > 0:
                kernel = int(8 * width + 1) | 1  # odd
                shift = F.gaussian_blur(shift, [kernel, kernel], list(sigma))
            shifts.append(shift * strength / edge)
        return corefw.cat(shifts, 1).permute(0, 2, 3, 1)

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"displacement": self.get_params(self.alpha, self.sigma, height_and_width(inputs))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.elastic_transform(inpt, params["displacement"], self.interpolation, fill_of(self.fill, inpt))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )


class GaussianBlur(ImageTransform):
    """An image smoothed by a Gaussian function of random width.

    Args:
        kernel_size: columns and rows of the function, odd; a number stands for both.
        sigma: its least and largest standard deviation; a number stands for both.
    """

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = two_sizes(kernel_size)
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        if isinstance(sigma, int | float):
            if sigma <= 0:
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)
        elif not isinstance(sigma, Sequence) or len(sigma) != 2:
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        if not 0 < sigma[0] <= sigma[1]:
            raise ValueError("sigma values should be positive and of the form (min, max).")
        self.sigma = sigma

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """A random standard deviation."""
        return uniform(sigma_min, sigma_max)

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"sigma": self.get_params(self.sigma[0], self.sigma[1])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.gaussian_blur(inpt, self.kernel_size, params["sigma"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"
