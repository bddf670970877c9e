"""ShuffleNetV2: Ma et al., "ShuffleNet V2: practical guidelines for efficient CNN architecture design", 2018."""

from __future__ import annotations

from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = [
    "ShuffleNetV2",
    "ShuffleNet_V2_X0_5_Weights",
    "ShuffleNet_V2_X1_0_Weights",
    "ShuffleNet_V2_X1_5_Weights",
    "ShuffleNet_V2_X2_0_Weights",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
]


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """The channels of `x` (N, C, H, W), one of each group after the other.

    >>> channel_shuffle(corefw.arange(4).reshape(1, 4, 1, 1), 2).flatten().tolist()
    [0, 2, 1, 3]
    """
    return nn.functional.channel_shuffle(x, groups)


def _normed(
    before: int, after: int, kernel: int, stride: int = 1, padding: int = 0, groups: int = 1, active: bool = True
) -> list[nn.Module]:
    """A convolution with its norm, and ReLU if `active`."""
    layers = [nn.Conv2d(before, after, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(after)]
    return [*layers, nn.ReLU(inplace=True)] if active else layers


class InvertedResidual(nn.Module):
    """Half of the channels through three convolutions, the others as they are, all shuffled; with a stride, all
    through both branches.

    Args:
        inp, oup: channels of the input and of the result.
        stride: from 1 to 3.
    """

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        half = oup // 2
        if stride == 1 and inp != 2 * half:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. "
                "If stride == 1 then inp should be equal to oup // 2 << 1."
            )
        self.stride = stride
        whole = [*_normed(inp, inp, 3, stride, 1, groups=inp, active=False), *_normed(inp, half, 1)]
        self.branch1 = nn.Sequential(*(whole if stride > 1 else []))
        self.branch2 = nn.Sequential(
            *_normed(inp if stride > 1 else half, half, 1),
            *_normed(half, half, 3, stride, 1, groups=half, active=False),
            *_normed(half, half, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        one, other = x.chunk(2, dim=1) if self.stride == 1 else (self.branch1(x), x)
        return channel_shuffle(corefw.cat([one, self.branch2(other)], dim=1), 2)


class ShuffleNetV2(nn.Module):
    """ShuffleNetV2 for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        stages_repeats: blocks of the three stages.
        stages_out_channels: channels of the first convolution, the stages, and the last convolution.
        num_classes: of the result.
        inverted_residual: called as `InvertedResidual`.

    >>> import corefw as torch
    >>> ShuffleNetV2([1, 2, 1], [8, 8, 16, 16, 32], num_classes=5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, stages_repeats: list[int], stages_out_channels: list[int], num_classes: int = 1000,
        inverted_residual: Layer = InvertedResidual,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        first, *widths, last = self._stage_out_channels = stages_out_channels
        self.conv1 = nn.Sequential(*_normed(3, first, 3, 2, 1))
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before, stages = first, []
        for width, count in zip(widths, stages_repeats, strict=True):
            blocks = [inverted_residual(before, width, 2)]
            blocks += [inverted_residual(width, width, 1) for _ in range(count - 1)]
            stages.append(nn.Sequential(*blocks))
            before = width
        self.stage2, self.stage3, self.stage4 = stages
        self.conv5 = nn.Sequential(*_normed(before, last, 1))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean([2, 3]))


_weights = partial(trained_on_imagenet, __name__)

ShuffleNet_V2_X0_5_Weights = _weights(
    "ShuffleNet_V2_X0_5_Weights", 1_366_792, V1=Trained("shufflenetv2_x0.5-f707e7126e", 60.552, 81.746)
)
ShuffleNet_V2_X1_0_Weights = _weights(
    "ShuffleNet_V2_X1_0_Weights", 2_278_604, V1=Trained("shufflenetv2_x1-5666bf0f80", 69.362, 88.316)
)
ShuffleNet_V2_X1_5_Weights = _weights(
    "ShuffleNet_V2_X1_5_Weights", 3_503_624, V1=Trained("shufflenetv2_x1_5-3c479a10", 72.996, 91.086, 232)
)
ShuffleNet_V2_X2_0_Weights = _weights(
    "ShuffleNet_V2_X2_0_Weights", 7_393_996, V1=Trained("shufflenetv2_x2_0-8be3c8ee", 76.23, 93.006, 232)
)


@model(ShuffleNet_V2_X0_5_Weights)
def shufflenet_v2_x0_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of half the width."""
    return ShuffleNetV2([4, 8, 4], [24, 48, 96, 192, 1024], **kwargs)


@model(ShuffleNet_V2_X1_0_Weights)
def shufflenet_v2_x1_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2."""
    return ShuffleNetV2([4, 8, 4], [24, 116, 232, 464, 1024], **kwargs)


@model(ShuffleNet_V2_X1_5_Weights)
def shufflenet_v2_x1_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of one and a half times the width."""
    return ShuffleNetV2([4, 8, 4], [24, 176, 352, 704, 1024], **kwargs)


@model(ShuffleNet_V2_X2_0_Weights)
def shufflenet_v2_x2_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of twice the width."""
    return ShuffleNetV2([4, 8, 4], [24, 244, 488, 976, 2048], **kwargs)
