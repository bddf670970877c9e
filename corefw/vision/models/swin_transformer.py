"""Swin transformers: Liu et al., "Swin transformer: hierarchical vision transformer using shifted windows", 2021, and
"Swin transformer V2: scaling up capacity and resolution", 2022."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.nn import functional
from corefw.vision.models._api import model
from corefw.vision.models._shared import Layer, draw
from corefw.vision.models.presets import BICUBIC, Trained, trained_on_imagenet
from corefw.vision.ops.misc import MLP, Permute
from corefw.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "SwinTransformer",
    "Swin_B_Weights",
    "Swin_S_Weights",
    "Swin_T_Weights",
    "Swin_V2_B_Weights",
    "Swin_V2_S_Weights",
    "Swin_V2_T_Weights",
    "swin_b",
    "swin_s",
    "swin_t",
    "swin_v2_b",
    "swin_v2_s",
    "swin_v2_t",
]


def _neighbours(x: Tensor) -> Tensor:
    """Each two by two places of (..., H, W, C) as one with four times the channels; odd sizes are padded."""
    x = functional.pad(x, (0, 0, 0, x.shape[-2] % 2, 0, x.shape[-3] % 2))
    return corefw.cat([x[..., row::2, column::2, :] for column in (0, 1) for row in (0, 1)], -1)


class PatchMerging(nn.Module):
    """Two by two places of (..., H, W, `dim`) become one of twice the channels; `norm_layer` comes first."""

    def __init__(self, dim: int, norm_layer: Layer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(_neighbours(x)))


class PatchMergingV2(nn.Module):
    """`PatchMerging` with its norm last."""

    def __init__(self, dim: int, norm_layer: Layer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(_neighbours(x)))


def _windows(x: Tensor, window: list[int]) -> Tensor:
    """(N, H, W, C) cut into windows, (N * windows, places of a window, C)."""
    count, height, width, channels = x.shape
    x = x.reshape(count, height // window[0], window[0], width // window[1], window[1], channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window[0] * window[1], channels)


def _joined(x: Tensor, window: list[int], height: int, width: int) -> Tensor:
    """What `_windows` cut, together again."""
    x = x.reshape(-1, height // window[0], width // window[1], *window, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, height, width, x.shape[-1])


def _parted(size: int, window: int, shift: int, like: Tensor) -> Tensor:
    """Of each place along one dimension the part that it belongs to, after a shift: 0, or 1 or 2 in the last window."""
    place = corefw.arange(size, device=like.device)
    return (place >= size - window).long() + (place >= size - shift).long()


def shifted_window_attention(
    input: Tensor, qkv_weight: Tensor, proj_weight: Tensor, relative_position_bias: Tensor, window_size: list[int],
    num_heads: int, shift_size: list[int], attention_dropout: float = 0.0, dropout: float = 0.0,
    qkv_bias: Tensor | None = None, proj_bias: Tensor | None = None, logit_scale: Tensor | None = None,
    training: bool = True,
) -> Tensor:  # fmt: skip
    """Attention within windows of (N, H, W, C), which are shifted; places that the shift brings together from two ends
    do not attend to each other.

    Args:
        input: (N, H, W, C); it is padded to whole windows.
        qkv_weight, qkv_bias: (3 * C, C) and (3 * C,), of queries, keys and values.
        proj_weight, proj_bias: of the result.
        relative_position_bias: (1, heads, places of a window, places of a window), added to the logits.
        window_size: height and width.
        num_heads: of attention.
        shift_size: of the windows; none along dimensions of a single window.
        attention_dropout, dropout: probabilities, in `training`.
        logit_scale: (heads, 1, 1), the logarithm of what cosines are multiplied by; without it, scaled products.

    Returns:
        (N, H, W, C).
    """
    _, rows, columns, channels = input.shape
    padding = [-size % window for size, window in zip((rows, columns), window_size, strict=True)]
    x = functional.pad(input, (0, 0, 0, padding[1], 0, padding[0]))
    sizes = rows + padding[0], columns + padding[1]
    shift = [0 if window >= size else by for window, size, by in zip(window_size, sizes, shift_size, strict=True)]
    if any(shift):
        x = corefw.roll(x, shifts=[-by for by in shift], dims=[1, 2])
    x = _windows(x, window_size)
    if logit_scale is not None and qkv_bias is not None:  # keys have no bias
        query, key, value = qkv_bias.chunk(3)
        qkv_bias = corefw.cat([query, corefw.zeros_like(key), value])
    qkv = functional.linear(x, qkv_weight, qkv_bias).reshape(*x.shape[:2], 3, num_heads, channels // num_heads)
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    if logit_scale is None:
        logits = (query * (channels // num_heads) ** -0.5) @ key.mT
    else:
        logits = functional.normalize(query, dim=-1) @ functional.normalize(key, dim=-1).mT
        logits = logits * corefw.clamp(logit_scale, max=math.log(100.0)).exp()
    logits = logits + relative_position_bias
    if any(shift):
        parts = [_parted(*one, like=x) for one in zip(sizes, window_size, shift, strict=True)]
        part = _windows((parts[0][:, None] * 3 + parts[1]).reshape(1, *sizes, 1), window_size)
        apart = (part != part.mT).to(x.dtype) * -100.0  # (windows, places, places)
        logits = (logits.unflatten(0, (-1, len(part))) + apart[:, None]).flatten(0, 1)
    attention = functional.dropout(logits.softmax(-1), p=attention_dropout, training=training)
    x = functional.linear((attention @ value).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    x = _joined(functional.dropout(x, p=dropout, training=training), window_size, *sizes)
    if any(shift):
        x = corefw.roll(x, shifts=shift, dims=[1, 2])
    return x[:, :rows, :columns]


def relative_places(window: list[int]) -> Tensor:
    """For each pair of a window's places, the row of a table that has one for each difference of places; (L, L)."""
    rows, columns = window
    row, column = (corefw.arange(rows * columns) // columns, corefw.arange(rows * columns) % columns)
    down, right = row[:, None] - row + rows - 1, column[:, None] - column + columns - 1
    return down * (2 * columns - 1) + right


class ShiftedWindowAttention(nn.Module):
    """`shifted_window_attention` with what it learns.

    Args:
        dim: channels.
        window_size, shift_size, num_heads, attention_dropout, dropout: as there.
        qkv_bias, proj_bias: whether there are biases.
    """

    def __init__(
        self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int, qkv_bias: bool = True,
        proj_bias: bool = True, attention_dropout: float = 0.0, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.define_relative_position_bias_table()
        self.register_buffer("relative_position_index", relative_places(window_size).flatten())
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)

    def define_relative_position_bias_table(self) -> None:
        """Make the table of biases, a row for each difference of places."""
        rows = math.prod(2 * size - 1 for size in self.window_size)
        self.relative_position_bias_table = nn.Parameter(corefw.zeros(rows, self.num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def _of_pairs(self, table: Tensor) -> Tensor:
        """The rows of a table for each pair of places, (1, heads, L, L)."""
        places = math.prod(self.window_size)
        return table[self.relative_position_index].reshape(places, places, -1).permute(2, 0, 1).unsqueeze(0)

    def get_relative_position_bias(self) -> Tensor:
        """What is added to the logits, (1, heads, L, L)."""
        return self._of_pairs(self.relative_position_bias_table)

    def forward(self, x: Tensor) -> Tensor:
        return shifted_window_attention(
            x,
            self.qkv.weight,
            self.proj.weight,
            self.get_relative_position_bias(),
            self.window_size,
            self.num_heads,
            shift_size=self.shift_size,
            attention_dropout=self.attention_dropout,
            dropout=self.dropout,
            qkv_bias=self.qkv.bias,
            proj_bias=self.proj.bias,
            logit_scale=getattr(self, "logit_scale", None),
            training=self.training,
        )


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Attention by cosines, with biases that a perceptron gives from the logarithms of differences of places."""

    def __init__(
        self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int, qkv_bias: bool = True,
        proj_bias: bool = True, attention_dropout: float = 0.0, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        options = (qkv_bias, proj_bias, attention_dropout, dropout)
        super().__init__(dim, window_size, shift_size, num_heads, *options)
        self.logit_scale = nn.Parameter(corefw.full((num_heads, 1, 1), math.log(10.0)))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False))
        if self.qkv.bias is not None:
            with corefw.no_grad():
                self.qkv.bias[dim : 2 * dim].zero_()

    def define_relative_position_bias_table(self) -> None:
        """Make the table of differences of places that the perceptron takes, each as sign(x) * log2(1 + 8 |x|) / 3 of
        its part x of the window."""
        axes = [corefw.arange(1 - size, size, dtype=corefw.float32) / (size - 1) * 8 for size in self.window_size]
        table = corefw.stack(corefw.meshgrid(*axes, indexing="ij"), dim=-1)[None]
        self.register_buffer("relative_coords_table", table.sign() * (table.abs() + 1).log2() / 3.0)

    def get_relative_position_bias(self) -> Tensor:
        """What is added to the logits, (1, heads, L, L)."""
        return 16 * self._of_pairs(self.cpb_mlp(self.relative_coords_table).reshape(-1, self.num_heads)).sigmoid()


class SwinTransformerBlock(nn.Module):
    """Attention in windows and a perceptron, each of the normalised input and beside the identity.

    Args:
        dim: channels.
        num_heads, window_size, shift_size, dropout, attention_dropout: of attention.
        mlp_ratio: hidden units of the perceptron, times `dim`.
        stochastic_depth_prob: of leaving one of both out.
        norm_layer: called with `dim`.
        attn_layer: called as `ShiftedWindowAttention`.
    """

    def __init__(
        self, dim: int, num_heads: int, window_size: list[int], shift_size: list[int], mlp_ratio: float = 4.0,
        dropout: float = 0.0, attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.0,
        norm_layer: Layer = nn.LayerNorm, attn_layer: Layer = ShiftedWindowAttention,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """`SwinTransformerBlock` with norms after attention and perceptron."""

    def __init__(
        self, dim: int, num_heads: int, window_size: list[int], shift_size: list[int], mlp_ratio: float = 4.0,
        dropout: float = 0.0, attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.0,
        norm_layer: Layer = nn.LayerNorm, attn_layer: Layer = ShiftedWindowAttentionV2,
    ) -> None:  # fmt: skip
        options = (mlp_ratio, dropout, attention_dropout, stochastic_depth_prob, norm_layer, attn_layer)
        super().__init__(dim, num_heads, window_size, shift_size, *options)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """A Swin transformer for pictures (N, 3, H, W); the result is (N, `num_classes`).

    Args:
        patch_size: of the patches that pictures are cut into.
        embed_dim: channels of the first stage; each has twice those before.
        depths, num_heads: blocks and heads of the stages.
        window_size: of attention; every second block's windows are shifted by half.
        mlp_ratio, dropout, attention_dropout: of blocks.
        stochastic_depth_prob: of leaving out the last block, in proportion of those before.
        num_classes: of the result.
        norm_layer: called with the channels.
        block: called as `SwinTransformerBlock`.
        downsample_layer: called as `PatchMerging`.

    >>> import corefw as torch
    >>> net = SwinTransformer([4, 4], 8, [2, 1], [2, 4], [2, 2], num_classes=5)
    >>> net(torch.zeros(2, 3, 24, 24)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, patch_size: list[int], embed_dim: int, depths: list[int], num_heads: list[int], window_size: list[int],
        mlp_ratio: float = 4.0, dropout: float = 0.0, attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1, num_classes: int = 1000, norm_layer: Layer | None = None,
        block: Layer | None = None, downsample_layer: Layer = PatchMerging,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes = num_classes
        block, norm = block or SwinTransformerBlock, norm_layer or partial(nn.LayerNorm, eps=1e-5)
        window = (patch_size[0], patch_size[1])
        layers: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(3, embed_dim, window, window), Permute([0, 2, 3, 1]), norm(embed_dim))
        ]
        count, last, width = 0, max(sum(depths) - 1, 1), embed_dim
        for stage, (depth, heads) in enumerate(zip(depths, num_heads, strict=True)):
            if stage:
                layers.append(downsample_layer(width, norm))
                width *= 2
            blocks = []
            for place in range(depth):
                shift = [size // 2 if place % 2 else 0 for size in window_size]
                options = (mlp_ratio, dropout, attention_dropout, stochastic_depth_prob * float(count) / last)
                blocks.append(block(width, heads, window_size, shift, *options, norm_layer=norm))
                count += 1
            layers.append(nn.Sequential(*blocks))
        self.features = nn.Sequential(*layers)
        self.norm, self.permute = norm(width), Permute([0, 3, 1, 2])
        self.avgpool, self.flatten = nn.AdaptiveAvgPool2d(1), nn.Flatten(1)
        self.head = nn.Linear(width, num_classes)
        draw(self, convolution=None, linear=partial(nn.init.trunc_normal_, std=0.02))

    def forward(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


_weights = partial(trained_on_imagenet, __name__, smallest=None)

Swin_B_Weights = _weights("Swin_B_Weights", 87_768_224, V1=Trained("swin_b-68c6b09e", 83.582, 96.64, 238, 224, BICUBIC))
Swin_S_Weights = _weights("Swin_S_Weights", 49_606_258, V1=Trained("swin_s-5e29d889", 83.196, 96.36, 246, 224, BICUBIC))
Swin_T_Weights = _weights(
    "Swin_T_Weights", 28_288_354, V1=Trained("swin_t-704ceda3", 81.474, 95.776, 232, 224, BICUBIC)
)
Swin_V2_B_Weights = _weights(
    "Swin_V2_B_Weights", 87_930_848, V1=Trained("swin_v2_b-781e5279", 84.112, 96.864, 272, 256, BICUBIC)
)
Swin_V2_S_Weights = _weights(
    "Swin_V2_S_Weights", 49_737_442, V1=Trained("swin_v2_s-637d8ceb", 83.712, 96.816, 260, 256, BICUBIC)
)
Swin_V2_T_Weights = _weights(
    "Swin_V2_T_Weights", 28_351_570, V1=Trained("swin_v2_t-b137f0e2", 82.072, 96.132, 260, 256, BICUBIC)
)

_V1: dict[str, Any] = {"window_size": [7, 7], "block": SwinTransformerBlock, "downsample_layer": PatchMerging}
_V2: dict[str, Any] = {"window_size": [8, 8], "block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}


def _network(width: int, deep: int, heads: int, depth_prob: float, **kwargs: Any) -> SwinTransformer:
    """A transformer of four stages, of which the third has `deep` blocks and the first so many `heads`."""
    shape: tuple = ([4, 4], width, [2, 2, deep, 2], [heads, 2 * heads, 4 * heads, 8 * heads])
    return SwinTransformer(*shape, **{"stochastic_depth_prob": depth_prob, **kwargs})


@model(Swin_T_Weights)
def swin_t(**kwargs: Any) -> SwinTransformer:
    """Swin-T."""
    return _network(96, 6, 3, 0.2, **{**_V1, **kwargs})


@model(Swin_S_Weights)
def swin_s(**kwargs: Any) -> SwinTransformer:
    """Swin-S."""
    return _network(96, 18, 3, 0.3, **{**_V1, **kwargs})


@model(Swin_B_Weights)
def swin_b(**kwargs: Any) -> SwinTransformer:
    """Swin-B."""
    return _network(128, 18, 4, 0.5, **{**_V1, **kwargs})


@model(Swin_V2_T_Weights)
def swin_v2_t(**kwargs: Any) -> SwinTransformer:
    """Swin-T, version 2."""
    return _network(96, 6, 3, 0.2, **{**_V2, **kwargs})


@model(Swin_V2_S_Weights)
def swin_v2_s(**kwargs: Any) -> SwinTransformer:
    """Swin-S, version 2."""
    return _network(96, 18, 3, 0.3, **{**_V2, **kwargs})


@model(Swin_V2_B_Weights)
def swin_v2_b(**kwargs: Any) -> SwinTransformer:
    """Swin-B, version 2."""
    return _network(128, 18, 4, 0.5, **{**_V2, **kwargs})
