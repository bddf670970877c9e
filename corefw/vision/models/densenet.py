"""Densely connected networks: Huang et al., "Densely connected convolutional networks", 2017; their memory: Pleiss et
al., "Memory-efficient implementation of DenseNets", 2017."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.utils.checkpoint import checkpoint
from corefw.vision.models._api import model
from corefw.vision.models._shared import draw
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = [
    "DenseNet",
    "DenseNet121_Weights",
    "DenseNet161_Weights",
    "DenseNet169_Weights",
    "DenseNet201_Weights",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
]


class _DenseLayer(nn.Module):
    """Convolutions of 1 and 3 of all that stands before; the result is `growth_rate` channels."""

    def __init__(
        self, num_input_features: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool = False
    ) -> None:
        super().__init__()
        between = bn_size * growth_rate
        self.norm1, self.relu1 = nn.BatchNorm2d(num_input_features), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, between, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(between), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(between, growth_rate, 3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def bn_function(self, inputs: list[Tensor]) -> Tensor:
        """The first convolution, of channels from several layers."""
        return self.conv1(self.relu1(self.norm1(corefw.cat(inputs, 1))))

    def forward(self, input: Tensor | list[Tensor]) -> Tensor:
        before = [input] if isinstance(input, Tensor) else input
        if self.memory_efficient and any(x.requires_grad for x in before):
            x = checkpoint(lambda *inputs: self.bn_function([*inputs]), *before, use_reentrant=False)
        else:
            x = self.bn_function(before)
        x = self.conv2(self.relu2(self.norm2(x)))
        return nn.functional.dropout(x, self.drop_rate, self.training) if self.drop_rate > 0 else x


class _DenseBlock(nn.ModuleDict):
    """Layers of which each takes what all before it gave."""

    def __init__(
        self, num_layers: int, num_input_features: int, bn_size: int, growth_rate: int, drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        options = (growth_rate, bn_size, drop_rate, memory_efficient)
        super().__init__(
            {
                f"denselayer{i + 1}": _DenseLayer(num_input_features + i * growth_rate, *options)
                for i in range(num_layers)
            }
        )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return corefw.cat(features, 1)


class _Transition(nn.Sequential):
    """Between blocks: fewer channels, of half the size."""

    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(num_input_features), nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, 1, bias=False)
        self.pool = nn.AvgPool2d(2, 2)


class DenseNet(nn.Module):
    """A densely connected network for pictures (N, 3, H, W) of at least 29 by 29; the result is (N, `num_classes`).

    Args:
        growth_rate: channels that each layer adds.
        block_config: layers of each block.
        num_init_features: channels of the first convolution.
        bn_size: channels between a layer's convolutions, times `growth_rate`.
        drop_rate: probability of dropout after each layer.
        num_classes: of the result.
        memory_efficient: whether to compute a layer's first part again in the backward, rather than keep it.

    >>> import corefw as torch
    >>> DenseNet(4, (1, 2), 8, num_classes=5)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, growth_rate: int = 32, block_config: tuple[int, ...] = (6, 12, 24, 16), num_init_features: int = 64,
        bn_size: int = 4, drop_rate: float = 0, num_classes: int = 1000, memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        channels = num_init_features
        self.features = nn.Sequential()
        self.features.conv0 = nn.Conv2d(3, channels, 7, 2, 3, bias=False)
        self.features.norm0, self.features.relu0 = nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        self.features.pool0 = nn.MaxPool2d(3, 2, 1)
        for place, count in enumerate(block_config, start=1):
            block = _DenseBlock(count, channels, bn_size, growth_rate, drop_rate, memory_efficient)
            self.features.add_module(f"denseblock{place}", block)
            channels += count * growth_rate
            if place < len(block_config):
                self.features.add_module(f"transition{place}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.norm5 = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, num_classes)
        draw(self, convolution=nn.init.kaiming_normal_, linear=None)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.relu(self.features(x), inplace=True)
        return self.classifier(nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


_OLD_KEY = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12]\.)")


def _renamed(_: DenseNet, state: dict[str, Any]) -> dict[str, Any]:
    """The state of files from when a layer's parts were called norm.1 and conv.1."""
    return {_OLD_KEY.sub(r"\1\2", name): value for name, value in state.items()}


_weights = partial(trained_on_imagenet, __name__, smallest=29)

DenseNet121_Weights = _weights("DenseNet121_Weights", 7_978_856, V1=Trained("densenet121-a639ec97", 74.434, 91.972))
DenseNet161_Weights = _weights("DenseNet161_Weights", 28_681_000, V1=Trained("densenet161-8d451a50", 77.138, 93.56))
DenseNet169_Weights = _weights("DenseNet169_Weights", 14_149_480, V1=Trained("densenet169-b2777c0a", 75.6, 92.806))
DenseNet201_Weights = _weights("DenseNet201_Weights", 20_013_928, V1=Trained("densenet201-c1103571", 76.896, 93.37))


@model(DenseNet121_Weights, convert=_renamed)
def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121."""
    return DenseNet(32, (6, 12, 24, 16), 64, **kwargs)


@model(DenseNet161_Weights, convert=_renamed)
def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161."""
    return DenseNet(48, (6, 12, 36, 24), 96, **kwargs)


@model(DenseNet169_Weights, convert=_renamed)
def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169."""
    return DenseNet(32, (6, 12, 32, 32), 64, **kwargs)


@model(DenseNet201_Weights, convert=_renamed)
def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201."""
    return DenseNet(32, (6, 12, 48, 32), 64, **kwargs)
