"""ConvNeXt: Liu et al., "A ConvNet for the 2020s", 2022."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, draw
from corefw.vision.models.presets import Trained, trained_on_imagenet
from corefw.vision.ops.misc import Conv2dNormActivation, Permute
from corefw.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "ConvNeXt",
    "ConvNeXt_Base_Weights",
    "ConvNeXt_Large_Weights",
    "ConvNeXt_Small_Weights",
    "ConvNeXt_Tiny_Weights",
    "convnext_base",
    "convnext_large",
    "convnext_small",
    "convnext_tiny",
]


class LayerNorm2d(nn.LayerNorm):
    """`nn.LayerNorm` over the channels of (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A convolution of 7 in each channel and a perceptron over channels, scaled, beside the identity.

    Args:
        dim: channels.
        layer_scale: what the scales begin as.
        stochastic_depth_prob: of leaving the layers out.
        norm_layer: called with the channels, for (N, H, W, C).
    """

    def __init__(
        self, dim: int, layer_scale: float, stochastic_depth_prob: float, norm_layer: Layer | None = None
    ) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim),
            Permute([0, 2, 3, 1]),
            (norm_layer or partial(nn.LayerNorm, eps=1e-6))(dim),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(corefw.full((dim, 1, 1), float(layer_scale)))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


@dataclass
class CNBlockConfig:
    """A stage: its channels, those after the convolution that follows it (None if none does), and its blocks."""

    input_channels: int
    out_channels: int | None
    num_layers: int


class ConvNeXt(nn.Module):
    """A ConvNeXt for pictures (N, 3, H, W) of at least 32 by 32; the result is (N, `num_classes`).

    Args:
        block_setting: the stages.
        stochastic_depth_prob: of leaving out the last block, in proportion of those before.
        layer_scale: what the scales of blocks begin as.
        num_classes: of the result.
        block: called as `CNBlock`, without a norm.
        norm_layer: called with the channels, for (N, C, H, W).

    >>> import corefw as torch
    >>> stages = [CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 2)]
    >>> ConvNeXt(stages, num_classes=5)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, block_setting: list[CNBlockConfig], stochastic_depth_prob: float = 0.0, layer_scale: float = 1e-6,
        num_classes: int = 1000, block: Layer | None = None, norm_layer: Layer | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not all(isinstance(stage, CNBlockConfig) for stage in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block, norm = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        first = block_setting[0].input_channels
        layers: list[nn.Module] = [
            Conv2dNormActivation(3, first, 4, 4, 0, norm_layer=norm, activation_layer=None, bias=True)
        ]
        last, count = max(sum(stage.num_layers for stage in block_setting) - 1.0, 1.0), 0
        for stage in block_setting:
            width, after, blocks = stage.input_channels, stage.out_channels, []
            for _ in range(stage.num_layers):
                blocks.append(block(width, layer_scale, stochastic_depth_prob * count / last))
                count += 1
            layers.append(nn.Sequential(*blocks))
            if after is not None:
                layers.append(nn.Sequential(norm(width), nn.Conv2d(width, after, 2, 2)))
        channels = block_setting[-1].out_channels or block_setting[-1].input_channels
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(norm(channels), nn.Flatten(1), nn.Linear(channels, num_classes))
        around_0 = partial(nn.init.trunc_normal_, std=0.02)
        draw(self, convolution=around_0, linear=around_0)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


def _network(widths: tuple[int, ...], counts: tuple[int, ...], **kwargs: Any) -> ConvNeXt:
    """A network of stages of these widths and numbers of blocks."""
    stages = [CNBlockConfig(*stage) for stage in zip(widths, [*widths[1:], None], counts, strict=True)]
    return ConvNeXt(stages, **kwargs)


_weights = partial(trained_on_imagenet, __name__, smallest=32)

ConvNeXt_Base_Weights = _weights(
    "ConvNeXt_Base_Weights", 88_591_464, V1=Trained("convnext_base-6075fbad", 84.062, 96.87, 232)
)
ConvNeXt_Large_Weights = _weights(
    "ConvNeXt_Large_Weights", 197_767_336, V1=Trained("convnext_large-ea097f82", 84.414, 96.976, 232)
)
ConvNeXt_Small_Weights = _weights(
    "ConvNeXt_Small_Weights", 50_223_688, V1=Trained("convnext_small-0c510722", 83.616, 96.65, 230)
)
ConvNeXt_Tiny_Weights = _weights(
    "ConvNeXt_Tiny_Weights", 28_589_128, V1=Trained("convnext_tiny-983f1562", 82.52, 96.146, 236)
)


@model(ConvNeXt_Tiny_Weights)
def convnext_tiny(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt-T."""
    return _network((96, 192, 384, 768), (3, 3, 9, 3), **{"stochastic_depth_prob": 0.1, **kwargs})


@model(ConvNeXt_Small_Weights)
def convnext_small(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt-S."""
    return _network((96, 192, 384, 768), (3, 3, 27, 3), **{"stochastic_depth_prob": 0.4, **kwargs})


@model(ConvNeXt_Base_Weights)
def convnext_base(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt-B."""
    return _network((128, 256, 512, 1024), (3, 3, 27, 3), **{"stochastic_depth_prob": 0.5, **kwargs})


@model(ConvNeXt_Large_Weights)
def convnext_large(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt-L."""
    return _network((192, 384, 768, 1536), (3, 3, 27, 3), **{"stochastic_depth_prob": 0.5, **kwargs})
