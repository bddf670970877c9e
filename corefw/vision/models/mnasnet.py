"""MNASNet: Tan et al., "MnasNet: platform-aware neural architecture search for mobile", 2019."""

from __future__ import annotations

from functools import partial
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import draw
from corefw.vision.models._utils import _make_divisible
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = [
    "MNASNet",
    "MNASNet0_5_Weights",
    "MNASNet0_75_Weights",
    "MNASNet1_0_Weights",
    "MNASNet1_3_Weights",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
]

_MOMENTUM = 1 - 0.9997  # of the statistics of norms


def _normed(
    before: int, after: int, kernel: int, stride: int = 1, groups: int = 1, active: bool = True,
    momentum: float = _MOMENTUM,
) -> list[nn.Module]:  # fmt: skip
    """A convolution that keeps the size but for its stride, with its norm, and ReLU if `active`."""
    layers: list[nn.Module] = [
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after, momentum=momentum),
    ]
    return [*layers, nn.ReLU(inplace=True)] if active else layers


class _InvertedResidual(nn.Module):
    """Convolutions of 1, in each channel, and of 1, beside the identity where the shape stays."""

    def __init__(
        self, in_ch: int, out_ch: int, kernel_size: int, stride: int, expansion_factor: int, bn_momentum: float = 0.1
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        wide = in_ch * expansion_factor
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            *_normed(in_ch, wide, 1, momentum=bn_momentum),
            *_normed(wide, wide, kernel_size, stride, groups=wide, momentum=bn_momentum),
            *_normed(wide, out_ch, 1, active=False, momentum=bn_momentum),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.layers(input) + input if self.apply_residual else self.layers(input)


#: channels, kernel, stride of the first block, expansion, number of blocks
_STAGES = (
    (24, 3, 2, 3, 3),
    (40, 5, 2, 3, 3),
    (80, 5, 2, 6, 3),
    (96, 3, 1, 6, 2),
    (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
)


class MNASNet(nn.Module):
    """MNASNet-B1 for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        alpha: what all numbers of channels but the last are multiplied by.
        num_classes: of the result.
        dropout: its probability before the classifier.

    >>> import corefw as torch
    >>> MNASNet(0.1, num_classes=5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    #: of the layout of files: in the first, `alpha` did not change the first layers
    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        first, channels = _make_divisible(32 * alpha, 8), _make_divisible(16 * alpha, 8)
        layers = [
            *_normed(3, first, 3, 2),
            *_normed(first, first, 3, groups=first),
            *_normed(first, channels, 1, active=False),
        ]
        for width, kernel, stride, expansion, count in _STAGES:
            after = _make_divisible(width * alpha, 8)
            blocks = [_InvertedResidual(channels, after, kernel, stride, expansion, _MOMENTUM)]
            blocks += [_InvertedResidual(after, after, kernel, 1, expansion, _MOMENTUM) for _ in range(count - 1)]
            layers.append(nn.Sequential(*blocks))
            channels = after
        self.layers = nn.Sequential(*layers, *_normed(channels, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes))
        draw(self, linear=partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="sigmoid"))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean([2, 3]))


_weights = partial(trained_on_imagenet, __name__)

MNASNet0_5_Weights = _weights(
    "MNASNet0_5_Weights", 2_218_512, V1=Trained("mnasnet0.5_top1_67.823-3ffadce67e", 67.734, 87.49)
)
MNASNet0_75_Weights = _weights("MNASNet0_75_Weights", 3_170_208, V1=Trained("mnasnet0_75-7090bc5f", 71.18, 90.496, 232))
MNASNet1_0_Weights = _weights(
    "MNASNet1_0_Weights", 4_383_312, V1=Trained("mnasnet1.0_top1_73.512-f206786ef8", 73.456, 91.51)
)
MNASNet1_3_Weights = _weights("MNASNet1_3_Weights", 6_282_256, V1=Trained("mnasnet1_3-a4c69d6f", 76.506, 93.522, 232))


@model(MNASNet0_5_Weights)
def mnasnet0_5(**kwargs: Any) -> MNASNet:
    """MNASNet of half the width."""
    return MNASNet(0.5, **kwargs)


@model(MNASNet0_75_Weights)
def mnasnet0_75(**kwargs: Any) -> MNASNet:
    """MNASNet of three quarters of the width."""
    return MNASNet(0.75, **kwargs)


@model(MNASNet1_0_Weights)
def mnasnet1_0(**kwargs: Any) -> MNASNet:
    """MNASNet."""
    return MNASNet(1.0, **kwargs)


@model(MNASNet1_3_Weights)
def mnasnet1_3(**kwargs: Any) -> MNASNet:
    """MNASNet of 1.3 times the width."""
    return MNASNet(1.3, **kwargs)
