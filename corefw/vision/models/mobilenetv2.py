"""MobileNetV2: Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018."""

from __future__ import annotations

from functools import partial
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, draw
from corefw.vision.models._utils import _make_divisible
from corefw.vision.models.presets import Trained, trained_on_imagenet
from corefw.vision.ops.misc import Conv2dNormActivation

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]


class InvertedResidual(nn.Module):
    """Convolutions of 1, of 3 in each channel, and of 1 without activation, the middle one of more channels, beside the
    identity where the shape stays.

    Args:
        inp, oup: channels of the input and of the result.
        stride: 1 or 2.
        expand_ratio: how many times more channels the middle has; 1 leaves the first convolution out.
        norm_layer: called with the channels.
    """

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Layer | None = None) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm, hidden = norm_layer or nn.BatchNorm2d, round(inp * expand_ratio)
        self.stride, self.out_channels, self._is_cn = stride, oup, stride > 1
        self.use_res_connect = stride == 1 and inp == oup
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, 1, **options))
        layers.append(Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **options))
        self.conv = nn.Sequential(*layers, nn.Conv2d(hidden, oup, 1, bias=False), norm(oup))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


#: expansion, channels, number of blocks, stride of the first
_STAGES = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


class MobileNetV2(nn.Module):
    """MobileNetV2 for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        num_classes: of the result.
        width_mult: what all numbers of channels are multiplied by.
        inverted_residual_setting: of each stage the expansion, channels, number of blocks and stride of the first.
        round_nearest: what numbers of channels are multiples of.
        block: called as `InvertedResidual`.
        norm_layer: called with the channels.
        dropout: its probability before the classifier.

    >>> import corefw as torch
    >>> MobileNetV2(5, 0.25, [[1, 16, 1, 1], [6, 24, 2, 2]])(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None, round_nearest: int = 8, block: Layer | None = None,
        norm_layer: Layer | None = None, dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        block, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        stages = _STAGES if inverted_residual_setting is None else inverted_residual_setting
        if not stages or any(len(stage) != 4 for stage in stages):
            raise ValueError(
                f"inverted_residual_setting should be non-empty or a 4-element list, got {inverted_residual_setting}"
            )
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = [Conv2dNormActivation(3, channels, stride=2, **options)]
        for expansion, wide, count, stride in stages:
            width = _make_divisible(wide * width_mult, round_nearest)
            for place in range(count):
                layers.append(block(channels, width, 1 if place else stride, expand_ratio=expansion, norm_layer=norm))
                channels = width
        layers.append(Conv2dNormActivation(channels, self.last_channel, 1, **options))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        draw(self)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(x.flatten(1))


_weights = partial(trained_on_imagenet, __name__)

MobileNet_V2_Weights = _weights(
    "MobileNet_V2_Weights",
    3_504_872,
    V1=Trained("mobilenet_v2-b0353104", 71.878, 90.286),
    V2=Trained("mobilenet_v2-7ebf99e0", 72.154, 90.822, 232),
)


@model(MobileNet_V2_Weights)
def mobilenet_v2(**kwargs: Any) -> MobileNetV2:
    """MobileNetV2."""
    return MobileNetV2(**kwargs)
