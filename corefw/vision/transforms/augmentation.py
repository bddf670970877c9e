"""Augmentation by a random choice among changes of an image, each of a magnitude."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import corefw
from corefw import Tensor
from corefw.dispatch.declare import ops
from corefw.vision.pillow import is_pillow_image
from corefw.vision.transforms import functional as F
from corefw.vision.transforms.base import ImageTransform, below, checked_fill, fill_of, height_and_width
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode
from corefw.vision.transforms.values import white


class AutoAugmentPolicy(Enum):
    """The data sets that policies were found on.

    >>> AutoAugmentPolicy("cifar10")
    <AutoAugmentPolicy.CIFAR10: 'cifar10'>
    """

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


#: E. Cubuk and others, AutoAugment: Learning Augmentation Strategies from Data, 2018, arXiv:1805.09501, appendix: one
#: of the lines is drawn; each of its changes has a probability and, where it has a magnitude, its number
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 0.4 8, Rotate 0.6 9
        Solarize 0.6 5, AutoContrast 0.6
        Equalize 0.8, Equalize 0.6
        Posterize 0.6 7, Posterize 0.6 6
        Equalize 0.4, Solarize 0.2 4
        Equalize 0.4, Rotate 0.8 8
        Solarize 0.6 3, Equalize 0.6
        Posterize 0.8 5, Equalize 1.0
        Rotate 0.2 3, Solarize 0.6 8
        Equalize 0.6, Posterize 0.4 6
        Rotate 0.8 8, Color 0.4 0
        Rotate 0.4 9, Equalize 0.6
        Equalize 0.0, Equalize 0.8
        Invert 0.6, Equalize 1.0
        Color 0.6 4, Contrast 1.0 8
        Rotate 0.8 8, Color 1.0 2
        Color 0.8 8, Solarize 0.8 7
        Sharpness 0.4 7, Invert 0.6
        ShearX 0.6 5, Equalize 1.0
        Color 0.4 0, Equalize 0.6
        Equalize 0.4, Solarize 0.2 4
        Solarize 0.6 5, AutoContrast 0.6
        Invert 0.6, Equalize 1.0
        Color 0.6 4, Contrast 1.0 8
        Equalize 0.8, Equalize 0.6
    """,
    AutoAugmentPolicy.CIFAR10: """
        Invert 0.1, Contrast 0.2 6
        Rotate 0.7 2, TranslateX 0.3 9
        Sharpness 0.8 1, Sharpness 0.9 3
        ShearY 0.5 8, TranslateY 0.7 9
        AutoContrast 0.5, Equalize 0.9
        ShearY 0.2 7, Posterize 0.3 7
        Color 0.4 3, Brightness 0.6 7
        Sharpness 0.3 9, Brightness 0.7 9
        Equalize 0.6, Equalize 0.5
        Contrast 0.6 7, Sharpness 0.6 5
        Color 0.7 7, TranslateX 0.5 8
        Equalize 0.3, AutoContrast 0.4
        TranslateY 0.4 3, Sharpness 0.2 6
        Brightness 0.9 6, Color 0.2 8
        Solarize 0.5 2, Invert 0.0
        Equalize 0.2, AutoContrast 0.6
        Equalize 0.2, Equalize 0.6
        Color 0.9 9, Equalize 0.6
        AutoContrast 0.8, Solarize 0.2 8
        Brightness 0.1 3, Color 0.7 0
        Solarize 0.4 5, AutoContrast 0.9
        TranslateY 0.9 9, TranslateY 0.7 9
        AutoContrast 0.9, Solarize 0.8 3
        Equalize 0.8, Invert 0.1
        TranslateY 0.7 9, AutoContrast 0.9
    """,
    AutoAugmentPolicy.SVHN: """
        ShearX 0.9 4, Invert 0.2
        ShearY 0.9 8, Invert 0.7
        Equalize 0.6, Solarize 0.6 6
        Invert 0.9, Equalize 0.6
        Equalize 0.6, Rotate 0.9 3
        ShearX 0.9 4, AutoContrast 0.8
        ShearY 0.9 8, Invert 0.4
        ShearY 0.9 5, Solarize 0.2 6
        Invert 0.9, AutoContrast 0.8
        Equalize 0.6, Rotate 0.9 3
        ShearX 0.9 4, Solarize 0.3 3
        ShearY 0.8 8, Invert 0.7
        Equalize 0.9, TranslateY 0.6 6
        Invert 0.9, Equalize 0.6
        Contrast 0.3 3, Rotate 0.8 4
        Invert 0.8, TranslateY 0.0 2
        ShearY 0.7 6, Solarize 0.4 8
        Invert 0.6, Rotate 0.8 4
        ShearY 0.3 7, TranslateX 0.9 3
        ShearX 0.1 6, Invert 0.6
        Solarize 0.7 2, TranslateY 0.6 7
        ShearY 0.8 4, Invert 0.8
        ShearX 0.7 9, TranslateY 0.8 3
        ShearY 0.8 5, AutoContrast 0.7
        ShearX 0.7 2, Invert 0.1
    """,
}


def _policies(policy: AutoAugmentPolicy) -> list[tuple[tuple[str, float, int | None], ...]]:
    if policy not in _POLICIES:
        raise ValueError(f"The provided policy {policy} is not recognized.")
    found = []
    for line in _POLICIES[policy].strip().splitlines():
        changes = [change.split() for change in line.split(",")]
        found.append(tuple((name, float(p), int(number[0]) if number else None) for name, p, *number in changes))
    return found


class _Magnitudes(NamedTuple):
    """The magnitudes of a change, from the first to the last; chance gives half of them the other sign if `signed`."""

    first: float
    last: float
    signed: bool = True


_NONE: _Magnitudes | None = None  # a change without a magnitude


def _magnitude(between: _Magnitudes | None, index: int, bins: int, name: str) -> float:
    """The magnitude of this index, 0 of a change that has none."""
    if between is None:
        return 0.0
    first, last, _ = between
    if name == "Posterize":
        return first - round(index / ((bins - 1) / (first - last)))
    return float(corefw.linspace(first, last, bins)[index])


def _signed(between: _Magnitudes | None, magnitude: float) -> float:
    return -magnitude if between is not None and between.signed and below(2) else magnitude


def _space(
    shear: float, translate: tuple[float, float], rotate: float, factor: float, bits: tuple[int, int],
) -> dict[str, _Magnitudes | None]:  # fmt: skip
    """The changes and their magnitudes, in the order in which chance numbers them."""
    return {
        "ShearX": _Magnitudes(0.0, shear),
        "ShearY": _Magnitudes(0.0, shear),
        "TranslateX": _Magnitudes(0.0, translate[0]),
        "TranslateY": _Magnitudes(0.0, translate[1]),
        "Rotate": _Magnitudes(0.0, rotate),
        **dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), _Magnitudes(0.0, factor)),
        "Posterize": _Magnitudes(*bits, False),
        "Solarize": _Magnitudes(255.0, 0.0, False),
        "AutoContrast": _NONE,
        "Equalize": _NONE,
    }


_FACTORS = {
    "Brightness": F.adjust_brightness,
    "Color": F.adjust_saturation,
    "Contrast": F.adjust_contrast,
    "Sharpness": F.adjust_sharpness,
}
_PLAIN = {"AutoContrast": F.autocontrast, "Equalize": F.equalize, "Invert": F.invert}


def _changed(img: Any, name: str, magnitude: float, mode: InterpolationMode, fill: Any) -> Any:
    """An image changed as `name` says."""
    if name == "Identity":
        return img
    if name in _PLAIN:
        return _PLAIN[name](img)
    if name in _FACTORS:
        return _FACTORS[name](img, 1.0 + magnitude)
    if name == "Posterize":
        return F.posterize(img, int(magnitude))
    if name == "Solarize":
        return F.solarize(img, magnitude * (white(img.dtype) / 255 if isinstance(img, Tensor) else 1))
    if name == "Rotate":
        return F.rotate(img, magnitude, mode, fill=fill)
    along = (1, 0) if name.endswith("X") else (0, 1)
    if name.startswith("Translate"):
        return F.affine(img, 0.0, [int(magnitude) * part for part in along], 1.0, [0.0, 0.0], mode, fill)
    degrees = math.degrees(math.atan(magnitude))  # the policies' shears are tangents, and leave the first corner alone
    return F.affine(img, 0.0, [0, 0], 1.0, [degrees * part for part in along], mode, fill, [0, 0])


class _Augmentation(ImageTransform):
    """Base of augmentations: `make_params` draws the changes and their magnitudes."""

    interpolation: InterpolationMode
    fill: Any

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for name, magnitude in params["changes"]:
            inpt = _changed(inpt, name, magnitude, self.interpolation, fill_of(self.fill, inpt))
        return inpt

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={getattr(self, name)}" for name in (*self._told, "interpolation", "fill"))
        return f"{type(self).__name__}({text})"

    _told: tuple[str, ...] = ()


class AutoAugment(_Augmentation):
    """Two changes of an image, from a policy that was found to suit a data set.

    Args:
        policy: for which data set.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image.

    Source: E. Cubuk and others, AutoAugment: Learning Augmentation Strategies from Data, 2018, arXiv:1805.09501.

    >>> import corefw as torch
    >>> AutoAugment()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.policy = policy
        self.interpolation = interpolation_mode(interpolation)
        self.fill = None if fill is None else checked_fill(fill)
        self.policies = _policies(policy)

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """A random line of the policy; two random numbers that decide on its changes, and two signs."""
        return below(transform_num), corefw.rand(2), corefw.randint(0, 2, (2,))

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height, width = height_and_width(inputs)
        space = {**_space(0.3, (150 / 331 * width, 150 / 331 * height), 30.0, 0.9, (8, 4)), "Invert": _NONE}
        line, chances, signs = self.get_params(len(self.policies))
        drawn = zip(self.policies[line], chances.tolist(), signs.tolist(), strict=True)
        changes = []
        for (name, p, number), chance, sign in drawn:
            if chance <= p:
                between = space[name]
                magnitude = 0.0 if number is None else _magnitude(between, number, 10, name)
                changes.append((name, -magnitude if between is not None and between.signed and not sign else magnitude))
        return {"changes": changes}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(policy={self.policy}, fill={self.fill})"


class RandAugment(_Augmentation):
    """Changes of an image drawn from fourteen, all of the same magnitude.

    Args:
        num_ops: how many.
        magnitude: the number of the magnitude.
        num_magnitude_bins: how many magnitudes there are.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image.

    Source: E. Cubuk and others, RandAugment, 2019, arXiv:1909.13719.

    >>> RandAugment(magnitude=5)
    RandAugment(num_ops=2, magnitude=5, num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None)
    """

    _told = ("num_ops", "magnitude", "num_magnitude_bins")

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation_mode(interpolation)
        self.fill = None if fill is None else checked_fill(fill)

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height, width = height_and_width(inputs)
        space = {"Identity": _NONE, **_space(0.3, (150 / 331 * width, 150 / 331 * height), 30.0, 0.9, (8, 4))}
        changes = []
        for _ in range(self.num_ops):
            name, between = list(space.items())[below(len(space))]
            magnitude = _magnitude(between, self.magnitude, self.num_magnitude_bins, name)
            changes.append((name, _signed(between, magnitude)))
        return {"changes": changes}


class TrivialAugmentWide(_Augmentation):
    """One change of an image drawn from fourteen, of a random magnitude.

    Args:
        num_magnitude_bins: how many magnitudes there are.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image.

    Source: S. Müller and F. Hutter, TrivialAugment, 2021, arXiv:2103.10158.
    """

    _told = ("num_magnitude_bins",)

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation_mode(interpolation)
        self.fill = None if fill is None else checked_fill(fill)

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        space = {"Identity": _NONE, **_space(0.99, (32.0, 32.0), 135.0, 0.99, (8, 2))}
        name, between = list(space.items())[below(len(space))]
        index = 0 if between is None else below(self.num_magnitude_bins)
        return {"changes": [(name, _signed(between, _magnitude(between, index, self.num_magnitude_bins, name)))]}


class AugMix(_Augmentation):
    """An image mixed with some that chains of changes made of it.

    Args:
        severity: how many of the ten magnitudes are drawn from, the least first.
        mixture_width: how many chains.
        chain_depth: changes in a chain; drawn from 1, 2 and 3 if negative.
        alpha: the parameter of the Dirichlet distributions that the weights are drawn from.
        all_ops: change brightness, saturation, contrast and sharpness as well.
        interpolation: for tensors nearest or bilinear.
        fill: the value outside of the old image.

    Source: D. Hendrycks and others, AugMix, 2019, arXiv:1912.02781.
    """

    _told = ("severity", "mixture_width", "chain_depth", "alpha", "all_ops")

    def __init__(
        self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0,
        all_ops: bool = True, interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        fill: float | Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops
        self.interpolation = interpolation_mode(interpolation)
        self.fill = None if fill is None else checked_fill(fill)

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height, width = height_and_width(inputs)
        space = _space(0.3, (width / 3, height / 3), 30.0, 0.9, (4, 0))
        names = [name for name in space if self.all_ops or name not in _FACTORS]
        chains = []
        for _ in range(self.mixture_width):
            chain = []
            for _ in range(self.chain_depth if self.chain_depth > 0 else 1 + below(3)):
                name = names[below(len(names))]
                index = 0 if space[name] is None else below(self.severity)
                chain.append((name, _signed(space[name], _magnitude(space[name], index, 10, name))))
            chains.append(chain)
        own, rest = ops.sample_dirichlet(corefw.full((2,), float(self.alpha))).tolist()
        shares = ops.sample_dirichlet(corefw.full((self.mixture_width,), float(self.alpha))).tolist()
        return {"chains": chains, "own": own, "shares": [rest * share for share in shares]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if is_pillow_image(inpt):
            return F.to_pil_image(self.transform(F.pil_to_tensor(inpt), params), inpt.mode)
        mixed = params["own"] * inpt
        for chain, share in zip(params["chains"], params["shares"], strict=True):
            mixed = mixed + share * super().transform(inpt, {"changes": chain})
        return mixed.to(inpt.dtype)
