"""Regions from the level of a pyramid that fits their size."""

from __future__ import annotations

import math

import corefw
from corefw import Tensor
from corefw.nn import Module, functional
from corefw.vision.ops._regions import pair
from corefw.vision.ops.boxes import box_area
from corefw.vision.ops.roi_align import Size, roi_align

__all__ = ["LevelMapper", "MultiScaleRoIAlign", "initLevelMapper"]


class LevelMapper:
    """Tells a box's level: Lin et al., "Feature pyramid networks for object detection", 2017, equation 1.

    Args:
        k_min, k_max: the first and the last level.
        canonical_scale, canonical_level: the side of a square box, and its level.
        eps: added before rounding down.

    >>> LevelMapper(2, 5)([corefw.tensor([[0.0, 0.0, 224.0, 224.0], [0.0, 0.0, 50.0, 50.0]])]).tolist()
    [2, 0]
    """

    def __init__(
        self, k_min: int, k_max: int, canonical_scale: int = 224, canonical_level: int = 4, eps: float = 1e-6
    ) -> None:
        self.k_min, self.k_max, self.s0, self.lvl0, self.eps = k_min, k_max, canonical_scale, canonical_level, eps

    def __call__(self, boxlists: list[Tensor]) -> Tensor:
        """Of each box (L, 4) its level, counted from the first."""
        sides = corefw.cat([box_area(boxes) for boxes in boxlists]).sqrt()
        levels = (self.lvl0 + (sides / self.s0).log2() + self.eps).floor()
        return (levels.clamp(self.k_min, self.k_max) - self.k_min).long()


def initLevelMapper(
    k_min: int, k_max: int, canonical_scale: int = 224, canonical_level: int = 4, eps: float = 1e-6
) -> LevelMapper:
    """A `LevelMapper`."""
    return LevelMapper(k_min, k_max, canonical_scale, canonical_level, eps)


class MultiScaleRoIAlign(Module):
    """`roi_align` of each box on the level of features that fits its size.

    Args:
        featmap_names: which features to use.
        output_size: bins of a box, height and width.
        sampling_ratio: samples of a bin along each dimension.
        canonical_scale, canonical_level: of `LevelMapper`.

    ``forward(x, boxes, image_shapes)`` takes a dict of features, for each picture its boxes (L, 4), and the pictures'
    heights and widths before the network; it gives (K, C, *output_size). Scales are found in the first call.

    >>> import corefw as torch
    >>> pool = MultiScaleRoIAlign(["a", "b"], 3, 2)
    >>> x = {"a": torch.zeros(1, 5, 16, 16), "b": torch.zeros(1, 5, 8, 8), "other": torch.zeros(1)}
    >>> pool(x, [torch.tensor([[0.0, 0.0, 40.0, 50.0]])], [(64, 64)]).shape, pool.scales
    (torch.Size([1, 5, 3, 3]), [0.25, 0.125])
    """

    def __init__(
        self, featmap_names: list[str], output_size: Size, sampling_ratio: int, *, canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:  # fmt: skip
        super().__init__()
        self.featmap_names, self.output_size, self.sampling_ratio = featmap_names, pair(output_size), sampling_ratio
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level
        self.scales: list[float] | None = None
        self.map_levels: LevelMapper | None = None

    def _set_up(self, features: list[Tensor], image_shapes: list[tuple[int, int]]) -> tuple[list[float], LevelMapper]:
        """The scales of the features, powers of 2, and what tells a box's level."""
        if not image_shapes:
            raise ValueError("images list should not be empty")
        largest = [max(sizes) for sizes in zip(*image_shapes, strict=True)]
        scales = []
        for feature in features:
            powers = {round(math.log2(size / whole)) for size, whole in zip(feature.shape[-2:], largest, strict=True)}
            if len(powers) > 1:
                raise ValueError(f"features of size {tuple(feature.shape[-2:])} have no one scale of {tuple(largest)}")
            scales.append(2.0 ** powers.pop())
        first, last = (-int(math.log2(scale)) for scale in (scales[0], scales[-1]))
        return scales, LevelMapper(first, last, self.canonical_scale, self.canonical_level)

    def forward(self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: list[tuple[int, int]]) -> Tensor:
        features = [feature for name, feature in x.items() if name in self.featmap_names]
        if self.scales is None or self.map_levels is None:
            self.scales, self.map_levels = self._set_up(features, image_shapes)
        if len(features) == 1:
            return roi_align(features[0], boxes, self.output_size, self.scales[0], self.sampling_ratio)
        rois = corefw.cat([functional.pad(one, (1, 0), value=place) for place, one in enumerate(boxes)])
        levels = self.map_levels(boxes)
        members = [(levels == level).nonzero()[:, 0] for level in range(len(features))]
        parts = [
            roi_align(feature, rois[here], self.output_size, scale, self.sampling_ratio)
            for feature, here, scale in zip(features, members, self.scales, strict=True)
        ]
        return corefw.cat(parts)[corefw.cat(members).argsort()]

    def extra_repr(self) -> str:
        names = ("featmap_names", "output_size", "sampling_ratio")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)
