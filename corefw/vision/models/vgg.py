"""VGG networks: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import nan
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import draw
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = [
    "VGG",
    "VGG11_BN_Weights",
    "VGG11_Weights",
    "VGG13_BN_Weights",
    "VGG13_Weights",
    "VGG16_BN_Weights",
    "VGG16_Weights",
    "VGG19_BN_Weights",
    "VGG19_Weights",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
]

_CHANNELS = (64, 128, 256, 512, 512)


class VGG(nn.Module):
    """A VGG network for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        features: the layers before the classifier, whose result has 512 channels.
        num_classes: of the result.
        init_weights: whether to draw weights as the networks were trained from.
        dropout: its probability in the classifier.

    >>> import corefw as torch
    >>> with torch.device("meta"):
    ...     VGG(nn.Conv2d(3, 512, 1), num_classes=5)(torch.zeros(1, 3, 14, 14)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        layers: list[nn.Module] = []
        for size in (512 * 7 * 7, 4096):
            layers += [nn.Linear(size, 4096), nn.ReLU(True), nn.Dropout(p=dropout)]
        self.classifier = nn.Sequential(*layers, nn.Linear(4096, num_classes))
        if init_weights:
            draw(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """Convolutions of 3 by 3 to so many channels, each with an activation, and poolings where "M" stands.

    >>> make_layers([8, "M"], batch_norm=True)
    Sequential(
      (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
      (1): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
      (2): ReLU(inplace=True)
      (3): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    )
    """
    layers: list[nn.Module] = []
    before = 3
    for channels in cfg:
        if isinstance(channels, str):
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers.append(nn.Conv2d(before, channels, 3, padding=1))
        layers += [nn.BatchNorm2d(channels)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        before = channels
    return nn.Sequential(*layers)


def _features(counts: tuple[int, ...], norm: bool) -> nn.Sequential:
    """Five stages of so many convolutions, a pooling after each."""
    stages = zip(_CHANNELS, counts, strict=True)
    sizes: list[int | str] = []
    for channels, count in stages:
        sizes += [*[channels] * count, "M"]
    return make_layers(sizes, norm)


_weights = partial(trained_on_imagenet, __name__, smallest=32)

VGG11_Weights = _weights("VGG11_Weights", 132_863_336, V1=Trained("vgg11-8a719046", 69.02, 88.628))
VGG11_BN_Weights = _weights("VGG11_BN_Weights", 132_868_840, V1=Trained("vgg11_bn-6002323d", 70.37, 89.81))
VGG13_Weights = _weights("VGG13_Weights", 133_047_848, V1=Trained("vgg13-19584684", 69.928, 89.246))
VGG13_BN_Weights = _weights("VGG13_BN_Weights", 133_053_736, V1=Trained("vgg13_bn-abd245e5", 71.586, 90.374))
VGG16_Weights = _weights(
    "VGG16_Weights",
    138_357_544,
    V1=Trained("vgg16-397923af", 71.592, 90.382),
    FEATURES=Trained(
        "vgg16_features-amdegroot-88682ab5", nan, nan, mean=(0.48235, 0.45882, 0.40784), std=(1 / 255, 1 / 255, 1 / 255)
    ),
)
VGG16_BN_Weights = _weights("VGG16_BN_Weights", 138_365_992, V1=Trained("vgg16_bn-6c64b313", 73.36, 91.516))
VGG19_Weights = _weights("VGG19_Weights", 143_667_240, V1=Trained("vgg19-dcbb9e9d", 72.376, 90.876))
VGG19_BN_Weights = _weights("VGG19_BN_Weights", 143_678_248, V1=Trained("vgg19_bn-c79401a0", 74.218, 91.842))


@model(VGG11_Weights)
def vgg11(**kwargs: Any) -> VGG:
    """VGG of 11 layers."""
    return VGG(_features((1, 1, 2, 2, 2), norm=False), **kwargs)


@model(VGG11_BN_Weights)
def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG of 11 layers, with norms."""
    return VGG(_features((1, 1, 2, 2, 2), norm=True), **kwargs)


@model(VGG13_Weights)
def vgg13(**kwargs: Any) -> VGG:
    """VGG of 13 layers."""
    return VGG(_features((2, 2, 2, 2, 2), norm=False), **kwargs)


@model(VGG13_BN_Weights)
def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG of 13 layers, with norms."""
    return VGG(_features((2, 2, 2, 2, 2), norm=True), **kwargs)


@model(VGG16_Weights)
def vgg16(**kwargs: Any) -> VGG:
    """VGG of 16 layers."""
    return VGG(_features((2, 2, 3, 3, 3), norm=False), **kwargs)


@model(VGG16_BN_Weights)
def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG of 16 layers, with norms."""
    return VGG(_features((2, 2, 3, 3, 3), norm=True), **kwargs)


@model(VGG19_Weights)
def vgg19(**kwargs: Any) -> VGG:
    """VGG of 19 layers."""
    return VGG(_features((2, 2, 4, 4, 4), norm=False), **kwargs)


@model(VGG19_BN_Weights)
def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG of 19 layers, with norms."""
    return VGG(_features((2, 2, 4, 4, 4), norm=True), **kwargs)
