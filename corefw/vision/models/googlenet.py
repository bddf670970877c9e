"""GoogLeNet: Szegedy et al., "Going deeper with convolutions", 2015."""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import WeightsEnum, model
from corefw.vision.models._shared import Layer, as_imagenets, without_auxiliary
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "GoogLeNet_Weights", "_GoogLeNetOutputs", "googlenet"]

GoogLeNetOutputs = namedtuple("GoogLeNetOutputs", ["logits", "aux_logits2", "aux_logits1"])
GoogLeNetOutputs.__doc__ = "What the network gives in training: its result and those of the classifiers in the middle."
_GoogLeNetOutputs = GoogLeNetOutputs


class BasicConv2d(nn.Module):
    """A convolution without bias, its norm, and ReLU; `kwargs` are the convolution's."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    """Windows of 1 and 3 (twice; the paper has one of 5) and a pooling beside each other.

    Args:
        in_channels: of the input.
        ch1x1: channels of the window of 1.
        ch3x3red, ch3x3: of the first window of 3, and before it.
        ch5x5red, ch5x5: of the second, and before it.
        pool_proj: channels after the pooling.
        conv_block: called as `BasicConv2d`.
    """

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int, pool_proj: int,
        conv_block: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            conv(in_channels, ch3x3red, kernel_size=1), conv(ch3x3red, ch3x3, kernel_size=3, padding=1)
        )
        self.branch3 = nn.Sequential(
            conv(in_channels, ch5x5red, kernel_size=1), conv(ch5x5red, ch5x5, kernel_size=3, padding=1)
        )
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv(in_channels, pool_proj, kernel_size=1))

    def forward(self, x: Tensor) -> Tensor:
        return corefw.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """A classifier in the middle of the network.

    Args:
        in_channels: of the input.
        num_classes: of the result.
        conv_block: called as `BasicConv2d`.
        dropout: its probability.
    """

    def __init__(
        self, in_channels: int, num_classes: int, conv_block: Layer | None = None, dropout: float = 0.7
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1, self.fc2 = nn.Linear(2048, 1024), nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(nn.functional.adaptive_avg_pool2d(x, (4, 4))).flatten(1)
        return self.fc2(self.dropout(nn.functional.relu(self.fc1(x), inplace=True)))


#: channels of the input, then the other arguments of `Inception`
_PARTS = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}


class GoogLeNet(nn.Module):
    """GoogLeNet for pictures (N, 3, H, W) of at least 15 by 15.

    The result is (N, `num_classes`); in training with `aux_logits` it is a `GoogLeNetOutputs` of three.

    Args:
        num_classes: of the results.
        aux_logits: whether there are classifiers in the middle.
        transform_input: whether pictures come normalised by ImageNet's statistics, and are not meant to.
        init_weights: whether to draw weights as the network was trained from; None draws them.
        blocks: called as `BasicConv2d`, `Inception` and `InceptionAux`.
        dropout, dropout_aux: probabilities before the last layers.

    >>> import corefw as torch
    >>> with torch.device("meta"):
    ...     GoogLeNet(num_classes=5)(torch.zeros(2, 3, 32, 32)).aux_logits1.shape
    torch.Size([2, 5])
    """

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        init_weights: bool | None = None, blocks: list[Layer] | None = None, dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:  # fmt: skip
        super().__init__()
        if blocks is not None and len(blocks) != 3:
            raise ValueError(f"blocks length should be 3 instead of {len(blocks)}")
        conv, inception, auxiliary = blocks or (BasicConv2d, Inception, InceptionAux)
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, channels in _PARTS.items():
            self.add_module(f"inception{name}", inception(*channels))
            if name == "3b":
                self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
            elif name == "4e":
                self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.aux1 = auxiliary(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = auxiliary(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        for module in self.modules() if init_weights in (None, True) else ():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, mean=0.0, std=0.01, a=-2, b=2)

    def forward(self, x: Tensor) -> Any:
        if self.transform_input:
            x = as_imagenets(x)
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        early = self.inception4a(x)
        late = self.inception4d(self.inception4c(self.inception4b(early)))
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(late))))
        x = self.fc(self.dropout(self.avgpool(x).flatten(1)))
        if self.training and self.aux1 is not None and self.aux2 is not None:
            return GoogLeNetOutputs(x, self.aux2(late), self.aux1(early))
        return x


_weights = partial(trained_on_imagenet, __name__, smallest=15)

GoogLeNet_Weights = _weights("GoogLeNet_Weights", 6_624_904, V1=Trained("googlenet-1378be20", 69.778, 89.53))


def _as_trained(_: WeightsEnum, given: dict[str, Any]) -> dict[str, Any]:
    given.setdefault("aux_logits", False)
    return {"transform_input": True, "init_weights": False}


@model(GoogLeNet_Weights, wanted=_as_trained, convert=without_auxiliary)
def googlenet(**kwargs: Any) -> GoogLeNet:
    """GoogLeNet; with weights, it has no classifiers in the middle unless `aux_logits` is given."""
    return GoogLeNet(**kwargs)
