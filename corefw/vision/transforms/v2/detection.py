"""Transforms for detection: crops that heed the boxes, sizes drawn by chance, and the boxes' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import corefw
from corefw import Tensor
from corefw.utils._pytree import tree_flatten, tree_unflatten
from corefw.vision.ops import box_iou
from corefw.vision.pillow import is_pillow_image
from corefw.vision.transforms.base import (
    ByChance,
    below,
    checked_fill,
    checked_pair,
    fill_of,
    height_and_width,
    uniform,
)
from corefw.vision.transforms.modes import InterpolationMode, interpolation_mode
from corefw.vision.transforms.on_boxes import converted
from corefw.vision.transforms.v2 import functional as F
from corefw.vision.transforms.v2.pictures import labels_getter_of
from corefw.vision.transforms.v2.transform import Keeping, Transform, get_bounding_boxes, get_keypoints, has_any
from corefw.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, KeyPoints, Mask, wrap


class RandomIoUCrop(Keeping):
    """A random rectangle that overlaps a box enough; boxes whose middle it lacks become empty.

    `SanitizeBoundingBoxes` removes these, with their labels.

    Args:
        min_scale, max_scale: the least and largest part of each of the image's edges.
        min_aspect_ratio, max_aspect_ratio: the least and largest quotient of width and height.
        sampler_options: the least intersections over union, of which chance picks one; 1 or more stands for no crop.
        trials: draws before another of these is picked.

    Source: W. Liu and others, SSD: Single Shot MultiBox Detector, 2015, arXiv:1512.02325.
    """

    def __init__(
        self, min_scale: float = 0.3, max_scale: float = 1.0, min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0, sampler_options: Sequence[float] | None = None, trials: int = 40,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.min_aspect_ratio = min_aspect_ratio
        self.max_aspect_ratio = max_aspect_ratio
        self.options = list(sampler_options) if sampler_options else [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if not has_any(flat_inputs, BoundingBoxes) or not has_any(
            flat_inputs, is_pillow_image, Image, F.is_pure_tensor
        ):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images and bounding boxes. "
                "Sample can also contain masks."
            )

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any] | None:
        height, width = height_and_width(inputs)
        given = get_bounding_boxes(inputs)
        boxes = converted(given.as_subclass(Tensor), given.format, BoundingBoxFormat.XYXY)
        while True:
            least = self.options[below(len(self.options))]
            if least >= 1:
                return None
            for _ in range(self.trials):
                if params := self._tried(height, width, boxes, least):
                    return params

    def _tried(self, height: int, width: int, boxes: Tensor, least: float) -> dict[str, Any] | None:
        """A random rectangle, if it overlaps the boxes enough."""
        across = int(width * uniform(self.min_scale, self.max_scale))
        down = int(height * uniform(self.min_scale, self.max_scale))
        if not across or not down or not self.min_aspect_ratio <= across / down <= self.max_aspect_ratio:
            return None
        left, top = int((width - across) * uniform()), int((height - down) * uniform())
        x, y = 0.5 * (boxes[:, 0] + boxes[:, 2]), 0.5 * (boxes[:, 1] + boxes[:, 3])
        inside = (left < x) & (x < left + across) & (top < y) & (y < top + down)
        if not bool(inside.any()):
            return None
        rectangle = corefw.tensor([[left, top, left + across, top + down]], dtype=boxes.dtype, device=boxes.device)
        if float(box_iou(boxes[inside], rectangle).max()) < least:
            return None
        return {"rectangle": (top, left, down, across), "inside": inside}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        top, left, height, width = params["rectangle"]
        cut = F.crop(inpt, top, left, height, width)
        if isinstance(cut, BoundingBoxes):
            return wrap(cut.as_subclass(Tensor) * params["inside"][:, None].to(cut.dtype), like=cut)
        return cut


class RandomZoomOut(ByChance, Keeping):
    """An image somewhere on a larger canvas, with probability `p`.

    Args:
        fill: the value of the canvas, or a dictionary by type.
        side_range: the least and largest quotient of the canvas's edge and the image's.
        p: how likely that is.
    """

    def __init__(self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        self.fill = checked_fill(fill)
        self.side_range = checked_pair("side_range", side_range)
        if not 1 <= side_range[0] <= side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any] | None:
        if super().make_params(inputs) is None:
            return None
        height, width = height_and_width(inputs)
        factor = uniform(*self.side_range)
        across, down = int(width * factor) - width, int(height * factor) - height
        left, top = int(across * uniform()), int(down * uniform())
        return {"padding": [left, top, across - left, down - top]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pad(inpt, params["padding"], fill_of(self.fill, inpt))

    __repr__ = Transform.__repr__


class _Resizing(Keeping):
    """Base of transforms that draw a size."""

    def __init__(self, interpolation: Any, antialias: bool | None) -> None:
        super().__init__()
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.resize(inpt, params["size"], self.interpolation, antialias=self.antialias)


class ScaleJitter(_Resizing):
    """An image that fits into `target_size`, times a random factor.

    Args:
        target_size: the edges that the image would fit into.
        scale_range: the least and largest factor.
        interpolation, antialias: as `Resize` takes them.

    Source: G. Ghiasi and others, Simple Copy-Paste, 2020, arXiv:2012.07177.
    """

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: InterpolationMode | str | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias)
        self.target_size = target_size
        self.scale_range = scale_range

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height, width = height_and_width(inputs)
        factor = min(self.target_size[1] / height, self.target_size[0] / width) * uniform(*self.scale_range)
        return {"size": (int(height * factor), int(width * factor))}


class RandomShortestSize(_Resizing):
    """An image whose smaller edge is one of `min_size`, unless the larger one would pass `max_size`."""

    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = None,
        interpolation: InterpolationMode | str | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias)
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        height, width = height_and_width(inputs)
        factor = self.min_size[below(len(self.min_size))] / min(height, width)
        if self.max_size is not None:
            factor = min(factor, self.max_size / max(height, width))
        return {"size": (int(height * factor), int(width * factor))}


class RandomResize(_Resizing):
    """An image whose smaller edge is a random number from `min_size` up to `max_size`, which it is not."""

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: InterpolationMode | str | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias)
        self.min_size = min_size
        self.max_size = max_size

    def make_params(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {"size": [self.min_size + below(self.max_size - self.min_size)]}


class ConvertBoundingBoxFormat(Transform):
    """Boxes in another format, as `BoundingBoxFormat` or its name.

    >>> boxes = BoundingBoxes([1, 2, 3, 5], format="XYXY", canvas_size=(9, 9))
    >>> ConvertBoundingBoxFormat("XYWH")(boxes).tolist()
    [[1, 2, 2, 3]]
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, format: BoundingBoxFormat | str) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Boxes cut off at their image's edges; `clamping_mode` "auto" is the boxes' own."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class SetClampingMode(Transform):
    """Boxes that later transforms cut off at their image's edges ("soft", "hard") or do not (None)."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"clamping_mode must be soft, hard or None, got {clamping_mode}")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return wrap(inpt.as_subclass(Tensor), like=inpt, clamping_mode=self.clamping_mode)


def _checked_labels(found: Any, owners: Tensor) -> Sequence[Tensor]:
    """The labels of a sample, as many as there are boxes or points."""
    labels = [] if found is None else [found] if isinstance(found, Tensor) else found
    if not isinstance(labels, tuple | list) or not all(isinstance(label, Tensor) for label in labels):
        raise ValueError(f"The labels in the input to forward() must be a tensor or None, got {type(found)} instead.")
    for label in labels:
        if len(owners) != len(label):
            raise ValueError(
                f"Number of boxes or keypoints (shape={tuple(owners.shape)}) must match the number of labels. "
                f"Found labels with shape={tuple(label.shape)})."
            )
    return labels


class SanitizeBoundingBoxes(Transform):
    """Boxes that are too small or pass their image's edges removed, with their labels and masks.

    Args:
        min_size: the least width and height.
        min_area: the least area.
        labels_getter: finds in a sample what belongs to each box, a tensor or several; by default what `MixUp` takes
            for labels; None if there is nothing.

    >>> import corefw as torch
    >>> boxes = BoundingBoxes([[0, 0, 4, 4], [3, 3, 3, 8]], format="XYXY", canvas_size=(9, 9))
    >>> sample = SanitizeBoundingBoxes()({"boxes": boxes, "labels": torch.tensor([5, 6])})
    >>> sample["boxes"].tolist(), sample["labels"]
    ([[0, 0, 4, 4]], tensor([5]))
    """

    def __init__(
        self,
        min_size: float = 1.0,
        min_area: float = 1.0,
        labels_getter: Callable[[Any], Any] | str | None = "default",
    ) -> None:
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size = min_size
        self.min_area = min_area
        self.labels_getter = labels_getter
        self._labels_getter = labels_getter_of(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = tree_flatten(sample)
        boxes = get_bounding_boxes(flat)
        labels = _checked_labels(self._labels_getter(sample), boxes)
        _, valid = F.sanitize_bounding_boxes(boxes, min_size=self.min_size, min_area=self.min_area)
        leaves = []
        for inpt in flat:
            is_label = any(inpt is label for label in labels)
            of_boxes = isinstance(inpt, Mask) and inpt.ndim > 2 and len(inpt) == len(boxes)
            leaves.append(F.kept(inpt[valid], inpt) if is_label or of_boxes or inpt is boxes else inpt)
        return tree_unflatten(leaves, spec)


class ClampKeyPoints(Transform):
    """Points brought to the nearest pixels of their image."""

    _transformed_types = (KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_keypoints(inpt)


class SanitizeKeyPoints(Transform):
    """Points outside of their image removed, with their labels; of groups of points, those that are not all within.

    Args:
        labels_getter: finds in a sample what belongs to each point, as `SanitizeBoundingBoxes` takes it.
    """

    def __init__(self, labels_getter: Callable[[Any], Any] | str | None = None) -> None:
        super().__init__()
        self.labels_getter = labels_getter
        self._labels_getter = labels_getter_of(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = tree_flatten(sample)
        points = get_keypoints(flat)
        labels = _checked_labels(self._labels_getter(sample), points)
        _, valid = F.sanitize_keypoints(points)
        leaves = []
        for inpt in flat:
            belongs = inpt is points or any(inpt is label for label in labels)
            leaves.append(F.kept(inpt[valid], inpt) if belongs else inpt)
        return tree_unflatten(leaves, spec)
