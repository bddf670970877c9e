"""AlexNet: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014."""

from __future__ import annotations

from functools import partial
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = ["AlexNet", "AlexNet_Weights", "alexnet"]


class AlexNet(nn.Module):
    """AlexNet for pictures (N, 3, H, W) of at least 63 by 63; the result is (N, `num_classes`).

    Args:
        num_classes: of the result.
        dropout: its probability in the classifier.

    >>> import corefw as torch
    >>> with torch.device("meta"):
    ...     AlexNet(num_classes=5)(torch.zeros(1, 3, 63, 63)).shape
    torch.Size([1, 5])
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        windows = ((3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1))
        for place, window in enumerate(windows):
            layers += [nn.Conv2d(*window), nn.ReLU(inplace=True)]
            if place in (0, 1, 4):
                layers.append(nn.MaxPool2d(3, 2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        layers = []
        for size in (256 * 6 * 6, 4096):
            layers += [nn.Dropout(p=dropout), nn.Linear(size, 4096), nn.ReLU(inplace=True)]
        self.classifier = nn.Sequential(*layers, nn.Linear(4096, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


_weights = partial(trained_on_imagenet, __name__, smallest=63)

AlexNet_Weights = _weights("AlexNet_Weights", 61_100_840, V1=Trained("alexnet-owt-7be5be79", 56.522, 79.066))


@model(AlexNet_Weights)
def alexnet(**kwargs: Any) -> AlexNet:
    """AlexNet."""
    return AlexNet(**kwargs)
