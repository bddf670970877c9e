"""Vision transformers: Dosovitskiy et al., "An image is worth 16x16 words: transformers for image recognition at
scale", 2021; with convolutions first, Xiao et al., "Early convolutions help transformers see better", 2021."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import WeightsEnum, model
from corefw.vision.models._shared import Layer
from corefw.vision.models.presets import BICUBIC, Trained, trained_on_imagenet
from corefw.vision.ops.misc import MLP, Conv2dNormActivation

__all__ = [
    "ViT_B_16_Weights",
    "ViT_B_32_Weights",
    "ViT_H_14_Weights",
    "ViT_L_16_Weights",
    "ViT_L_32_Weights",
    "VisionTransformer",
    "vit_b_16",
    "vit_b_32",
    "vit_h_14",
    "vit_l_16",
    "vit_l_32",
]

_Norm = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution before the patches: see `Conv2dNormActivation`."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d
    activation_layer: Callable[..., nn.Module] = nn.ReLU


def _of_first_layout(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Names of a file's first layout, in which layers were linear_1 and linear_2, are changed to the second's."""
    for place, old in ((0, "linear_1"), (3, "linear_2")):
        for name in [name for name in state_dict if name.startswith(f"{prefix}{old}.")]:
            state_dict[f"{prefix}{place}.{name.rpartition('.')[2]}"] = state_dict.pop(name)


class MLPBlock(MLP):
    """A perceptron of `mlp_dim` hidden units."""

    _version = 2

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for layer in (self[0], self[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)
        self._register_load_state_dict_pre_hook(_of_first_layout)


class EncoderBlock(nn.Module):
    """Attention and a perceptron, each of the normalised input and beside the identity; (N, L, `hidden_dim`).

    Args:
        num_heads: of attention.
        hidden_dim, mlp_dim: sizes of the input and inside the perceptron.
        dropout, attention_dropout: probabilities.
        norm_layer: called with `hidden_dim`.
    """

    def __init__(
        self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float, attention_dropout: float,
        norm_layer: Layer = _Norm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 3:
            raise ValueError(f"EncoderBlock: (N, L, {self.mlp[0].in_features}) expected, got {tuple(input.shape)}")
        x = self.ln_1(input)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Blocks of the input (N, L, `hidden_dim`) with what is learnt for each place, then a norm.

    Args:
        seq_length: L.
        num_layers: how many blocks; the other arguments are theirs.
    """

    def __init__(
        self, seq_length: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float,
        attention_dropout: float, norm_layer: Layer = _Norm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pos_embedding = nn.Parameter(corefw.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        options = (num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        self.layers = nn.Sequential(
            OrderedDict((f"encoder_layer_{place}", EncoderBlock(*options)) for place in range(num_layers))
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 3:
            raise ValueError(f"Encoder: an input (N, L, features) expected, got {tuple(input.shape)}")
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A vision transformer for pictures (N, 3, `image_size`, `image_size`); the result is (N, `num_classes`).

    Args:
        image_size: height and width of pictures.
        patch_size: of the patches that they are cut into; it divides `image_size`.
        num_layers, num_heads: of the encoder.
        hidden_dim, mlp_dim: sizes of what stands for a patch, and inside the perceptrons.
        dropout, attention_dropout: probabilities.
        num_classes: of the result.
        representation_size: of a layer with tanh before the last; None for no such layer.
        norm_layer: called with `hidden_dim`.
        conv_stem_configs: convolutions in place of cutting.

    >>> import corefw as torch
    >>> VisionTransformer(16, 8, 1, 2, 8, 16, num_classes=5)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, image_size: int, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int,
        dropout: float = 0.0, attention_dropout: float = 0.0, num_classes: int = 1000,
        representation_size: int | None = None, norm_layer: Layer = _Norm,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"Input shape indivisible by patch size! got {image_size} and {patch_size}")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size, self.norm_layer = representation_size, norm_layer
        self.conv_proj: nn.Module
        if conv_stem_configs is None:
            self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        else:
            self.conv_proj = _stem(conv_stem_configs, hidden_dim)
        self.class_token = nn.Parameter(corefw.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        blocks = (num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        self.encoder = Encoder(self.seq_length, *blocks)
        heads: dict[str, nn.Module] = {}
        if representation_size is not None:
            before = nn.Linear(hidden_dim, representation_size)
            nn.init.trunc_normal_(before.weight, std=math.sqrt(1 / hidden_dim))
            nn.init.zeros_(before.bias)
            heads = {"pre_logits": before, "act": nn.Tanh()}
        last = nn.Linear(representation_size or hidden_dim, num_classes)
        self.heads = nn.Sequential(OrderedDict([*heads.items(), ("head", last)]))
        projection = self.conv_proj if isinstance(self.conv_proj, nn.Conv2d) else self.conv_proj.conv_last
        if projection is self.conv_proj:
            nn.init.trunc_normal_(projection.weight, std=math.sqrt(1 / projection.weight[0].numel()))
        else:
            nn.init.normal_(projection.weight, std=math.sqrt(2.0 / projection.out_channels))
        for value in (projection.bias, last.weight, last.bias):
            nn.init.zeros_(value)

    def _process_input(self, x: Tensor) -> Tensor:
        """Pictures as what stands for their patches, (N, L, `hidden_dim`)."""
        for name, size in zip(("height", "width"), x.shape[2:], strict=True):
            if size != self.image_size:
                raise ValueError(f"Wrong image {name}! Expected {self.image_size} but got {size}!")
        return self.conv_proj(x).flatten(2).permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self._process_input(x)
        x = corefw.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def _stem(configs: list[ConvStemConfig], hidden_dim: int) -> nn.Sequential:
    """Convolutions in place of cutting patches."""
    layers, before = OrderedDict[str, nn.Module](), 3
    for place, one in enumerate(configs):
        layers[f"conv_bn_relu_{place}"] = Conv2dNormActivation(
            before,
            one.out_channels,
            one.kernel_size,
            one.stride,
            norm_layer=one.norm_layer,
            activation_layer=one.activation_layer,
        )
        before = one.out_channels
    layers["conv_last"] = nn.Conv2d(before, hidden_dim, 1)
    return nn.Sequential(layers)


def interpolate_embeddings(
    image_size: int, patch_size: int, model_state: OrderedDict[str, Tensor], interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> OrderedDict[str, Tensor]:  # fmt: skip
    """The state of a vision transformer as one for pictures of another size takes it.

    Args:
        image_size, patch_size: of the other.
        model_state: changed in place, and returned.
        interpolation_mode: of `nn.functional.interpolate`, for what is learnt for each place.
        reset_heads: whether to leave the last layers out.

    Raises:
        ValueError: the places do not form a square.

    >>> net = VisionTransformer(16, 8, 1, 2, 8, 16)
    >>> interpolate_embeddings(32, 8, net.state_dict())["encoder.pos_embedding"].shape
    torch.Size([1, 17, 8])
    """
    embedding = model_state["encoder.pos_embedding"]
    count, length, width = embedding.shape
    if count != 1:
        raise ValueError(f"Unexpected position embedding shape: {embedding.shape}")
    new_length = (image_size // patch_size) ** 2 + 1
    if new_length == length:
        return model_state
    side, new_side = math.isqrt(length - 1), math.isqrt(new_length - 1)
    if side * side != length - 1:
        raise ValueError(f"seq_length is not a perfect square! Instead got {side * side} and {length - 1}")
    grid = embedding[:, 1:].permute(0, 2, 1).reshape(1, width, side, side)
    resized = nn.functional.interpolate(grid, size=new_side, mode=interpolation_mode, align_corners=True)
    resized = resized.reshape(1, width, new_length - 1).permute(0, 2, 1)
    model_state["encoder.pos_embedding"] = corefw.cat([embedding[:, :1], resized], dim=1)
    for name in [name for name in model_state if reset_heads and name.startswith("heads")]:
        del model_state[name]
    return model_state


_weights = partial(trained_on_imagenet, __name__, smallest=None)

ViT_B_16_Weights = _weights(
    "ViT_B_16_Weights",
    86_567_656,
    V1=Trained("vit_b_16-c867db91", 81.072, 95.318),
    SWAG_E2E_V1=Trained("vit_b_16_swag-9ac1b537", 85.304, 97.65, 384, 384, BICUBIC, num_params=86_859_496),
    SWAG_LINEAR_V1=Trained("vit_b_16_lc_swag-4e70ced5", 81.886, 96.18, 224, 224, BICUBIC),
)
ViT_B_32_Weights = _weights("ViT_B_32_Weights", 88_224_232, V1=Trained("vit_b_32-d86f8d99", 75.912, 92.466))
ViT_H_14_Weights = _weights(
    "ViT_H_14_Weights",
    633_470_440,
    SWAG_E2E_V1=Trained("vit_h_14_swag-80465313", 88.552, 98.694, 518, 518, BICUBIC),
    SWAG_LINEAR_V1=Trained("vit_h_14_lc_swag-c1eb923e", 85.708, 97.73, 224, 224, BICUBIC, num_params=632_045_800),
)
ViT_L_16_Weights = _weights(
    "ViT_L_16_Weights",
    304_326_632,
    V1=Trained("vit_l_16-852ce7e3", 79.662, 94.638, 242),
    SWAG_E2E_V1=Trained("vit_l_16_swag-4f3808c9", 88.064, 98.512, 512, 512, BICUBIC, num_params=305_174_504),
    SWAG_LINEAR_V1=Trained("vit_l_16_lc_swag-4d563306", 85.146, 97.422, 224, 224, BICUBIC),
)
ViT_L_32_Weights = _weights("ViT_L_32_Weights", 306_535_400, V1=Trained("vit_l_32-c7638314", 76.972, 93.07))


def _of_size(weights: WeightsEnum, given: dict[str, Any]) -> dict[str, Any]:
    return {"image_size": weights.meta["min_size"][0]}


def _network(patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, **kwargs: Any) -> VisionTransformer:
    """A transformer for pictures of 224 by 224, unless told otherwise."""
    window = (kwargs.pop("image_size", 224), patch_size)
    return VisionTransformer(*window, num_layers, num_heads, hidden_dim, 4 * hidden_dim, **kwargs)


@model(ViT_B_16_Weights, wanted=_of_size)
def vit_b_16(**kwargs: Any) -> VisionTransformer:
    """ViT-B of patches of 16 by 16."""
    return _network(16, 12, 12, 768, **kwargs)


@model(ViT_B_32_Weights, wanted=_of_size)
def vit_b_32(**kwargs: Any) -> VisionTransformer:
    """ViT-B of patches of 32 by 32."""
    return _network(32, 12, 12, 768, **kwargs)


@model(ViT_L_16_Weights, wanted=_of_size)
def vit_l_16(**kwargs: Any) -> VisionTransformer:
    """ViT-L of patches of 16 by 16."""
    return _network(16, 24, 16, 1024, **kwargs)


@model(ViT_L_32_Weights, wanted=_of_size)
def vit_l_32(**kwargs: Any) -> VisionTransformer:
    """ViT-L of patches of 32 by 32."""
    return _network(32, 24, 16, 1024, **kwargs)


@model(ViT_H_14_Weights, wanted=_of_size)
def vit_h_14(**kwargs: Any) -> VisionTransformer:
    """ViT-H of patches of 14 by 14."""
    return _network(14, 32, 16, 1280, **kwargs)
