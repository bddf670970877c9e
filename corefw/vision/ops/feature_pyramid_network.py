"""Features of several sizes with the same channels: Lin et al., "Feature pyramid networks for object detection",
2017."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from corefw import Tensor, nn
from corefw.nn import functional
from corefw.vision.ops.misc import Conv2dNormActivation, Layer

__all__ = ["ExtraFPNBlock", "FeaturePyramidNetwork", "LastLevelMaxPool", "LastLevelP6P7"]


class ExtraFPNBlock(nn.Module):
    """What adds levels to a pyramid: ``forward(results, x, names)`` gives longer `results` and `names`."""

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> tuple[list[Tensor], list[str]]:
        raise NotImplementedError(f"{type(self).__name__} has no forward: define one that returns results and names")


def _draw(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_uniform_(layer.weight, a=1)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def _of_first_layout(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Names of a file's first layout, in which blocks were convolutions, are changed to the second's."""
    old = re.compile(rf"{re.escape(prefix)}(?:inner|layer)_blocks\.\d+\.(?=weight$|bias$)")
    for name in [name for name in state_dict if old.match(name)]:
        state_dict[old.sub(lambda found: f"{found[0]}0.", name)] = state_dict.pop(name)


class FeaturePyramidNetwork(nn.Module):
    """From features of falling size, features with `out_channels`, each with what the smaller ones tell.

    Args:
        in_channels_list: channels of the features, the largest picture first.
        out_channels: of the results.
        extra_blocks: adds levels to the results.
        norm_layer: called with the channels.

    The input is a dict of names and features, as the result is.

    >>> import corefw as torch
    >>> pyramid = FeaturePyramidNetwork([2, 4], 3, LastLevelMaxPool())
    >>> found = pyramid({"a": torch.zeros(1, 2, 8, 8), "b": torch.zeros(1, 4, 4, 4)})
    >>> [(name, tuple(one.shape)) for name, one in found.items()]
    [('a', (1, 3, 8, 8)), ('b', (1, 3, 4, 4)), ('pool', (1, 3, 2, 2))]
    """

    #: of the layout of files: in the first, blocks were convolutions
    _version = 2

    def __init__(
        self, in_channels_list: list[int], out_channels: int, extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if 0 in in_channels_list:
            raise ValueError("in_channels=0 is currently not supported")
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}")
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": None}
        self.inner_blocks = nn.ModuleList(
            Conv2dNormActivation(channels, out_channels, 1, padding=0, **options) for channels in in_channels_list
        )
        self.layer_blocks = nn.ModuleList(
            Conv2dNormActivation(out_channels, out_channels, 3, **options) for _ in in_channels_list
        )
        _draw(self)
        self.extra_blocks = extra_blocks
        self._register_load_state_dict_pre_hook(_of_first_layout)

    def forward(self, x: dict[str, Tensor]) -> dict[str, Tensor]:
        names, features = [*x], [*x.values()]
        results: list[Tensor] = []
        below: Tensor | None = None
        for feature, inner, layer in zip(
            reversed(features), reversed(self.inner_blocks), reversed(self.layer_blocks), strict=True
        ):
            one = inner(feature)
            if below is not None:
                one = one + functional.interpolate(below, size=one.shape[-2:], mode="nearest")
            results.insert(0, layer(one))
            below = one
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, features, names)
        return OrderedDict(zip(names, results, strict=True))


class LastLevelMaxPool(ExtraFPNBlock):
    """One level more, every second place of the smallest result."""

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> tuple[list[Tensor], list[str]]:
        return [*results, functional.max_pool2d(results[-1], 1, stride=2)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two levels more, by convolutions: of the smallest result if it has `in_channels`, else of the smallest features.

    Source: Lin et al., "Focal loss for dense object detection", 2017.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        _draw(self)
        self.use_P5 = in_channels == out_channels

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> tuple[list[Tensor], list[str]]:
        sixth = self.p6((results if self.use_P5 else x)[-1])
        return [*results, sixth, self.p7(functional.relu(sixth))], [*names, "p6", "p7"]
