"""How an image's values between its pixels are found."""

from __future__ import annotations

from enum import Enum
from typing import Any


class InterpolationMode(Enum):
    """The ways to resize and rotate; the last three are Pillow's alone.

    >>> InterpolationMode("bilinear")
    <InterpolationMode.BILINEAR: 'bilinear'>
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


#: Pillow's numbers of the modes
PILLOW_NUMBERS = {
    InterpolationMode.NEAREST: 0,
    InterpolationMode.NEAREST_EXACT: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
}
_BY_NAME = {mode.value: mode for mode in InterpolationMode}
_BY_NUMBER = {number: mode for mode, number in reversed(PILLOW_NUMBERS.items())}


def interpolation_mode(given: Any) -> InterpolationMode:
    """The mode itself, the mode of this name, or the mode of Pillow's number."""
    if isinstance(given, InterpolationMode):
        return given
    if isinstance(given, str) and given in _BY_NAME:
        return _BY_NAME[given]
    if isinstance(given, int) and given in _BY_NUMBER:
        return _BY_NUMBER[given]
    raise TypeError(
        "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant, "
        f"not {given!r}"
    )
