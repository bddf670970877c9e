"""SqueezeNet: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size",
2016."""

from __future__ import annotations

from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import draw
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = ["SqueezeNet", "SqueezeNet1_0_Weights", "SqueezeNet1_1_Weights", "squeezenet1_0", "squeezenet1_1"]


class Fire(nn.Module):
    """A convolution to few channels, then two beside each other to many.

    Args:
        inplanes: channels of the input.
        squeeze_planes: the few channels.
        expand1x1_planes, expand3x3_planes: channels that windows of 1 and of 3 give.
    """

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        one, three = self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))
        return corefw.cat([one, three], 1)


#: of each version the first convolution, then how the squeezed and expanded channels go on; None is a pooling
_VERSIONS: dict[str, tuple[tuple[int, int, int, int], list[tuple[int, int] | None]]] = {
    "1_0": (
        (3, 96, 7, 2),
        [None, (16, 64), (16, 64), (32, 128), None, (32, 128), (48, 192), (48, 192), (64, 256), None, (64, 256)],
    ),
    "1_1": (
        (3, 64, 3, 2),
        [None, (16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256)],
    ),
}


class SqueezeNet(nn.Module):
    """SqueezeNet for pictures (N, 3, H, W) of at least 21 by 21 (17 by 17 for version "1_1"); the result is (N,
    `num_classes`).

    Args:
        version: "1_0", or "1_1" with less than half of the work.
        num_classes: of the result.
        dropout: its probability before the last convolution.

    >>> import corefw as torch
    >>> SqueezeNet("1_1", num_classes=5)(torch.zeros(1, 3, 17, 17)).shape
    torch.Size([1, 5])
    """

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _VERSIONS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        first, parts = _VERSIONS[version]
        layers: list[nn.Module] = [nn.Conv2d(*first), nn.ReLU(inplace=True)]
        channels = first[1]
        for part in parts:
            if part is None:
                layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            else:
                few, many = part
                layers.append(Fire(channels, few, many, many))
                channels = 2 * many
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, 1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        draw(self, convolution=nn.init.kaiming_uniform_)
        nn.init.normal_(last.weight, mean=0.0, std=0.01)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x)).flatten(1)


_weights = partial(trained_on_imagenet, __name__)

SqueezeNet1_0_Weights = _weights(
    "SqueezeNet1_0_Weights", 1_248_424, smallest=21, V1=Trained("squeezenet1_0-b66bff10", 58.092, 80.42)
)
SqueezeNet1_1_Weights = _weights(
    "SqueezeNet1_1_Weights", 1_235_496, smallest=17, V1=Trained("squeezenet1_1-b8a52dc0", 58.178, 80.624)
)


@model(SqueezeNet1_0_Weights)
def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet as in the paper."""
    return SqueezeNet("1_0", **kwargs)


@model(SqueezeNet1_1_Weights)
def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, with less than half of the work."""
    return SqueezeNet("1_1", **kwargs)
