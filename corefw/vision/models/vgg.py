"""VGG networks: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015."""

from __future__ import annotations

from functools import partial
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models.presets import trained_on_imagenet
from corefw.vision.models.registry import model

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
        for module in self.modules() if init_weights else ():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.constant_(module.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _features(counts: tuple[int, ...], norm: bool) -> nn.Sequential:
    """Five stages of so many convolutions of 3 by 3, a pooling after each."""
    layers: list[nn.Module] = []
    before = 3
    for channels, count in zip(_CHANNELS, counts, strict=True):
        for _ in range(count):
            layers.append(nn.Conv2d(before, channels, 3, padding=1))
            layers += [nn.BatchNorm2d(channels)] if norm else []
            layers.append(nn.ReLU(inplace=True))
            before = channels
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers)


# -- the weights: https://github.com/pytorch/vision/tree/main/torchvision/models ---------------------------------------
_enumeration = partial(trained_on_imagenet, __name__, smallest=32)

VGG11_Weights = _enumeration("VGG11_Weights", "vgg11-8a719046")
VGG11_BN_Weights = _enumeration("VGG11_BN_Weights", "vgg11_bn-6002323d")
VGG13_Weights = _enumeration("VGG13_Weights", "vgg13-19584684")
VGG13_BN_Weights = _enumeration("VGG13_BN_Weights", "vgg13_bn-abd245e5")
VGG16_Weights = _enumeration("VGG16_Weights", "vgg16-397923af")
VGG16_BN_Weights = _enumeration("VGG16_BN_Weights", "vgg16_bn-6c64b313")
VGG19_Weights = _enumeration("VGG19_Weights", "vgg19-dcbb9e9d")
VGG19_BN_Weights = _enumeration("VGG19_BN_Weights", "vgg19_bn-c79401a0")


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
