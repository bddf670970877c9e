"""What transforms share: parameters drawn once, then applied to an image, and to all that belongs to it in `v2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import corefw
from corefw.nn import Module
from corefw.vision.transforms import functional as F


class ImageTransform(Module):
    """Base of transforms: `make_params` draws what chance has a hand in, and `transform` applies it."""

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any] | None:
        """What is the same for all `inputs`, which belong together; None leaves them as they are."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of the inputs, transformed."""
        raise NotImplementedError(f"{type(self).__name__} has no method transform")

    def forward(self, img: Any) -> Any:
        params = self.make_params([img])
        return img if params is None else self.transform(img, params)


class ByChance(ImageTransform):
    """Base of transforms that are applied with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any] | None:
        return {} if uniform() < self.p else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


def listed(name: str, *items: Any) -> str:
    """The text of a transform that has others: one a line."""
    return "\n".join([f"{name}(", *(f"    {item}" for item in items), ")"])


def two_sizes(size: Any) -> Any:
    """Height and width, of a number or a sequence of one or two."""
    return size if not isinstance(size, Number) and len(size) == 2 else F._pair(size)


def uniform(low: float = 0.0, high: float = 1.0) -> float:
    """A random number between two."""
    return low + (high - low) * float(corefw.rand(1))


def below(bound: int) -> int:
    """A random whole number from 0 up to `bound`, which it is not."""
    return int(corefw.randint(0, bound, (1,)))


def height_and_width(inputs: Sequence[Any]) -> tuple[int, int]:
    """Height and width of inputs that belong together.

    Raises:
        ValueError: they differ.
    """
    sizes = {tuple(F.get_dimensions(inpt)[1:]) for inpt in inputs}
    if not sizes:
        raise TypeError("No image, video, mask, bounding box of keypoint was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple HxW dimensions in the sample: {', '.join(map(str, sorted(sizes)))}")
    return sizes.pop()  # type: ignore[return-value]


def checked_pair(name: str, pair: Any, lengths: Sequence[int] = (2,)) -> Any:
    """A sequence of one of these lengths, or None."""
    wanted = " or ".join(map(str, lengths))
    if pair is not None and not isinstance(pair, Sequence):
        raise TypeError(f"{name} should be a sequence of length {wanted}.")
    if pair is not None and len(pair) not in lengths:
        raise ValueError(f"{name} should be a sequence of length {wanted}.")
    return pair


def symmetric_range(name: str, given: Any, lengths: Sequence[int] = (2,)) -> list[float]:
    """The least and the largest angle; a number d stands for (-d, d)."""
    if isinstance(given, Number):
        if given < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        given = (-given, given)  # type: ignore[operator]
    return [float(value) for value in checked_pair(name, given, lengths)]


def checked_fill(fill: Any) -> Any:
    """The value outside of the old image: a number, one for each channel, or in `v2` a dictionary by type."""
    if not isinstance(fill, Sequence | Number | Mapping | None):
        raise TypeError("Fill should be either a sequence or a number.")
    return 0 if fill is None else fill


def fill_of(fill: Any, inpt: Any) -> Any:
    """The value outside of an input of this type."""
    return fill.get(type(inpt), fill.get("others", 0)) if isinstance(fill, Mapping) else fill
