"""MobileNetV3: Howard et al., "Searching for MobileNetV3", 2019."""

from __future__ import annotations

from functools import partial
from typing import Any

from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, SlowNorm, draw
from corefw.vision.models._utils import _make_divisible
from corefw.vision.models.presets import Trained, trained_on_imagenet
from corefw.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "MobileNetV3",
    "MobileNet_V3_Large_Weights",
    "MobileNet_V3_Small_Weights",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
]


class InvertedResidualConfig:
    """A row of the paper's tables 1 and 2.

    Args:
        input_channels, expanded_channels, out_channels: before, in the middle and after.
        kernel: of the middle's window.
        use_se: whether channels are weighted by squeeze and excitation.
        activation: "RE" for ReLU, "HS" for Hardswish.
        stride, dilation: of the middle's window.
        width_mult: what numbers of channels are multiplied by.
    """

    def __init__(
        self, input_channels: int, kernel: int, expanded_channels: int, out_channels: int, use_se: bool,
        activation: str, stride: int, dilation: int, width_mult: float,
    ) -> None:  # fmt: skip
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel, self.use_se, self.use_hs = kernel, use_se, activation == "HS"
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.stride, self.dilation = stride, dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        """The multiple of 8 next to `channels` times `width_mult`."""
        return _make_divisible(channels * width_mult, 8)


_Squeezed = partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)


class InvertedResidual(nn.Module):
    """The block of one row: convolutions of 1, in each channel, and of 1, with squeeze and excitation before the last,
    beside the identity where the shape stays.

    Args:
        cnf: the row.
        norm_layer: called with the channels.
        se_layer: called with the channels and the squeezed ones.
    """

    def __init__(
        self,
        cnf: InvertedResidualConfig,
        norm_layer: Layer,
        se_layer: Layer = _Squeezed,
    ) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.out_channels, self._is_cn = cnf.out_channels, cnf.stride > 1
        wide = cnf.expanded_channels
        options: dict[str, Any] = {
            "norm_layer": norm_layer,
            "activation_layer": nn.Hardswish if cnf.use_hs else nn.ReLU,
        }
        layers: list[nn.Module] = []
        if wide != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, wide, 1, **options))
        stride = cnf.stride if cnf.dilation == 1 else 1
        layers.append(
            Conv2dNormActivation(wide, wide, cnf.kernel, stride, groups=wide, dilation=cnf.dilation, **options)
        )
        if cnf.use_se:
            layers.append(se_layer(wide, _make_divisible(wide // 4, 8)))
        options["activation_layer"] = None
        self.block = nn.Sequential(*layers, Conv2dNormActivation(wide, cnf.out_channels, 1, **options))

    def forward(self, input: Tensor) -> Tensor:
        out = self.block(input)
        return out.add_(input) if self.use_res_connect else out


class MobileNetV3(nn.Module):
    """MobileNetV3 for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        inverted_residual_setting: a row for each block.
        last_channel: channels between the two layers of the classifier.
        num_classes: of the result.
        block: called as `InvertedResidual`.
        norm_layer: called with the channels.
        dropout: its probability in the classifier.

    >>> import corefw as torch
    >>> rows = [InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, width_mult=0.5)]
    >>> MobileNetV3(rows, 32, num_classes=5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, inverted_residual_setting: list[InvertedResidualConfig], last_channel: int, num_classes: int = 1000,
        block: Layer | None = None, norm_layer: Layer | None = None, dropout: float = 0.2, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        rows = inverted_residual_setting
        if not rows:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(row, InvertedResidualConfig) for row in rows):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block, norm = block or InvertedResidual, norm_layer or SlowNorm
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.Hardswish}
        before, after = rows[-1].out_channels, 6 * rows[-1].out_channels
        self.features = nn.Sequential(
            Conv2dNormActivation(3, rows[0].input_channels, stride=2, **options),
            *(block(row, norm) for row in rows),
            Conv2dNormActivation(before, after, 1, **options),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(after, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        draw(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _network(
    rows: tuple[tuple, ...], last_channel: int, width_mult: float = 1.0, reduced_tail: bool = False,
    dilated: bool = False, **kwargs: Any,
) -> MobileNetV3:  # fmt: skip
    """A network of rows (input, kernel, expanded, output, squeezed, activation, stride).

    Args:
        width_mult: what numbers of channels are multiplied by.
        reduced_tail: whether the last three rows have half the channels.
        dilated: whether the last three are dilated, the first of them in place of its stride.
    """
    cut, settings = 2 if reduced_tail else 1, []
    for place, (before, kernel, wide, after, squeezed, activation, stride) in enumerate(rows, start=3 - len(rows)):
        if place >= 0:  # of the last three
            after //= cut
            before, wide = (before // cut, wide // cut) if place else (before, wide)
        dilation = 2 if dilated and place >= 0 else 1
        row = (before, kernel, wide, after, squeezed, activation, stride, dilation)
        settings.append(InvertedResidualConfig(*row, width_mult=width_mult))
    last = InvertedResidualConfig.adjust_channels(last_channel // cut, width_mult)
    return MobileNetV3(settings, last, **kwargs)


_LARGE = (
    (16, 3, 16, 16, False, "RE", 1),
    (16, 3, 64, 24, False, "RE", 2),
    (24, 3, 72, 24, False, "RE", 1),
    (24, 5, 72, 40, True, "RE", 2),
    (40, 5, 120, 40, True, "RE", 1),
    (40, 5, 120, 40, True, "RE", 1),
    (40, 3, 240, 80, False, "HS", 2),
    (80, 3, 200, 80, False, "HS", 1),
    (80, 3, 184, 80, False, "HS", 1),
    (80, 3, 184, 80, False, "HS", 1),
    (80, 3, 480, 112, True, "HS", 1),
    (112, 3, 672, 112, True, "HS", 1),
    (112, 5, 672, 160, True, "HS", 2),
    (160, 5, 960, 160, True, "HS", 1),
    (160, 5, 960, 160, True, "HS", 1),
)
_SMALL = (
    (16, 3, 16, 16, True, "RE", 2),
    (16, 3, 72, 24, False, "RE", 2),
    (24, 3, 88, 24, False, "RE", 1),
    (24, 5, 96, 40, True, "HS", 2),
    (40, 5, 240, 40, True, "HS", 1),
    (40, 5, 240, 40, True, "HS", 1),
    (40, 5, 120, 48, True, "HS", 1),
    (48, 5, 144, 48, True, "HS", 1),
    (48, 5, 288, 96, True, "HS", 2),
    (96, 5, 576, 96, True, "HS", 1),
    (96, 5, 576, 96, True, "HS", 1),
)

_weights = partial(trained_on_imagenet, __name__)

MobileNet_V3_Large_Weights = _weights(
    "MobileNet_V3_Large_Weights",
    5_483_032,
    V1=Trained("mobilenet_v3_large-8738ca79", 74.042, 91.34),
    V2=Trained("mobilenet_v3_large-5c1a4163", 75.274, 92.566, 232),
)
MobileNet_V3_Small_Weights = _weights(
    "MobileNet_V3_Small_Weights", 2_542_856, V1=Trained("mobilenet_v3_small-047dcff4", 67.668, 87.402)
)


@model(MobileNet_V3_Large_Weights)
def mobilenet_v3_large(**kwargs: Any) -> MobileNetV3:
    """MobileNetV3-Large."""
    return _network(_LARGE, 1280, **kwargs)


@model(MobileNet_V3_Small_Weights)
def mobilenet_v3_small(**kwargs: Any) -> MobileNetV3:
    """MobileNetV3-Small."""
    return _network(_SMALL, 1024, **kwargs)
