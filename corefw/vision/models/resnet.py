"""Residual networks: He et al., "Deep residual learning for image recognition", 2016; with groups, Xie et al.,
"Aggregated residual transformations", 2017; wide, Zagoruyko and Komodakis, "Wide residual networks", 2016."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import draw
from corefw.vision.models.presets import Trained, trained_on_imagenet

__all__ = [
    "ResNeXt50_32X4D_Weights",
    "ResNeXt101_32X8D_Weights",
    "ResNeXt101_64X4D_Weights",
    "ResNet",
    "ResNet18_Weights",
    "ResNet34_Weights",
    "ResNet50_Weights",
    "ResNet101_Weights",
    "ResNet152_Weights",
    "Wide_ResNet50_2_Weights",
    "Wide_ResNet101_2_Weights",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]

Norm = Callable[..., nn.Module]


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A convolution of 3 by 3 that keeps the size, but for its stride."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, groups=groups, bias=False, dilation=dilation)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A convolution of 1 by 1."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions of 3 by 3 beside the identity.

    Args:
        inplanes, planes: channels of the input and of the result.
        stride: of the first convolution.
        downsample: what stands beside them in place of the identity.
        groups, base_width, dilation: 1, 64 and 1; others are the bottleneck's.
        norm_layer: called with the channels.
    """

    expansion: ClassVar[int] = 1

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None, groups: int = 1,
        base_width: int = 64, dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        norm = norm_layer or nn.BatchNorm2d
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """Convolutions of 1, 3 and 1, the middle one of fewer channels and with the stride, beside the identity; arguments
    as for `BasicBlock`."""

    expansion: ClassVar[int] = 4

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None, groups: int = 1,
        base_width: int = 64, dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm, width = norm_layer or nn.BatchNorm2d, int(planes * (base_width / 64.0)) * groups
        self.conv1, self.bn1 = conv1x1(inplanes, width), norm(width)
        self.conv2, self.bn2 = conv3x3(width, width, stride, groups, dilation), norm(width)
        self.conv3, self.bn3 = conv1x1(width, planes * self.expansion), norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A residual network for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        block: `BasicBlock` or `Bottleneck`.
        layers: how many blocks each of the four stages has.
        num_classes: of the result.
        zero_init_residual: whether each block begins as the identity.
        groups, width_per_group: of the middle convolutions.
        replace_stride_with_dilation: for each of the last three stages, whether it is dilated in place of its stride.
        norm_layer: called with the channels.

    >>> import corefw as torch
    >>> ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, block: type[BasicBlock | Bottleneck], layers: list[int], num_classes: int = 1000,
        zero_init_residual: bool = False, groups: int = 1, width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        dilated = replace_stride_with_dilation or [False] * 3
        if len(dilated) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, groups, width_per_group
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1, self.relu = self._norm_layer(64), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilated[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilated[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilated[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        draw(self, linear=None)
        for module in self.modules() if zero_init_residual else ():
            if isinstance(module, (BasicBlock, Bottleneck)):
                last: Any = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                nn.init.constant_(last.weight, 0)

    def _make_layer(self, block, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> nn.Sequential:
        norm, before = self._norm_layer, self.dilation
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        downsample, width = None, planes * block.expansion
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(conv1x1(self.inplanes, width, stride), norm(width))
        options = (self.groups, self.base_width)
        layers = [block(self.inplanes, planes, stride, downsample, *options, before, norm)]
        self.inplanes = width
        layers += [block(width, planes, 1, None, *options, self.dilation, norm) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


_weights = partial(trained_on_imagenet, __name__)

ResNet101_Weights = _weights(
    "ResNet101_Weights",
    44_549_160,
    V1=Trained("resnet101-63fe2227", 77.374, 93.546),
    V2=Trained("resnet101-cd907fc2", 81.886, 95.78, 232),
)
ResNet152_Weights = _weights(
    "ResNet152_Weights",
    60_192_808,
    V1=Trained("resnet152-394f9c45", 78.312, 94.046),
    V2=Trained("resnet152-f82ba261", 82.284, 96.002, 232),
)
ResNet18_Weights = _weights("ResNet18_Weights", 11_689_512, V1=Trained("resnet18-f37072fd", 69.758, 89.078))
ResNet34_Weights = _weights("ResNet34_Weights", 21_797_672, V1=Trained("resnet34-b627a593", 73.314, 91.42))
ResNet50_Weights = _weights(
    "ResNet50_Weights",
    25_557_032,
    V1=Trained("resnet50-0676ba61", 76.13, 92.862),
    V2=Trained("resnet50-11ad3fa6", 80.858, 95.434, 232),
)
ResNeXt101_32X8D_Weights = _weights(
    "ResNeXt101_32X8D_Weights",
    88_791_336,
    V1=Trained("resnext101_32x8d-8ba56ff5", 79.312, 94.526),
    V2=Trained("resnext101_32x8d-110c445d", 82.834, 96.228, 232),
)
ResNeXt101_64X4D_Weights = _weights(
    "ResNeXt101_64X4D_Weights", 83_455_272, V1=Trained("resnext101_64x4d-173b62eb", 83.246, 96.454, 232)
)
ResNeXt50_32X4D_Weights = _weights(
    "ResNeXt50_32X4D_Weights",
    25_028_904,
    V1=Trained("resnext50_32x4d-7cdf4587", 77.618, 93.698),
    V2=Trained("resnext50_32x4d-1a0047aa", 81.198, 95.34, 232),
)
Wide_ResNet101_2_Weights = _weights(
    "Wide_ResNet101_2_Weights",
    126_886_696,
    V1=Trained("wide_resnet101_2-32ee1156", 78.848, 94.284),
    V2=Trained("wide_resnet101_2-d733dc28", 82.51, 96.02, 232),
)
Wide_ResNet50_2_Weights = _weights(
    "Wide_ResNet50_2_Weights",
    68_883_240,
    V1=Trained("wide_resnet50_2-95faca4d", 78.468, 94.086),
    V2=Trained("wide_resnet50_2-9ba9bcbe", 81.602, 95.758, 232),
)


@model(ResNet18_Weights)
def resnet18(**kwargs: Any) -> ResNet:
    """ResNet-18."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@model(ResNet34_Weights)
def resnet34(**kwargs: Any) -> ResNet:
    """ResNet-34."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@model(ResNet50_Weights)
def resnet50(**kwargs: Any) -> ResNet:
    """ResNet-50."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@model(ResNet101_Weights)
def resnet101(**kwargs: Any) -> ResNet:
    """ResNet-101."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@model(ResNet152_Weights)
def resnet152(**kwargs: Any) -> ResNet:
    """ResNet-152."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@model(ResNeXt50_32X4D_Weights)
def resnext50_32x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-50 of 32 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"groups": 32, "width_per_group": 4, **kwargs})


@model(ResNeXt101_32X8D_Weights)
def resnext101_32x8d(**kwargs: Any) -> ResNet:
    """ResNeXt-101 of 32 groups of 8 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 32, "width_per_group": 8, **kwargs})


@model(ResNeXt101_64X4D_Weights)
def resnext101_64x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-101 of 64 groups of 4 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 64, "width_per_group": 4, **kwargs})


@model(Wide_ResNet50_2_Weights)
def wide_resnet50_2(**kwargs: Any) -> ResNet:
    """ResNet-50 with twice as many channels in the middle of blocks."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"width_per_group": 128, **kwargs})


@model(Wide_ResNet101_2_Weights)
def wide_resnet101_2(**kwargs: Any) -> ResNet:
    """ResNet-101 with twice as many channels in the middle of blocks."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"width_per_group": 128, **kwargs})
