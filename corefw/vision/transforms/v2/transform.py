"""The base of transforms that take an image with all that belongs to it, and those that hold others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import accumulate
from typing import Any

import corefw
from corefw import Tensor
from corefw.nn import Module, ModuleList
from corefw.utils._pytree import tree_flatten, tree_unflatten
from corefw.vision.pillow import is_pillow_image
from corefw.vision.transforms.base import ImageTransform, height_and_width, uniform
from corefw.vision.transforms.v2.functional import get_dimensions, is_pure_tensor, kept
from corefw.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

#: what is a picture: types, or functions that tell
PICTURES = (is_pure_tensor, Image, Video, is_pillow_image)


def check_type(obj: Any, types_or_checks: Sequence[Any]) -> bool:
    """Whether `obj` is of one of the types, or one of the functions says yes to it."""
    return any(isinstance(obj, one) if isinstance(one, type) else one(obj) for one in types_or_checks)


def has_any(flat_inputs: Sequence[Any], *types_or_checks: Any) -> bool:
    """Whether one of the inputs is of one of the types."""
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: Sequence[Any], *types_or_checks: Any) -> bool:
    """Whether for each of the types there is an input of it."""
    return all(has_any(flat_inputs, one) for one in types_or_checks)


def get_bounding_boxes(flat_inputs: Sequence[Any]) -> BoundingBoxes:
    """The boxes among the inputs."""
    for inpt in flat_inputs:
        if isinstance(inpt, BoundingBoxes):
            return inpt
    raise ValueError("No bounding boxes were found in the sample")


def query_size(flat_inputs: Sequence[Any]) -> tuple[int, int]:
    """Height and width of the pictures, masks and boxes among the inputs, which must agree."""
    return height_and_width(
        [inpt for inpt in flat_inputs if check_type(inpt, (*PICTURES, Mask, BoundingBoxes, KeyPoints))]
    )


def query_chw(flat_inputs: Sequence[Any]) -> tuple[int, int, int]:
    """Channels, height and width of the pictures among the inputs, which must agree."""
    found = {tuple(get_dimensions(inpt)) for inpt in flat_inputs if check_type(inpt, PICTURES)}
    if not found:
        raise TypeError("No image or video was found in the sample")
    if len(found) > 1:
        raise ValueError(f"Found multiple CxHxW dimensions in the sample: {', '.join(map(str, sorted(found)))}")
    return found.pop()  # type: ignore[return-value]


def get_keypoints(flat_inputs: Sequence[Any]) -> KeyPoints:
    """The points among the inputs."""
    for inpt in flat_inputs:
        if isinstance(inpt, KeyPoints):
            return inpt
    raise ValueError("No keypoints were found in the sample")


class Transform(ImageTransform):
    """Base of transforms of samples: trees of tuples, lists and dictionaries, of any number of arguments.

    Of a sample, all pictures, masks and boxes are transformed with the same parameters; the first plain tensor is taken
    for a picture where there is no other. Everything else, as labels, is passed on. A subclass has ``transform(inpt,
    params)``, and ``make_params(flat_inputs)`` if chance or the sizes have a hand in it.

    >>> class Halved(Transform):
    ...     def transform(self, inpt, params):
    ...         return inpt / 2
    >>> Halved()(corefw.ones(2), "label")
    (tensor([0.5000, 0.5000]), 'label')
    """

    #: what is transformed: types, or functions that tell
    _transformed_types: tuple[Any, ...] = (Tensor, is_pillow_image)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Raise if the sample is none that can be transformed."""

    def _applied(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.transform(inpt, params)

    def _chosen(self, flat_inputs: list[Any]) -> list[bool]:
        """Which of the inputs are transformed."""
        plain_counts = not has_any(flat_inputs, Image, Video, is_pillow_image)
        chosen = []
        for inpt in flat_inputs:
            wanted = check_type(inpt, self._transformed_types)
            if wanted and is_pure_tensor(inpt):
                wanted, plain_counts = plain_counts, False
            chosen.append(wanted)
        return chosen

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = tree_flatten(sample)
        self.check_inputs(flat)
        chosen = self._chosen(flat)
        params = self.make_params([inpt for inpt, wanted in zip(flat, chosen, strict=True) if wanted])
        if params is None:
            return sample
        leaves = [self._applied(inpt, params) if wanted else inpt for inpt, wanted in zip(flat, chosen, strict=True)]
        return tree_unflatten(leaves, spec)

    def extra_repr(self) -> str:
        told = {name: value for name, value in vars(self).items() if name != "training" and not name.startswith("_")}
        shown = bool | int | float | str | tuple | list | Enum
        return ", ".join(f"{name}={value}" for name, value in told.items() if isinstance(value, shown))

    __repr__ = Module.__repr__


class Keeping(Transform):
    """Base of transforms whose results say of themselves what their inputs did."""

    def _applied(self, inpt: Any, params: dict[str, Any]) -> Any:
        return kept(self.transform(inpt, params), inpt)


class PictureTransform(Keeping):
    """Base of transforms of pictures alone: masks and boxes stay as they are."""

    _transformed_types = PICTURES


class LonePictureTransform(PictureTransform):
    """Base of transforms of pictures which masks and boxes would no longer fit."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, BoundingBoxes, KeyPoints, Mask):
            raise TypeError(f"BoundingBoxes, KeyPoints and Masks are not supported by {type(self).__name__}()")


class TensorTransform(PictureTransform):
    """Base of transforms of tensors alone."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_pillow_image):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")


class _Holding(Transform):
    """Base of what holds transforms."""

    def __init__(self, transforms: Any) -> None:
        super().__init__()
        if not isinstance(transforms, Sequence | ModuleList):
            raise TypeError("Argument transforms should be a sequence of callables")
        if not len(transforms):
            raise ValueError("Pass at least one transform")
        self.transforms = transforms

    def _in_turn(self, transforms: Any, inputs: tuple) -> Any:
        """The transforms one after the other."""
        for transform in transforms:
            result = transform(*inputs)
            inputs = result if len(inputs) > 1 else (result,)
        return inputs if len(inputs) > 1 else inputs[0]

    def extra_repr(self) -> str:
        return "\n".join(f"    {transform}" for transform in self.transforms)


class Compose(_Holding):
    """One transform after the other.

    >>> Compose([len])([1, 2])
    2
    """

    def __init__(self, transforms: Sequence[Callable]) -> None:
        super().__init__(transforms)

    def forward(self, *inputs: Any) -> Any:
        return self._in_turn(self.transforms, inputs)


class RandomApply(_Holding):
    """All of `transforms` with probability `p`, else none of them."""

    def __init__(self, transforms: Sequence[Callable] | ModuleList, p: float = 0.5) -> None:
        super().__init__(transforms)
        if not 0 <= p <= 1:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        return self._in_turn(self.transforms if uniform() < self.p else (), inputs)


class RandomChoice(_Holding):
    """One of the transforms, each as likely as the other or as its weight in `p` says."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        weights = [1.0] * len(transforms) if p is None else p
        if len(weights) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(weights)} != {len(transforms)}")
        self.p = [weight / sum(weights) for weight in weights]

    def forward(self, *inputs: Any) -> Any:
        sums = list(accumulate(self.p))
        return self.transforms[bisect_right(sums, uniform(0.0, sums[-1]), hi=len(sums) - 1)](*inputs)


class RandomOrder(_Holding):
    """All of the transforms, in random order."""

    def __init__(self, transforms: Sequence[Callable]) -> None:
        super().__init__(transforms)

    def forward(self, *inputs: Any) -> Any:
        order = corefw.randperm(len(self.transforms)).tolist()
        return self._in_turn([self.transforms[index] for index in order], inputs)
