"""Parts that many models of images share: a convolution with its norm, squeeze and excitation, a perceptron."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import corefw
from corefw import Tensor, nn

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "ConvNormActivation",
    "FrozenBatchNorm2d",
    "Permute",
    "SqueezeExcitation",
]

Layer = Callable[..., nn.Module]


def _drop_count(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """What a BatchNorm2d counted is dropped when its state is loaded into a frozen one."""
    state_dict.pop(f"{prefix}num_batches_tracked", None)


class FrozenBatchNorm2d(nn.Module):
    """Batch normalisation whose statistics, weight and bias are buffers: nothing of it is trained.

    The input and the result have the shape (N, `num_features`, H, W); `eps` is added to the variance.

    >>> norm = FrozenBatchNorm2d(3)
    >>> norm, list(norm.parameters())
    (FrozenBatchNorm2d(3, eps=1e-05), [])
    """

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", corefw.ones(num_features))
        self.register_buffer("bias", corefw.zeros(num_features))
        self.register_buffer("running_mean", corefw.zeros(num_features))
        self.register_buffer("running_var", corefw.ones(num_features))
        self._register_load_state_dict_pre_hook(_drop_count)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.weight)}, eps={self.eps})"


def _each(value: int | Sequence[int], dimensions: int) -> tuple[int, ...]:
    return (value,) * dimensions if isinstance(value, int) else tuple(value)


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation, of which the last two may be None; `conv_layer` is the convolution.

    Use `Conv2dNormActivation` or `Conv3dNormActivation`, where the arguments are described.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str | None = None, groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d, activation_layer: Layer | None = nn.ReLU,
        dilation: int | Sequence[int] = 1, inplace: bool | None = True, bias: bool | None = None,
        conv_layer: Layer = nn.Conv2d,
    ) -> None:  # fmt: skip
        if padding is None:
            given = next((len(v) for v in (kernel_size, dilation) if not isinstance(v, int)), 0)
            sizes = zip(_each(kernel_size, given or 1), _each(dilation, given or 1))
            same = tuple((size - 1) // 2 * step for size, step in sizes)
            padding = same if given else same[0]
        layers = [
            conv_layer(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias=norm_layer is None if bias is None else bias,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**_inplace(inplace)))
        super().__init__(*layers)
        self.out_channels = out_channels


def _inplace(inplace: bool | None) -> dict[str, bool]:
    """The argument `inplace` for layers that have it; None stands for one that has not."""
    return {} if inplace is None else {"inplace": inplace}


class Conv2dNormActivation(ConvNormActivation):
    """A convolution in two dimensions, a norm and an activation.

    Args:
        in_channels: channels of the input (N, `in_channels`, H, W).
        out_channels: channels of the result.
        kernel_size: of the window.
        stride: of the window.
        padding: None pads so that a stride of one keeps odd windows' sizes.
        groups: of channels that are convolved apart.
        norm_layer: called with `out_channels`; None leaves it out.
        activation_layer: called with `inplace`; None leaves it out.
        dilation: of the window.
        inplace: None for an activation that has no such argument.
        bias: of the convolution; None gives one where there is no norm.

    >>> Conv2dNormActivation(3, 8, 5, norm_layer=None)
    Conv2dNormActivation(
      (0): Conv2d(3, 8, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))
      (1): ReLU(inplace=True)
    )
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int] = 3, stride: int | tuple[int,
        int] = 1, padding: int | tuple[int, int] | str | None = None, groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d, activation_layer: Layer | None = nn.ReLU, dilation: int | tuple[int,
        int] = 1, inplace: bool | None = True, bias: bool | None = None,
    ) -> None:  # fmt: skip
        window = (in_channels, out_channels, kernel_size, stride, padding, groups)
        super().__init__(*window, norm_layer, activation_layer, dilation, inplace, bias, nn.Conv2d)


class Conv3dNormActivation(ConvNormActivation):
    """`Conv2dNormActivation` in three dimensions, of inputs (N, `in_channels`, D, H, W)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int, int] = 3, stride: int | tuple[int,
        int, int] = 1, padding: int | tuple[int, int, int] | str | None = None, groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm3d, activation_layer: Layer | None = nn.ReLU, dilation: int | tuple[int,
        int, int] = 1, inplace: bool | None = True, bias: bool | None = None,
    ) -> None:  # fmt: skip
        window = (in_channels, out_channels, kernel_size, stride, padding, groups)
        super().__init__(*window, norm_layer, activation_layer, dilation, inplace, bias, nn.Conv3d)


class SqueezeExcitation(nn.Module):
    """Channels weighted by what their means tell (Hu et al., "Squeeze-and-excitation networks", 2018, section 3).

    Args:
        input_channels: channels of the input (N, C, H, W), which is also the result's shape.
        squeeze_channels: channels between the two products.
        activation: between them.
        scale_activation: gives the weights of the channels.
    """

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Layer = nn.ReLU,
        scale_activation: Layer = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        return input * self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input)))))


class MLP(nn.Sequential):
    """A perceptron of several layers, with dropout after each.

    Args:
        in_channels: last size of the input.
        hidden_channels: sizes after each layer; the last one is the result's.
        norm_layer: after each layer but the last, called with its size.
        activation_layer: after each layer but the last.
        inplace: of activations and dropout; None leaves their defaults.
        bias: of the linear layers.
        dropout: its probability.

    >>> MLP(4, [8, 2])
    MLP(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
      (2): Dropout(p=0.0, inplace=False)
      (3): Linear(in_features=8, out_features=2, bias=True)
      (4): Dropout(p=0.0, inplace=False)
    )
    """

    def __init__(
        self, in_channels: int, hidden_channels: list[int], norm_layer: Layer | None = None,
        activation_layer: Layer | None = nn.ReLU, inplace: bool | None = None, bias: bool = True, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        layers: list[nn.Module] = []
        for place, size in enumerate(hidden_channels, start=1):
            layers.append(nn.Linear(in_channels, size, bias=bias))
            if place < len(hidden_channels):
                if norm_layer is not None:
                    layers.append(norm_layer(size))
                if activation_layer is not None:
                    layers.append(activation_layer(**_inplace(inplace)))
            layers.append(nn.Dropout(dropout, **_inplace(inplace)))
            in_channels = size
        super().__init__(*layers)


class Permute(nn.Module):
    """The dimensions of a tensor in another order, `dims`.

    >>> Permute([0, 2, 1])(corefw.zeros(2, 3, 4)).shape
    torch.Size([2, 4, 3])
    """

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(self.dims)
