"""RegNets: Radosavovic et al., "Designing network design spaces", 2020."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, draw
from corefw.vision.models._utils import _make_divisible
from corefw.vision.models.presets import BICUBIC, Trained, trained_on_imagenet
from corefw.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "RegNet",
    "RegNet_X_1_6GF_Weights",
    "RegNet_X_3_2GF_Weights",
    "RegNet_X_8GF_Weights",
    "RegNet_X_16GF_Weights",
    "RegNet_X_32GF_Weights",
    "RegNet_X_400MF_Weights",
    "RegNet_X_800MF_Weights",
    "RegNet_Y_1_6GF_Weights",
    "RegNet_Y_3_2GF_Weights",
    "RegNet_Y_8GF_Weights",
    "RegNet_Y_16GF_Weights",
    "RegNet_Y_32GF_Weights",
    "RegNet_Y_128GF_Weights",
    "RegNet_Y_400MF_Weights",
    "RegNet_Y_800MF_Weights",
    "regnet_x_1_6gf",
    "regnet_x_3_2gf",
    "regnet_x_8gf",
    "regnet_x_16gf",
    "regnet_x_32gf",
    "regnet_x_400mf",
    "regnet_x_800mf",
    "regnet_y_1_6gf",
    "regnet_y_3_2gf",
    "regnet_y_8gf",
    "regnet_y_16gf",
    "regnet_y_32gf",
    "regnet_y_128gf",
    "regnet_y_400mf",
    "regnet_y_800mf",
]


class SimpleStemIN(Conv2dNormActivation):
    """The first convolution, of 3 with a stride of 2."""

    def __init__(self, width_in: int, width_out: int, norm_layer: Layer, activation_layer: Layer) -> None:
        super().__init__(width_in, width_out, 3, 2, norm_layer=norm_layer, activation_layer=activation_layer)


class BottleneckTransform(nn.Sequential):
    """Convolutions of 1, of 3 in groups, and of 1, with squeeze and excitation before the last.

    Args:
        width_in, width_out: channels of the input and of the result.
        stride: of the middle convolution.
        norm_layer: called with the channels.
        activation_layer: called with `inplace`.
        group_width: channels of a group.
        bottleneck_multiplier: channels of the middle, times `width_out`.
        se_ratio: squeezed channels, times `width_in`; None squeezes none.
    """

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Layer, activation_layer: Layer, group_width: int,
        bottleneck_multiplier: float, se_ratio: float | None,
    ) -> None:  # fmt: skip
        width = round(width_out * bottleneck_multiplier)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        layers: dict[str, nn.Module] = {
            "a": Conv2dNormActivation(width_in, width, 1, **options),
            "b": Conv2dNormActivation(width, width, 3, stride, groups=width // group_width, **options),
        }
        if se_ratio:
            layers["se"] = SqueezeExcitation(width, round(se_ratio * width_in), activation=activation_layer)
        options["activation_layer"] = None
        layers["c"] = Conv2dNormActivation(width, width_out, 1, **options)
        super().__init__(OrderedDict(layers))


class ResBottleneckBlock(nn.Module):
    """A `BottleneckTransform` beside the identity, or a convolution of 1 where the shape changes; arguments as
    there."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Layer, activation_layer: Layer,
        group_width: int = 1, bottleneck_multiplier: float = 1.0, se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(
                width_in, width_out, 1, stride, norm_layer=norm_layer, activation_layer=None
            )
        layers = (norm_layer, activation_layer)
        self.f = BottleneckTransform(width_in, width_out, stride, *layers, group_width, bottleneck_multiplier, se_ratio)
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks of one width, of which the first has the stride.

    Args:
        width_in, width_out: channels before and after.
        stride: of the first block.
        depth: how many blocks.
        block_constructor: called as `ResBottleneckBlock`, with the other arguments.
        stage_index: in the blocks' names.
    """

    def __init__(
        self, width_in: int, width_out: int, stride: int, depth: int, block_constructor: Layer, norm_layer: Layer,
        activation_layer: Layer, group_width: int, bottleneck_multiplier: float, se_ratio: float | None = None,
        stage_index: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        options = (norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio)
        for place in range(depth):
            window = (width_out, width_out, 1) if place else (width_in, width_out, stride)
            self.add_module(f"block{stage_index}-{place}", block_constructor(*window, *options))


class BlockParams:
    """The stages of a network: how many blocks each has, and their widths, groups, multipliers and strides."""

    def __init__(
        self, depths: list[int], widths: list[int], group_widths: list[int], bottleneck_multipliers: list[float],
        strides: list[int], se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        self.depths, self.widths, self.group_widths = depths, widths, group_widths
        self.bottleneck_multipliers, self.strides, self.se_ratio = bottleneck_multipliers, strides, se_ratio

    @classmethod
    def from_init_params(
        cls, depth: int, w_0: int, w_a: float, w_m: float, group_width: int, bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None, **kwargs: Any,
    ) -> BlockParams:  # fmt: skip
        """The stages of the paper's numbers, equations 2 to 4.

        Args:
            depth: how many blocks in all.
            w_0, w_a: width of the first block, and how much each adds.
            w_m: the ratio of the widths of stages.
            group_width: of all stages, but those that are narrower.
            bottleneck_multiplier, se_ratio: see `BottleneckTransform`.

        >>> stages = BlockParams.from_init_params(depth=22, w_0=24, w_a=24.48, w_m=2.54, group_width=16)
        >>> stages.depths, stages.widths
        ([1, 2, 7, 12], [32, 64, 160, 400])
        """
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        steps = np.round(np.log((np.arange(depth) * w_a + w_0) / w_0) / math.log(w_m))
        every = (np.round(w_0 * w_m**steps / 8) * 8).astype(int)
        widths, depths = (found.tolist() for found in np.unique(every, return_counts=True))
        fitting, groups = [], []
        for width in widths:
            inside = int(width * bottleneck_multiplier)
            group = min(group_width, inside)
            groups.append(group)
            fitting.append(int(_make_divisible(inside, group) / bottleneck_multiplier))
        count = len(widths)
        return cls(depths, fitting, groups, [bottleneck_multiplier] * count, [2] * count, se_ratio)

    def _get_expanded_params(self) -> Iterator[tuple[int, int, int, int, float]]:
        """Width, stride, depth, width of groups and multiplier of each stage."""
        return zip(self.widths, self.strides, self.depths, self.group_widths, self.bottleneck_multipliers, strict=True)


def _by_windows(weight: Tensor) -> Tensor:
    """Draw a convolution's weight by the size of its window and the number of results, whatever its groups."""
    return nn.init.normal_(weight, mean=0.0, std=math.sqrt(2.0 / (weight[0, 0].numel() * weight.shape[0])))


class RegNet(nn.Module):
    """A RegNet for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        block_params: the stages.
        num_classes: of the result.
        stem_width: channels of the first convolution.
        stem_type, block_type: called as `SimpleStemIN` and `ResBottleneckBlock`.
        norm_layer: called with the channels.
        activation: called with `inplace`.

    >>> import corefw as torch
    >>> stages = BlockParams([1, 1], [8, 16], [8, 8], [1.0, 1.0], [2, 2])
    >>> RegNet(stages, num_classes=5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, block_params: BlockParams, num_classes: int = 1000, stem_width: int = 32, stem_type: Layer | None = None,
        block_type: Layer | None = None, norm_layer: Layer | None = None, activation: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        layers = (norm_layer or nn.BatchNorm2d, activation or nn.ReLU)
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, *layers)
        before, stages = stem_width, OrderedDict[str, nn.Module]()
        for place, (width, stride, depth, group, multiplier) in enumerate(block_params._get_expanded_params(), start=1):
            window = (before, width, stride, depth, block_type or ResBottleneckBlock)
            options: tuple[Any, ...] = (group, multiplier, block_params.se_ratio, place)
            stages[f"block{place}"] = AnyStage(*window, *layers, *options)
            before = width
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(before, num_classes)
        draw(self, convolution=_by_windows)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))


def _network(depth: int, w_0: int, w_a: float, w_m: float, group_width: int, se_ratio: float | None, **kwargs: Any):
    """A network of the paper's numbers."""
    return RegNet(BlockParams.from_init_params(depth, w_0, w_a, w_m, group_width, se_ratio=se_ratio), **kwargs)


_weights = partial(trained_on_imagenet, __name__)

RegNet_X_16GF_Weights = _weights(
    "RegNet_X_16GF_Weights",
    54_278_536,
    V1=Trained("regnet_x_16gf-2007eb11", 80.058, 94.944),
    V2=Trained("regnet_x_16gf-ba3796d7", 82.716, 96.196, 232),
)
RegNet_X_1_6GF_Weights = _weights(
    "RegNet_X_1_6GF_Weights",
    9_190_136,
    V1=Trained("regnet_x_1_6gf-e3633e7f", 77.04, 93.44),
    V2=Trained("regnet_x_1_6gf-a12f2b72", 79.668, 94.922, 232),
)
RegNet_X_32GF_Weights = _weights(
    "RegNet_X_32GF_Weights",
    107_811_560,
    V1=Trained("regnet_x_32gf-9d47f8d0", 80.622, 95.248),
    V2=Trained("regnet_x_32gf-6eb8fdc6", 83.014, 96.288, 232),
)
RegNet_X_3_2GF_Weights = _weights(
    "RegNet_X_3_2GF_Weights",
    15_296_552,
    V1=Trained("regnet_x_3_2gf-f342aeae", 78.364, 93.992),
    V2=Trained("regnet_x_3_2gf-7071aa85", 81.196, 95.43, 232),
)
RegNet_X_400MF_Weights = _weights(
    "RegNet_X_400MF_Weights",
    5_495_976,
    V1=Trained("regnet_x_400mf-adf1edd5", 72.834, 90.95),
    V2=Trained("regnet_x_400mf-62229a5f", 74.864, 92.322, 232),
)
RegNet_X_800MF_Weights = _weights(
    "RegNet_X_800MF_Weights",
    7_259_656,
    V1=Trained("regnet_x_800mf-ad17e45c", 75.212, 92.348),
    V2=Trained("regnet_x_800mf-94a99ebd", 77.522, 93.826, 232),
)
RegNet_X_8GF_Weights = _weights(
    "RegNet_X_8GF_Weights",
    39_572_648,
    V1=Trained("regnet_x_8gf-03ceed89", 79.344, 94.686),
    V2=Trained("regnet_x_8gf-2b70d774", 81.682, 95.678, 232),
)
RegNet_Y_128GF_Weights = _weights(
    "RegNet_Y_128GF_Weights",
    644_812_894,
    SWAG_E2E_V1=Trained("regnet_y_128gf_swag-c8ce3e52", 88.228, 98.682, 384, 384, BICUBIC),
    SWAG_LINEAR_V1=Trained("regnet_y_128gf_lc_swag-cbe8ce12", 86.068, 97.844, 224, 224, BICUBIC),
)
RegNet_Y_16GF_Weights = _weights(
    "RegNet_Y_16GF_Weights",
    83_590_140,
    V1=Trained("regnet_y_16gf-9e6ed7dd", 80.424, 95.24),
    V2=Trained("regnet_y_16gf-3e4a00f9", 82.886, 96.328, 232),
    SWAG_E2E_V1=Trained("regnet_y_16gf_swag-43afe44d", 86.012, 98.054, 384, 384, BICUBIC),
    SWAG_LINEAR_V1=Trained("regnet_y_16gf_lc_swag-f3ec0043", 83.976, 97.244, 224, 224, BICUBIC),
)
RegNet_Y_1_6GF_Weights = _weights(
    "RegNet_Y_1_6GF_Weights",
    11_202_430,
    V1=Trained("regnet_y_1_6gf-b11a554e", 77.95, 93.966),
    V2=Trained("regnet_y_1_6gf-0d7bc02a", 80.876, 95.444, 232),
)
RegNet_Y_32GF_Weights = _weights(
    "RegNet_Y_32GF_Weights",
    145_046_770,
    V1=Trained("regnet_y_32gf-4dee3f7a", 80.878, 95.34),
    V2=Trained("regnet_y_32gf-8db6d4b5", 83.368, 96.498, 232),
    SWAG_E2E_V1=Trained("regnet_y_32gf_swag-04fdfa75", 86.838, 98.362, 384, 384, BICUBIC),
    SWAG_LINEAR_V1=Trained("regnet_y_32gf_lc_swag-e1583746", 84.622, 97.48, 224, 224, BICUBIC),
)
RegNet_Y_3_2GF_Weights = _weights(
    "RegNet_Y_3_2GF_Weights",
    19_436_338,
    V1=Trained("regnet_y_3_2gf-b5a9779c", 78.948, 94.576),
    V2=Trained("regnet_y_3_2gf-9180c971", 81.982, 95.972, 232),
)
RegNet_Y_400MF_Weights = _weights(
    "RegNet_Y_400MF_Weights",
    4_344_144,
    V1=Trained("regnet_y_400mf-c65dace8", 74.046, 91.716),
    V2=Trained("regnet_y_400mf-e6988f5f", 75.804, 92.742, 232),
)
RegNet_Y_800MF_Weights = _weights(
    "RegNet_Y_800MF_Weights",
    6_432_512,
    V1=Trained("regnet_y_800mf-1b27b58c", 76.42, 93.136),
    V2=Trained("regnet_y_800mf-58fc7688", 78.828, 94.502, 232),
)
RegNet_Y_8GF_Weights = _weights(
    "RegNet_Y_8GF_Weights",
    39_381_472,
    V1=Trained("regnet_y_8gf-d0d0e4a8", 80.032, 95.048),
    V2=Trained("regnet_y_8gf-dc2b1b54", 82.828, 96.33, 232),
)


@model(RegNet_Y_400MF_Weights)
def regnet_y_400mf(**kwargs: Any) -> RegNet:
    """RegNetY of 400 MF."""
    return _network(16, 48, 27.89, 2.09, 8, 0.25, **kwargs)


@model(RegNet_Y_800MF_Weights)
def regnet_y_800mf(**kwargs: Any) -> RegNet:
    """RegNetY of 800 MF."""
    return _network(14, 56, 38.84, 2.4, 16, 0.25, **kwargs)


@model(RegNet_Y_1_6GF_Weights)
def regnet_y_1_6gf(**kwargs: Any) -> RegNet:
    """RegNetY of 1.6 GF."""
    return _network(27, 48, 20.71, 2.65, 24, 0.25, **kwargs)


@model(RegNet_Y_3_2GF_Weights)
def regnet_y_3_2gf(**kwargs: Any) -> RegNet:
    """RegNetY of 3.2 GF."""
    return _network(21, 80, 42.63, 2.66, 24, 0.25, **kwargs)


@model(RegNet_Y_8GF_Weights)
def regnet_y_8gf(**kwargs: Any) -> RegNet:
    """RegNetY of 8 GF."""
    return _network(17, 192, 76.82, 2.19, 56, 0.25, **kwargs)


@model(RegNet_Y_16GF_Weights)
def regnet_y_16gf(**kwargs: Any) -> RegNet:
    """RegNetY of 16 GF."""
    return _network(18, 200, 106.23, 2.48, 112, 0.25, **kwargs)


@model(RegNet_Y_32GF_Weights)
def regnet_y_32gf(**kwargs: Any) -> RegNet:
    """RegNetY of 32 GF."""
    return _network(20, 232, 115.89, 2.53, 232, 0.25, **kwargs)


@model(RegNet_Y_128GF_Weights)
def regnet_y_128gf(**kwargs: Any) -> RegNet:
    """RegNetY of 128 GF."""
    return _network(27, 456, 160.83, 2.52, 264, 0.25, **kwargs)


@model(RegNet_X_400MF_Weights)
def regnet_x_400mf(**kwargs: Any) -> RegNet:
    """RegNetX of 400 MF."""
    return _network(22, 24, 24.48, 2.54, 16, None, **kwargs)


@model(RegNet_X_800MF_Weights)
def regnet_x_800mf(**kwargs: Any) -> RegNet:
    """RegNetX of 800 MF."""
    return _network(16, 56, 35.73, 2.28, 16, None, **kwargs)


@model(RegNet_X_1_6GF_Weights)
def regnet_x_1_6gf(**kwargs: Any) -> RegNet:
    """RegNetX of 1.6 GF."""
    return _network(18, 80, 34.01, 2.25, 24, None, **kwargs)


@model(RegNet_X_3_2GF_Weights)
def regnet_x_3_2gf(**kwargs: Any) -> RegNet:
    """RegNetX of 3.2 GF."""
    return _network(25, 88, 26.31, 2.25, 48, None, **kwargs)


@model(RegNet_X_8GF_Weights)
def regnet_x_8gf(**kwargs: Any) -> RegNet:
    """RegNetX of 8 GF."""
    return _network(23, 80, 49.56, 2.88, 120, None, **kwargs)


@model(RegNet_X_16GF_Weights)
def regnet_x_16gf(**kwargs: Any) -> RegNet:
    """RegNetX of 16 GF."""
    return _network(22, 216, 55.59, 2.1, 128, None, **kwargs)


@model(RegNet_X_32GF_Weights)
def regnet_x_32gf(**kwargs: Any) -> RegNet:
    """RegNetX of 32 GF."""
    return _network(23, 320, 69.86, 2.0, 168, None, **kwargs)
