"""MaxViT: Tu et al., "MaxViT: multi-axis vision transformer", 2022."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import Any

import numpy as np

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, SlowNorm, draw
from corefw.vision.models.presets import BICUBIC, Trained, trained_on_imagenet
from corefw.vision.models.swin_transformer import relative_places
from corefw.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from corefw.vision.ops.stochastic_depth import StochasticDepth

__all__ = ["MaxVit", "MaxVit_T_Weights", "maxvit_t"]


def _halved(size: tuple[int, int]) -> tuple[int, int]:
    """What a window of 3 with a stride of 2 leaves of a picture."""
    return (size[0] + 1) // 2, (size[1] + 1) // 2


class MBConv(nn.Module):
    """Convolutions of 1, in each channel, and of 1, with squeeze and excitation before the last, of the normalised
    input and beside the identity.

    Args:
        in_channels, out_channels: of the input and of the result.
        expansion_ratio, squeeze_ratio: channels in the middle and squeezed ones, times `out_channels`.
        stride: of the middle convolution.
        activation_layer: called with `inplace`.
        norm_layer: called with the channels.
        p_stochastic_dropout: probability of leaving the layers out.
    """

    def __init__(
        self, in_channels: int, out_channels: int, expansion_ratio: float, squeeze_ratio: float, stride: int,
        activation_layer: Layer, norm_layer: Layer, p_stochastic_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            change: list[nn.Module] = [nn.Conv2d(in_channels, out_channels, 1)]
            if stride == 2:
                change.insert(0, nn.AvgPool2d(3, stride, 1))
            self.proj = nn.Sequential(*change)
        wide, squeezed = int(out_channels * expansion_ratio), int(out_channels * squeeze_ratio)
        self.stochastic_depth: nn.Module = nn.Identity()
        if p_stochastic_dropout:
            self.stochastic_depth = StochasticDepth(p_stochastic_dropout, mode="row")
        options: dict[str, Any] = {"activation_layer": activation_layer, "norm_layer": norm_layer, "inplace": None}
        layers: dict[str, nn.Module] = {
            "pre_norm": norm_layer(in_channels),
            "conv_a": Conv2dNormActivation(in_channels, wide, 1, **options),
            "conv_b": Conv2dNormActivation(wide, wide, 3, stride, 1, groups=wide, **options),
            "squeeze_excitation": SqueezeExcitation(wide, squeezed, activation=nn.SiLU),
            "conv_c": nn.Conv2d(wide, out_channels, 1),
        }
        self.layers = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x) + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention over the last but one dimension of (N, windows, L, C), with a bias for each difference of places.

    Args:
        feat_dim: C.
        head_dim: of a head; it divides C.
        max_seq_len: L, the places of a square.
    """

    def __init__(self, feat_dim: int, head_dim: int, max_seq_len: int) -> None:
        super().__init__()
        if feat_dim % head_dim:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads, self.head_dim, self.max_seq_len = feat_dim // head_dim, head_dim, max_seq_len
        self.size = math.isqrt(max_seq_len)
        self.to_qkv = nn.Linear(feat_dim, 3 * feat_dim)
        self.scale_factor = feat_dim**-0.5
        self.merge = nn.Linear(feat_dim, feat_dim)
        rows = (2 * self.size - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(corefw.empty(rows, self.n_heads))
        self.register_buffer("relative_position_index", relative_places([self.size, self.size]))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_positional_bias(self) -> Tensor:
        """What is added to the logits, (1, heads, L, L)."""
        return self.relative_position_bias_table[self.relative_position_index].permute(2, 0, 1)[None]

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.to_qkv(x).unflatten(-1, (3, self.n_heads, self.head_dim))
        query, key, value = qkv.permute(3, 0, 1, 4, 2, 5).unbind(0)  # (N, windows, heads, L, head_dim)
        logits = query @ (key * self.scale_factor).mT + self.get_relative_positional_bias()
        return self.merge((logits.softmax(-1) @ value).transpose(2, 3).flatten(3))


class SwapAxes(nn.Module):
    """Two dimensions exchanged."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x: Tensor) -> Tensor:
        return x.swapaxes(self.a, self.b)


class WindowPartition(nn.Module):
    """(N, C, H, W) cut into squares with sides of `p`: (N, squares, p * p, C)."""

    def forward(self, x: Tensor, p: int) -> Tensor:
        count, channels, height, width = x.shape
        x = x.reshape(count, channels, height // p, p, width // p, p)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(count, -1, p * p, channels)


class WindowDepartition(nn.Module):
    """What `WindowPartition` cut, together again, from the numbers of squares along both dimensions."""

    def forward(self, x: Tensor, p: int, h_partitions: int, w_partitions: int) -> Tensor:
        count, _, _, channels = x.shape
        x = x.reshape(count, h_partitions, w_partitions, p, p, channels)
        return x.permute(0, 5, 1, 3, 2, 4).reshape(count, channels, h_partitions * p, w_partitions * p)


class PartitionAttentionLayer(nn.Module):
    """Attention and a perceptron within squares, or between places that lie evenly over the picture.

    Args:
        in_channels: channels.
        head_dim: of a head.
        partition_size: sides of squares, or of the grid of places.
        partition_type: "window" for squares, "grid" for places.
        grid_size: height and width of the input.
        mlp_ratio: hidden units of the perceptron, times `in_channels`.
        activation_layer, norm_layer: norms are called with the channels.
        attention_dropout, mlp_dropout, p_stochastic_dropout: probabilities.
    """

    def __init__(
        self, in_channels: int, head_dim: int, partition_size: int, partition_type: str, grid_size: tuple[int, int],
        mlp_ratio: int, activation_layer: Layer, norm_layer: Layer, attention_dropout: float, mlp_dropout: float,
        p_stochastic_dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        self.n_heads, self.head_dim = in_channels // head_dim, head_dim
        self.n_partitions, self.partition_type = grid_size[0] // partition_size, partition_type
        self.grid_size = grid_size
        grid = partition_type == "grid"
        self.p, self.g = (self.n_partitions, partition_size) if grid else (partition_size, self.n_partitions)
        self.partition_op, self.departition_op = WindowPartition(), WindowDepartition()
        self.partition_swap = SwapAxes(-2, -3) if grid else nn.Identity()
        self.departition_swap = SwapAxes(-2, -3) if grid else nn.Identity()
        self.attn_layer = nn.Sequential(
            norm_layer(in_channels),
            RelativePositionalMultiHeadAttention(in_channels, head_dim, partition_size**2),
            nn.Dropout(attention_dropout),
        )
        self.mlp_layer = nn.Sequential(
            nn.LayerNorm(in_channels),
            nn.Linear(in_channels, in_channels * mlp_ratio),
            activation_layer(),
            nn.Linear(in_channels * mlp_ratio, in_channels),
            nn.Dropout(mlp_dropout),
        )
        self.stochastic_dropout = StochasticDepth(p_stochastic_dropout, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = self.grid_size[0] // self.p, self.grid_size[1] // self.p
        if self.grid_size != (rows * self.p, columns * self.p):
            raise ValueError(
                f"Grid size must be divisible by partition size. Got grid size of {self.grid_size} and partition size "
                f"of {self.p}"
            )
        x = self.partition_swap(self.partition_op(x, self.p))
        x = x + self.stochastic_dropout(self.attn_layer(x))
        x = x + self.stochastic_dropout(self.mlp_layer(x))
        return self.departition_op(self.departition_swap(x), self.p, rows, columns)


class MaxVitLayer(nn.Module):
    """An `MBConv`, then attention within windows and between the places of a grid; arguments as there."""

    def __init__(
        self, in_channels: int, out_channels: int, squeeze_ratio: float, expansion_ratio: float, stride: int,
        norm_layer: Layer, activation_layer: Layer, head_dim: int, mlp_ratio: int, mlp_dropout: float,
        attention_dropout: float, p_stochastic_dropout: float, partition_size: int, grid_size: tuple[int, int],
    ) -> None:  # fmt: skip
        super().__init__()
        window = (in_channels, out_channels, expansion_ratio, squeeze_ratio, stride)
        layers: dict[str, nn.Module] = {
            "MBconv": MBConv(*window, activation_layer, norm_layer, p_stochastic_dropout),
        }
        for kind in ("window", "grid"):
            layers[f"{kind}_attention"] = PartitionAttentionLayer(
                out_channels,
                head_dim,
                partition_size,
                kind,
                grid_size,
                mlp_ratio,
                activation_layer,
                nn.LayerNorm,
                attention_dropout,
                mlp_dropout,
                p_stochastic_dropout,
            )
        self.layers = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """A stage of `n_layers` layers, of which the first halves the picture; `p_stochastic` has a probability for each.
    The other arguments are those of `MaxVitLayer`."""

    def __init__(
        self, in_channels: int, out_channels: int, squeeze_ratio: float, expansion_ratio: float, norm_layer: Layer,
        activation_layer: Layer, head_dim: int, mlp_ratio: int, mlp_dropout: float, attention_dropout: float,
        partition_size: int, input_grid_size: tuple[int, int], n_layers: int, p_stochastic: list[float],
    ) -> None:  # fmt: skip
        super().__init__()
        if len(p_stochastic) != n_layers:
            raise ValueError(f"p_stochastic must have length n_layers={n_layers}, got p_stochastic={p_stochastic}.")
        self.layers = nn.ModuleList()
        self.grid_size = _halved(input_grid_size)
        ratios, kinds = (squeeze_ratio, expansion_ratio), (norm_layer, activation_layer)
        for place, p in enumerate(p_stochastic):
            before, stride = (out_channels, 1) if place else (in_channels, 2)
            options: tuple[Any, ...] = (
                head_dim,
                mlp_ratio,
                mlp_dropout,
                attention_dropout,
                p,
                partition_size,
                self.grid_size,
            )
            self.layers.append(MaxVitLayer(before, out_channels, *ratios, stride, *kinds, *options))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """A MaxViT for pictures (N, 3, *`input_size`); the result is (N, `num_classes`).

    Args:
        input_size: height and width of pictures; what each stage halves them to must be whole windows.
        stem_channels: of the first convolutions.
        partition_size: sides of windows and grids.
        block_channels, block_layers: of the stages.
        head_dim: of a head.
        stochastic_depth_prob: of leaving out the last layer, in proportion of those before.
        norm_layer, activation_layer: norms are called with the channels.
        squeeze_ratio, expansion_ratio: of `MBConv`.
        mlp_ratio, mlp_dropout, attention_dropout: of attention and its perceptrons.
        num_classes: of the result.

    >>> import corefw as torch
    >>> net = MaxVit((16, 16), 4, 2, [4, 8], [1, 1], 4, 0.1, num_classes=5)
    >>> net(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, input_size: tuple[int, int], stem_channels: int, partition_size: int, block_channels: list[int],
        block_layers: list[int], head_dim: int, stochastic_depth_prob: float, norm_layer: Layer | None = None,
        activation_layer: Layer = nn.GELU, squeeze_ratio: float = 0.25, expansion_ratio: float = 4, mlp_ratio: int = 4,
        mlp_dropout: float = 0.0, attention_dropout: float = 0.0, num_classes: int = 1000,
    ) -> None:  # fmt: skip
        super().__init__()
        norm, size = norm_layer or SlowNorm, _halved(input_size)
        sizes = [size]
        for _ in block_channels:
            sizes.append(_halved(sizes[-1]))
        for place, one in enumerate(sizes[1:]):
            if one[0] % partition_size or one[1] % partition_size:
                raise ValueError(
                    f"Input size {one} of block {place} is not divisible by partition size {partition_size}. Consider "
                    f"changing the partition size or the input size.\nCurrent configuration yields the following block "
                    f"input sizes: {sizes[1:]}."
                )
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": activation_layer, "inplace": None}
        self.stem = nn.Sequential(
            Conv2dNormActivation(3, stem_channels, 3, 2, bias=False, **options),
            Conv2dNormActivation(stem_channels, stem_channels, 3, norm_layer=None, activation_layer=None, bias=True),
        )
        self.partition_size = partition_size
        self.blocks = nn.ModuleList()
        chances = np.linspace(0, stochastic_depth_prob, sum(block_layers)).tolist()
        before, begin = stem_channels, 0
        for channels, count, one in zip(block_channels, block_layers, sizes, strict=False):
            kinds = (squeeze_ratio, expansion_ratio, norm, activation_layer, head_dim, mlp_ratio)
            inside = (mlp_dropout, attention_dropout, partition_size, one, count)
            self.blocks.append(MaxVitBlock(before, channels, *kinds, *inside, chances[begin : begin + count]))
            before, begin = channels, begin + count
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(before),
            nn.Linear(before, before),
            nn.Tanh(),
            nn.Linear(before, num_classes, bias=False),
        )
        around_0 = partial(nn.init.normal_, std=0.02)
        draw(self, convolution=around_0, linear=around_0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


_weights = partial(trained_on_imagenet, __name__, smallest=None)

MaxVit_T_Weights = _weights(
    "MaxVit_T_Weights", 30_919_624, V1=Trained("maxvit_t-bc5ab103", 83.7, 96.722, 224, 224, BICUBIC)
)


@model(MaxVit_T_Weights)
def maxvit_t(**kwargs: Any) -> MaxVit:
    """MaxViT-T, for pictures of 224 by 224."""
    return MaxVit(
        **{
            "input_size": (224, 224),
            "stem_channels": 64,
            "block_channels": [64, 128, 256, 512],
            "block_layers": [2, 2, 5, 2],
            "head_dim": 32,
            "stochastic_depth_prob": 0.2,
            "partition_size": 7,
            **kwargs,
        }
    )
