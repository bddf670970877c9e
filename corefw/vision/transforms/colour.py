"""Transforms that change an image's values, by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import corefw
from corefw import Tensor
from corefw.vision.transforms import functional as F
from corefw.vision.transforms.base import ByChance, ImageTransform, uniform


def _factors(value: Any, name: str, center: float, low: float, high: float) -> tuple[float, float] | None:
    """The least and largest factor, None if there is but the one that changes nothing."""
    if value is None:
        return None
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


_CHANGES = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)


class ColorJitter(ImageTransform):
    """An image with random brightness, contrast, saturation and hue, changed in random order.

    Args:
        brightness, contrast, saturation: the least and largest factor; a number d stands for (max(0, 1 - d), 1 + d),
            None for no change.
        hue: the least and largest turn of the colour circle, from -0.5 to 0.5; a number d stands for (-d, d).
    """

    def __init__(
        self,
        brightness: float | tuple[float, float] | None = 0,
        contrast: float | tuple[float, float] | None = 0,
        saturation: float | tuple[float, float] | None = 0,
        hue: float | tuple[float, float] | None = 0,
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
            None if between is None else uniform(between[0], between[1])
            for between in (brightness, contrast, saturation, hue)
        )
        return order, b, c, s, h

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        return {"changes": [(_CHANGES[index], factors[index]) for index in order.tolist()]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for change, factor in params["changes"]:
            if factor is not None:
                inpt = change(inpt, factor)
        return inpt

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )


class RandomGrayscale(ByChance):
    """An image's luma with probability `p`, in as many channels as the image has."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.rgb_to_grayscale(inpt, F.get_dimensions(inpt)[0])


class RandomInvert(ByChance):
    """Bright and dark exchanged with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.invert(inpt)


class RandomPosterize(ByChance):
    """The highest `bits` bits of each byte alone, with probability `p`."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.posterize(inpt, self.bits)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bits={self.bits},p={self.p})"


class RandomSolarize(ByChance):
    """Values from `threshold` on inverted, with probability `p`."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.solarize(inpt, self.threshold)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threshold={self.threshold},p={self.p})"


class RandomAdjustSharpness(ByChance):
    """An image sharper by `sharpness_factor` with probability `p`: 0 smooths it, 1 is the image."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.adjust_sharpness(inpt, self.sharpness_factor)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sharpness_factor={self.sharpness_factor},p={self.p})"


class RandomAutocontrast(ByChance):
    """The values of each channel stretched from 0 to full brightness, with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.autocontrast(inpt)


class RandomEqualize(ByChance):
    """The values of each channel spread so that all are about as frequent, with probability `p`."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.equalize(inpt)
