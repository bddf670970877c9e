"""Transforms of pictures that `transforms` has not: noise, JPEG's losses, colours, and two samples as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import corefw
from corefw import Tensor
from corefw.dispatch.declare import ops
from corefw.nn.functional import one_hot
from corefw.utils._pytree import tree_flatten, tree_unflatten
from corefw.vision.pillow import is_pillow_image
from corefw.vision.transforms.base import below, checked_pair, height_and_width, uniform
from corefw.vision.transforms.v2 import functional as F
from corefw.vision.transforms.v2.transform import Keeping, PictureTransform, TensorTransform, has_any
from corefw.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask, Video


class RGB(PictureTransform):
    """A picture with three channels, of one with three or with one."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.grayscale_to_rgb(inpt)


class RandomChannelPermutation(PictureTransform):
    """A picture's channels in random order."""

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"permutation": corefw.randperm(F.get_num_channels(inputs[0]))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.permute_channels(inpt, params["permutation"])


class RandomPhotometricDistort(PictureTransform):
    """A picture with random brightness, contrast, saturation and hue, and random order of channels.

    Args:
        brightness, contrast, saturation, hue: the least and largest of each, as `ColorJitter` applies them.
        p: how likely each of these changes and that of the order are.

    Source: W. Liu and others, SSD: Single Shot MultiBox Detector, 2015, arXiv:1512.02325.
    """

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        changes: list[tuple[Callable, Any]] = [
            (change, uniform(*between))
            for change, between in (
                (F.adjust_brightness, self.brightness),
                (F.adjust_saturation, self.saturation),
                (F.adjust_hue, self.hue),
            )
            if uniform() < self.p
        ]
        if uniform() < self.p:  # contrast comes right after brightness, or last
            early = int(bool(changes) and changes[0][0] is F.adjust_brightness)
            place = early if uniform() < 0.5 else len(changes)
            changes.insert(place, (F.adjust_contrast, uniform(*self.contrast)))
        if uniform() < self.p:
            changes.append((F.permute_channels, corefw.randperm(F.get_num_channels(inputs[0]))))
        return {"changes": changes}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for change, value in params["changes"]:
            inpt = change(inpt, value)
        return inpt


class GaussianNoise(TensorTransform):
    """A picture with normal noise.

    Args:
        mean, sigma: of the noise, as parts of full brightness, for bytes as well.
        clip: cut off what is darker than black or brighter than white.
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean = mean
        self.sigma = sigma
        self.clip = clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.gaussian_noise(inpt, self.mean, self.sigma, self.clip)


class JPEG(PictureTransform):
    """A picture of bytes as JPEG leaves it.

    Args:
        quality: from 1 to 100, or the least and the largest of which chance picks one.
    """

    def __init__(self, quality: int | Sequence[int]) -> None:
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError("quality can't be bool")
        between = [quality, quality] if isinstance(quality, int) else checked_pair("quality", quality)
        if not all(isinstance(value, int) for value in between) or not 1 <= between[0] <= between[1] <= 100:
            raise ValueError(f"quality must be an integer from 1 to 100, got {quality =}")
        self.quality = between

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"quality": self.quality[0] + below(self.quality[1] - self.quality[0] + 1)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.jpeg(inpt, params["quality"])


def labels_of(inputs: Any) -> Any:
    """The labels in a sample: its second part, or there or in the sample the value whose key says "label"."""
    found = inputs[1] if isinstance(inputs, tuple | list) else inputs
    if F.is_pure_tensor(found):
        return found
    if not isinstance(found, Mapping):
        raise ValueError(
            "When using the default labels_getter, the input passed to forward must be a dictionary or a two-tuple "
            f"whose second item is a dictionary or a tensor, but got {found} instead."
        )
    keys = [key for key in found if key.lower() == "labels"] + [key for key in found if "label" in key.lower()]
    if not keys:
        raise ValueError(
            "Could not infer where the labels are in the sample. Try passing a callable as the labels_getter "
            "parameter? If there are no labels in the sample by design, pass labels_getter=None."
        )
    return found[keys[0]]


def no_labels(inputs: Any) -> None:
    """None, whatever the sample."""


def labels_getter_of(given: Any) -> Callable[[Any], Any]:
    """What finds the labels in a sample: a function, "default" or None."""
    if given == "default":
        return labels_of
    if given is None:
        return no_labels
    if callable(given):
        return given
    raise ValueError(f"labels_getter should either be 'default', a callable, or None, but got {given}.")


class _Mixing(Keeping):
    """Base of transforms that mix each sample of a batch with the one before it."""

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default") -> None:
        super().__init__()
        self.alpha = float(alpha)
        self.num_classes = num_classes
        self._labels_getter = labels_getter_of(labels_getter)

    def _share(self) -> float:
        """A random number of the beta distribution, whose parameters are both alpha."""
        return float(ops.sample_dirichlet(corefw.full((2,), self.alpha))[0])

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_pillow_image, BoundingBoxes, KeyPoints, Mask):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints and masks."
            )

    def _checked_labels(self, labels: Any) -> Tensor:
        if not isinstance(labels, Tensor):
            raise ValueError(f"The labels must be a tensor, but got {type(labels)} instead.")
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels should be index based with shape (batch_size,) or probability based with shape "
                f"(batch_size, num_classes), but got a tensor of shape {tuple(labels.shape)} instead."
            )
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[-1]):
            raise ValueError(
                "When passing 2D labels, the number of elements in last dimension must match num_classes: "
                f"{labels.shape[-1]} != {self.num_classes}. You can Leave num_classes to None."
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        return labels

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = tree_flatten(sample)
        self.check_inputs(flat)
        labels = self._checked_labels(self._labels_getter(sample))
        chosen = [wanted and inpt is not labels for inpt, wanted in zip(flat, self._chosen(flat), strict=True)]
        pictures = [self._checked_batch(inpt, len(labels)) for inpt, wanted in zip(flat, chosen, strict=True) if wanted]
        params: Any = self.make_params(pictures)
        leaves = []
        for inpt, wanted in zip(flat, chosen, strict=True):
            if inpt is labels:
                leaves.append(self._mixed_labels(labels, params["share"]))
            else:
                leaves.append(self._applied(inpt, params) if wanted else inpt)
        return tree_unflatten(leaves, spec)

    def _checked_batch(self, inpt: Tensor, size: int) -> Tensor:
        dimensions = 5 if isinstance(inpt, Video) else 4
        if inpt.ndim != dimensions:
            raise ValueError(
                f"Expected a batched input with {dimensions} dims, but got {inpt.ndim} dimensions instead."
            )
        if len(inpt) != size:
            raise ValueError(
                "The batch size of the image or video does not match the batch size of the labels: "
                f"{len(inpt)} != {size}."
            )
        return inpt

    def _mixed_labels(self, labels: Tensor, share: float) -> Tensor:
        if labels.ndim == 1:
            labels = one_hot(labels, self.num_classes or -1)
        labels = labels if labels.is_floating_point() else labels.float()
        return labels.roll(1, 0) * (1.0 - share) + labels * share


class MixUp(_Mixing):
    """Each picture of a batch blended with the one before it, and its label likewise.

    Args:
        alpha: the parameter of the beta distribution that the share of each is drawn from.
        num_classes: needed if the labels are indices.
        labels_getter: finds the labels in a sample; by default its second part, or the value under "labels".

    Source: H. Zhang and others, mixup: Beyond Empirical Risk Minimization, 2017, arXiv:1710.09412.

    >>> import corefw as torch
    >>> images, labels = MixUp(num_classes=3)(torch.ones(2, 1, 4, 4), torch.tensor([0, 2]))
    >>> labels.shape, round(float(labels.sum()), 4)
    (torch.Size([2, 3]), 2.0)
    """

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"share": self._share()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.roll(1, 0) * (1.0 - params["share"]) + inpt * params["share"]


class CutMix(_Mixing):
    """A rectangle of each picture of a batch replaced by that of the one before it, and its label in that share.

    Args:
        alpha, num_classes, labels_getter: as `MixUp` takes them.

    Source: S. Yun and others, CutMix, 2019, arXiv:1905.04899.
    """

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        half = 0.5 * math.sqrt(1.0 - self._share())
        height, width = height_and_width(inputs)
        x, y = below(width), below(height)
        across, down = int(half * width), int(half * height)
        left, top, right, bottom = max(x - across, 0), max(y - down, 0), min(x + across, width), min(y + down, height)
        share = 1.0 - (right - left) * (bottom - top) / (width * height)
        return {"box": (left, top, right, bottom), "share": share}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        left, top, right, bottom = params["box"]
        mixed = inpt.as_subclass(Tensor).clone()
        mixed[..., top:bottom, left:right] = inpt.roll(1, 0)[..., top:bottom, left:right]
        return mixed
