"""EfficientNets: Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks", 2019, and
"EfficientNetV2: smaller models and faster training", 2021."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, SlowNorm, draw
from corefw.vision.models._utils import _make_divisible
from corefw.vision.models.presets import BICUBIC, Trained, trained_on_imagenet
from corefw.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from corefw.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "EfficientNet",
    "EfficientNet_B0_Weights",
    "EfficientNet_B1_Weights",
    "EfficientNet_B2_Weights",
    "EfficientNet_B3_Weights",
    "EfficientNet_B4_Weights",
    "EfficientNet_B5_Weights",
    "EfficientNet_B6_Weights",
    "EfficientNet_B7_Weights",
    "EfficientNet_V2_L_Weights",
    "EfficientNet_V2_M_Weights",
    "EfficientNet_V2_S_Weights",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_b2",
    "efficientnet_b3",
    "efficientnet_b4",
    "efficientnet_b5",
    "efficientnet_b6",
    "efficientnet_b7",
    "efficientnet_v2_l",
    "efficientnet_v2_m",
    "efficientnet_v2_s",
]


@dataclass
class _MBConvConfig:
    """A stage of blocks: the first has the stride and changes the channels."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Callable[..., nn.Module]

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        """The multiple of 8 next to `channels` times `width_mult`."""
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of `MBConv` blocks.

    Args:
        expand_ratio: how many times more channels the middle of a block has.
        kernel: of the middle's window.
        stride: of the first block.
        input_channels, out_channels: before and after the stage.
        num_layers: how many blocks.
        width_mult, depth_mult: what numbers of channels and of blocks are multiplied by.
        block: called as `MBConv`.
    """

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int, out_channels: int, num_layers: int,
        width_mult: float = 1.0, depth_mult: float = 1.0, block: Layer | None = None,
    ) -> None:  # fmt: skip
        before, after = (self.adjust_channels(count, width_mult) for count in (input_channels, out_channels))
        count = self.adjust_depth(num_layers, depth_mult)
        super().__init__(expand_ratio, kernel, stride, before, after, count, block or MBConv)

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        """`num_layers` times `depth_mult`, rounded up."""
        return math.ceil(num_layers * depth_mult)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of `FusedMBConv` blocks; arguments as for `MBConvConfig`."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int, out_channels: int, num_layers: int,
        block: Layer | None = None,
    ) -> None:  # fmt: skip
        window = (expand_ratio, kernel, stride, input_channels, out_channels, num_layers)
        super().__init__(*window, block or FusedMBConv)


class _Block(nn.Module):
    """Layers beside the identity where the shape stays."""

    def __init__(self, cnf: _MBConvConfig, stochastic_depth_prob: float, layers: list[nn.Module]) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input: Tensor) -> Tensor:
        out = self.block(input)
        return self.stochastic_depth(out).add(input) if self.use_res_connect else out


class MBConv(_Block):
    """Convolutions of 1, in each channel, and of 1, with squeeze and excitation before the last.

    Args:
        cnf: the stage, of which channels and stride are this block's.
        stochastic_depth_prob: of leaving the layers out.
        norm_layer: called with the channels.
        se_layer: called with the channels and the squeezed ones.
    """

    def __init__(
        self, cnf: MBConvConfig, stochastic_depth_prob: float, norm_layer: Layer, se_layer: Layer = SqueezeExcitation
    ) -> None:
        before, after = cnf.input_channels, cnf.out_channels
        wide = cnf.adjust_channels(before, cnf.expand_ratio)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = []
        if wide != before:
            layers.append(Conv2dNormActivation(before, wide, 1, **options))
        layers.append(Conv2dNormActivation(wide, wide, cnf.kernel, cnf.stride, groups=wide, **options))
        layers.append(se_layer(wide, max(1, before // 4), activation=partial(nn.SiLU, inplace=True)))
        layers.append(Conv2dNormActivation(wide, after, 1, norm_layer=norm_layer, activation_layer=None))
        super().__init__(cnf, stochastic_depth_prob, layers)


class FusedMBConv(_Block):
    """One convolution to more channels and one of 1 back; arguments as for `MBConv`."""

    def __init__(self, cnf: FusedMBConvConfig, stochastic_depth_prob: float, norm_layer: Layer) -> None:
        before, after = cnf.input_channels, cnf.out_channels
        wide = cnf.adjust_channels(before, cnf.expand_ratio)
        first = before, wide if wide != before else after, cnf.kernel, cnf.stride
        layers: list[nn.Module] = [Conv2dNormActivation(*first, norm_layer=norm_layer, activation_layer=nn.SiLU)]
        if wide != before:
            layers.append(Conv2dNormActivation(wide, after, 1, norm_layer=norm_layer, activation_layer=None))
        super().__init__(cnf, stochastic_depth_prob, layers)


def _evenly(weight: Tensor) -> Tensor:
    """Draw a linear layer's weight from U(-b, b), b one by the root of the number of results."""
    bound = 1.0 / math.sqrt(weight.shape[0])
    return nn.init.uniform_(weight, -bound, bound)


class EfficientNet(nn.Module):
    """An EfficientNet for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        inverted_residual_setting: the stages.
        dropout: its probability before the classifier.
        stochastic_depth_prob: of leaving out the last block, in proportion of those before.
        num_classes: of the result.
        norm_layer: called with the channels.
        last_channel: channels before the classifier; None for four times those of the last stage.

    >>> import corefw as torch
    >>> stages = [FusedMBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(4, 3, 2, 8, 16, 2)]
    >>> EfficientNet(stages, dropout=0.2, num_classes=5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, inverted_residual_setting: Sequence[_MBConvConfig], dropout: float, stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000, norm_layer: Layer | None = None,
        last_channel: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        stages = inverted_residual_setting
        if not stages:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(stage, _MBConvConfig) for stage in stages):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm = norm_layer or nn.BatchNorm2d
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = [Conv2dNormActivation(3, stages[0].input_channels, stride=2, **options)]
        total, count = sum(stage.num_layers for stage in stages), 0
        for stage in stages:
            blocks: list[nn.Module] = []
            for _ in range(stage.num_layers):
                one = copy.copy(stage)
                if blocks:
                    one.input_channels, one.stride = one.out_channels, 1
                blocks.append(one.block(one, stochastic_depth_prob * float(count) / total, norm))
                count += 1
            layers.append(nn.Sequential(*blocks))
        before = stages[-1].out_channels
        after = 4 * before if last_channel is None else last_channel
        self.features = nn.Sequential(*layers, Conv2dNormActivation(before, after, 1, **options))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(after, num_classes))
        draw(self, linear=_evenly)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _scaled(width_mult: float, depth_mult: float, **kwargs: Any) -> EfficientNet:
    """The first version's stages, wider and deeper."""
    rows = (
        (1, 3, 1, 32, 16, 1),
        (6, 3, 2, 16, 24, 2),
        (6, 5, 2, 24, 40, 2),
        (6, 3, 2, 40, 80, 3),
        (6, 5, 1, 80, 112, 3),
        (6, 5, 2, 112, 192, 4),
        (6, 3, 1, 192, 320, 1),
    )
    stages = [MBConvConfig(*row, width_mult=width_mult, depth_mult=depth_mult) for row in rows]
    return EfficientNet(stages, **kwargs)


def _second(fused: tuple[tuple, ...], others: tuple[tuple, ...], **kwargs: Any) -> EfficientNet:
    """A network of the second version."""
    stages = [*(FusedMBConvConfig(*row) for row in fused), *(MBConvConfig(*row) for row in others)]
    return EfficientNet(stages, **{"norm_layer": _FINE, "last_channel": 1280, **kwargs})


_FINE = partial(nn.BatchNorm2d, eps=1e-3)

_weights = partial(trained_on_imagenet, __name__)

EfficientNet_B0_Weights = _weights(
    "EfficientNet_B0_Weights",
    5_288_548,
    V1=Trained("efficientnet_b0_rwightman-7f5810bc", 77.692, 93.532, 256, 224, BICUBIC),
)
EfficientNet_B1_Weights = _weights(
    "EfficientNet_B1_Weights",
    7_794_184,
    V1=Trained("efficientnet_b1_rwightman-bac287d4", 78.642, 94.186, 256, 240, BICUBIC),
    V2=Trained("efficientnet_b1-c27df63c", 79.838, 94.934, 255, 240),
)
EfficientNet_B2_Weights = _weights(
    "EfficientNet_B2_Weights",
    9_109_994,
    V1=Trained("efficientnet_b2_rwightman-c35c1473", 80.608, 95.31, 288, 288, BICUBIC),
)
EfficientNet_B3_Weights = _weights(
    "EfficientNet_B3_Weights",
    12_233_232,
    V1=Trained("efficientnet_b3_rwightman-b3899882", 82.008, 96.054, 320, 300, BICUBIC),
)
EfficientNet_B4_Weights = _weights(
    "EfficientNet_B4_Weights",
    19_341_616,
    V1=Trained("efficientnet_b4_rwightman-23ab8bcd", 83.384, 96.594, 384, 380, BICUBIC),
)
EfficientNet_B5_Weights = _weights(
    "EfficientNet_B5_Weights",
    30_389_784,
    V1=Trained("efficientnet_b5_lukemelas-1a07897c", 83.444, 96.628, 456, 456, BICUBIC),
)
EfficientNet_B6_Weights = _weights(
    "EfficientNet_B6_Weights",
    43_040_704,
    V1=Trained("efficientnet_b6_lukemelas-24a108a5", 84.008, 96.916, 528, 528, BICUBIC),
)
EfficientNet_B7_Weights = _weights(
    "EfficientNet_B7_Weights",
    66_347_960,
    V1=Trained("efficientnet_b7_lukemelas-c5b4e57e", 84.122, 96.908, 600, 600, BICUBIC),
)
EfficientNet_V2_L_Weights = _weights(
    "EfficientNet_V2_L_Weights",
    118_515_272,
    smallest=33,
    V1=Trained(
        "efficientnet_v2_l-59c71312", 85.808, 97.788, 480, 480, BICUBIC, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)
    ),
)
EfficientNet_V2_M_Weights = _weights(
    "EfficientNet_V2_M_Weights",
    54_139_356,
    smallest=33,
    V1=Trained("efficientnet_v2_m-dc08266a", 85.112, 97.156, 480, 480),
)
EfficientNet_V2_S_Weights = _weights(
    "EfficientNet_V2_S_Weights",
    21_458_488,
    smallest=33,
    V1=Trained("efficientnet_v2_s-dd5fe13b", 84.228, 96.878, 384, 384),
)


@model(EfficientNet_B0_Weights)
def efficientnet_b0(**kwargs: Any) -> EfficientNet:
    """EfficientNet B0."""
    return _scaled(1.0, 1.0, **{"dropout": 0.2, **kwargs})


@model(EfficientNet_B1_Weights)
def efficientnet_b1(**kwargs: Any) -> EfficientNet:
    """EfficientNet B1."""
    return _scaled(1.0, 1.1, **{"dropout": 0.2, **kwargs})


@model(EfficientNet_B2_Weights)
def efficientnet_b2(**kwargs: Any) -> EfficientNet:
    """EfficientNet B2."""
    return _scaled(1.1, 1.2, **{"dropout": 0.3, **kwargs})


@model(EfficientNet_B3_Weights)
def efficientnet_b3(**kwargs: Any) -> EfficientNet:
    """EfficientNet B3."""
    return _scaled(1.2, 1.4, **{"dropout": 0.3, **kwargs})


@model(EfficientNet_B4_Weights)
def efficientnet_b4(**kwargs: Any) -> EfficientNet:
    """EfficientNet B4."""
    return _scaled(1.4, 1.8, **{"dropout": 0.4, **kwargs})


@model(EfficientNet_B5_Weights)
def efficientnet_b5(**kwargs: Any) -> EfficientNet:
    """EfficientNet B5."""
    return _scaled(1.6, 2.2, **{"dropout": 0.4, "norm_layer": SlowNorm, **kwargs})


@model(EfficientNet_B6_Weights)
def efficientnet_b6(**kwargs: Any) -> EfficientNet:
    """EfficientNet B6."""
    return _scaled(1.8, 2.6, **{"dropout": 0.5, "norm_layer": SlowNorm, **kwargs})


@model(EfficientNet_B7_Weights)
def efficientnet_b7(**kwargs: Any) -> EfficientNet:
    """EfficientNet B7."""
    return _scaled(2.0, 3.1, **{"dropout": 0.5, "norm_layer": SlowNorm, **kwargs})


@model(EfficientNet_V2_S_Weights)
def efficientnet_v2_s(**kwargs: Any) -> EfficientNet:
    """EfficientNetV2-S."""
    fused = ((1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4))
    others = ((4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15))
    return _second(fused, others, **{"dropout": 0.2, **kwargs})


@model(EfficientNet_V2_M_Weights)
def efficientnet_v2_m(**kwargs: Any) -> EfficientNet:
    """EfficientNetV2-M."""
    fused = ((1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5))
    others = ((4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5))
    return _second(fused, others, **{"dropout": 0.3, **kwargs})


@model(EfficientNet_V2_L_Weights)
def efficientnet_v2_l(**kwargs: Any) -> EfficientNet:
    """EfficientNetV2-L."""
    fused = ((1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7))
    others = ((4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7))
    return _second(fused, others, **{"dropout": 0.4, **kwargs})
