"""Inception v3: Szegedy et al., "Rethinking the inception architecture for computer vision", 2016."""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import WeightsEnum, model
from corefw.vision.models._shared import Layer, as_imagenets, without_auxiliary
from corefw.vision.models.googlenet import BasicConv2d
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = ["Inception3", "InceptionOutputs", "Inception_V3_Weights", "_InceptionOutputs", "inception_v3"]

InceptionOutputs = namedtuple("InceptionOutputs", ["logits", "aux_logits"])
InceptionOutputs.__doc__ = "What the network gives in training: its result and that of the classifier in the middle."
_InceptionOutputs = InceptionOutputs


def _pooled(x: Tensor) -> Tensor:
    return nn.functional.avg_pool2d(x, 3, stride=1, padding=1)


def _halved(x: Tensor) -> Tensor:
    return nn.functional.max_pool2d(x, 3, stride=2)


class InceptionA(nn.Module):
    """Windows of 1, 5 and twice 3, and a pooling, beside each other (the paper's figure 5).

    Args:
        in_channels: of the input; the result has 224 and `pool_features` channels.
        pool_features: channels after the pooling.
        conv_block: called as `BasicConv2d`, here and in the other blocks.
    """

    def __init__(self, in_channels: int, pool_features: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1x1 = conv(in_channels, 64, kernel_size=1)
        self.branch5x5_1 = conv(in_channels, 48, kernel_size=1)
        self.branch5x5_2 = conv(48, 64, kernel_size=5, padding=2)
        self.branch3x3dbl_1 = conv(in_channels, 64, kernel_size=1)
        self.branch3x3dbl_2 = conv(64, 96, kernel_size=3, padding=1)
        self.branch3x3dbl_3 = conv(96, 96, kernel_size=3, padding=1)
        self.branch_pool = conv(in_channels, pool_features, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        five = self.branch5x5_2(self.branch5x5_1(x))
        three = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return corefw.cat([self.branch1x1(x), five, three, self.branch_pool(_pooled(x))], 1)


class InceptionB(nn.Module):
    """Half the size: a window of 3, two of 3, and a pooling; the result has 480 channels more."""

    def __init__(self, in_channels: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch3x3 = conv(in_channels, 384, kernel_size=3, stride=2)
        self.branch3x3dbl_1 = conv(in_channels, 64, kernel_size=1)
        self.branch3x3dbl_2 = conv(64, 96, kernel_size=3, padding=1)
        self.branch3x3dbl_3 = conv(96, 96, kernel_size=3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        three = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return corefw.cat([self.branch3x3(x), three, _halved(x)], 1)


class InceptionC(nn.Module):
    """Windows of 1, of 1 by 7 and 7 by 1 once and twice, and a pooling (the paper's figure 6); 768 channels.

    `channels_7x7` are the channels between the windows.
    """

    def __init__(self, in_channels: int, channels_7x7: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv, between = conv_block or BasicConv2d, channels_7x7
        wide: dict[str, Any] = {"kernel_size": (1, 7), "padding": (0, 3)}
        high: dict[str, Any] = {"kernel_size": (7, 1), "padding": (3, 0)}
        self.branch1x1 = conv(in_channels, 192, kernel_size=1)
        self.branch7x7_1 = conv(in_channels, between, kernel_size=1)
        self.branch7x7_2, self.branch7x7_3 = conv(between, between, **wide), conv(between, 192, **high)
        self.branch7x7dbl_1 = conv(in_channels, between, kernel_size=1)
        self.branch7x7dbl_2, self.branch7x7dbl_3 = conv(between, between, **high), conv(between, between, **wide)
        self.branch7x7dbl_4, self.branch7x7dbl_5 = conv(between, between, **high), conv(between, 192, **wide)
        self.branch_pool = conv(in_channels, 192, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        once = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        twice = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        twice = self.branch7x7dbl_5(self.branch7x7dbl_4(twice))
        return corefw.cat([self.branch1x1(x), once, twice, self.branch_pool(_pooled(x))], 1)


class InceptionD(nn.Module):
    """Half the size: a window of 3, one of 7 and 3, and a pooling; the result has 512 channels more."""

    def __init__(self, in_channels: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch3x3_1 = conv(in_channels, 192, kernel_size=1)
        self.branch3x3_2 = conv(192, 320, kernel_size=3, stride=2)
        self.branch7x7x3_1 = conv(in_channels, 192, kernel_size=1)
        self.branch7x7x3_2 = conv(192, 192, kernel_size=(1, 7), padding=(0, 3))
        self.branch7x7x3_3 = conv(192, 192, kernel_size=(7, 1), padding=(3, 0))
        self.branch7x7x3_4 = conv(192, 192, kernel_size=3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        seven = self.branch7x7x3_4(self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x))))
        return corefw.cat([self.branch3x3_2(self.branch3x3_1(x)), seven, _halved(x)], 1)


class InceptionE(nn.Module):
    """Windows of 1 by 3 and 3 by 1 beside each other, twice, one of 1, and a pooling (the paper's figure 7); 2048
    channels."""

    def __init__(self, in_channels: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        wide: dict[str, Any] = {"kernel_size": (1, 3), "padding": (0, 1)}
        high: dict[str, Any] = {"kernel_size": (3, 1), "padding": (1, 0)}
        self.branch1x1 = conv(in_channels, 320, kernel_size=1)
        self.branch3x3_1 = conv(in_channels, 384, kernel_size=1)
        self.branch3x3_2a, self.branch3x3_2b = conv(384, 384, **wide), conv(384, 384, **high)
        self.branch3x3dbl_1 = conv(in_channels, 448, kernel_size=1)
        self.branch3x3dbl_2 = conv(448, 384, kernel_size=3, padding=1)
        self.branch3x3dbl_3a, self.branch3x3dbl_3b = conv(384, 384, **wide), conv(384, 384, **high)
        self.branch_pool = conv(in_channels, 192, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        once, twice = self.branch3x3_1(x), self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        branches = [
            self.branch1x1(x),
            self.branch3x3_2a(once),
            self.branch3x3_2b(once),
            self.branch3x3dbl_3a(twice),
            self.branch3x3dbl_3b(twice),
            self.branch_pool(_pooled(x)),
        ]
        return corefw.cat(branches, 1)


class InceptionAux(nn.Module):
    """A classifier in the middle of the network."""

    def __init__(self, in_channels: int, num_classes: int, conv_block: Layer | None = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.conv0, self.conv1 = conv(in_channels, 128, kernel_size=1), conv(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.conv0(nn.functional.avg_pool2d(x, 5, stride=3)))
        return self.fc(nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


_BLOCKS = (BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux)


class Inception3(nn.Module):
    """Inception v3 for pictures (N, 3, H, W) of at least 75 by 75, or 299 by 299 for the classifier in the middle.

    The result is (N, `num_classes`); in training with `aux_logits` it is an `InceptionOutputs` of two.

    Args:
        num_classes: of the results.
        aux_logits: whether there is a classifier in the middle.
        transform_input: whether pictures come normalised by ImageNet's statistics, and are not meant to.
        inception_blocks: called as `BasicConv2d`, `InceptionA` to `InceptionE`, and `InceptionAux`.
        init_weights: whether to draw weights as the network was trained from; None draws them.
        dropout: its probability before the last layer.

    >>> import corefw as torch
    >>> with torch.device("meta"):
    ...     Inception3(num_classes=5)(torch.zeros(2, 3, 299, 299)).aux_logits.shape
    torch.Size([2, 5])
    """

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        inception_blocks: list[Layer] | None = None, init_weights: bool | None = None, dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        if inception_blocks is not None and len(inception_blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(inception_blocks)}")
        conv, a, b, c, d, e, auxiliary = inception_blocks or _BLOCKS
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(3, stride=2)
        self.Mixed_5b, self.Mixed_5c = a(192, pool_features=32), a(256, pool_features=64)
        self.Mixed_5d, self.Mixed_6a = a(288, pool_features=64), b(288)
        self.Mixed_6b, self.Mixed_6c = c(768, channels_7x7=128), c(768, channels_7x7=160)
        self.Mixed_6d, self.Mixed_6e = c(768, channels_7x7=160), c(768, channels_7x7=192)
        self.AuxLogits = auxiliary(768, num_classes) if aux_logits else None
        self.Mixed_7a, self.Mixed_7b, self.Mixed_7c = d(768), e(1280), e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        for module in self.modules() if init_weights in (None, True) else ():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, mean=0.0, std=getattr(module, "stddev", 0.1), a=-2, b=2)

    def forward(self, x: Tensor) -> Any:
        if self.transform_input:
            x = as_imagenets(x)
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        middle = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(middle)))
        x = self.fc(self.dropout(self.avgpool(x)).flatten(1))
        if self.training and self.AuxLogits is not None:
            return InceptionOutputs(x, self.AuxLogits(middle))
        return x


_weights = partial(trained_on_imagenet, __name__, smallest=75)

Inception_V3_Weights = _weights(
    "Inception_V3_Weights", 27_161_264, V1=Trained("inception_v3_google-0cc3c7bd", 77.294, 93.45, 342, 299)
)


def _as_trained(_: WeightsEnum, given: dict[str, Any]) -> dict[str, Any]:
    return {"transform_input": True, "init_weights": False}


@model(Inception_V3_Weights, wanted=_as_trained, convert=without_auxiliary)
def inception_v3(**kwargs: Any) -> Inception3:
    """Inception v3."""
    return Inception3(**kwargs)
