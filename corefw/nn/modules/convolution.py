"""Convolution layers, and layers that take images apart into windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.nn import init
from corefw.nn.modules.module import Module
from corefw.nn.modules.spatial import Spatial
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor
from corefw.windows import per_dimension

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Spatial):
    """What all convolution layers share: the options, the parameters and how they are drawn."""

    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride, padding, dilation, output_padding, groups: int,
        bias: bool, padding_mode: str, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        n = self.dimensions
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = per_dimension(kernel_size, n), per_dimension(stride, n)
        self.padding: str | tuple[int, ...] = padding if isinstance(padding, str) else per_dimension(padding, n)
        self.dilation, self.output_padding = per_dimension(dilation, n), per_dimension(output_padding, n)
        self.groups, self.padding_mode = groups, padding_mode
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of ('valid', 'same')")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(ops.empty((first, second // groups, *self.kernel_size), device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(ops.empty((out_channels,), device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init.fans(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = self.dimensions
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Direct(_ConvNd):
    """A convolution of any number of dimensions."""

    _docs = """The {n}-d convolution of (N, C, {axes}) or (C, {axes}) with learned kernels.

    Args:
        in_channels, out_channels: numbers of channels of the input and the result.
        kernel_size: the kernels' size.
        stride: the step between windows.
        padding: how much lies around the input, "valid" for nothing, "same" for as much as keeps the sizes.
        dilation: the step between a kernel's elements.
        groups: into how many parts the channels are divided, each of which sees its own part only.
        bias: whether to add one.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Attributes: ``weight`` (out_channels, in_channels / groups, *kernel_size) and ``bias`` (out_channels), both from
    U(-b, b) with ``b = 1 / sqrt(in_channels / groups * kernel elements)``.

    >>> import corefw as torch
    >>> torch.nn.Conv{n}d(2, 4, 3)(torch.zeros(1, 2, {5})).shape
    torch.Size([1, 4, {3}])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        options = (kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *options)

    def _border(self) -> list[int]:
        """The padding as `pad` takes it: the last dimension first."""
        if isinstance(self.padding, tuple):
            return [amount for amount in reversed(self.padding) for _ in range(2)]
        if self.padding == "valid":
            return [0, 0] * self.dimensions
        totals = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
        return [amount for total in reversed(totals) for amount in (total // 2, total - total // 2)]

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        """The convolution with these kernels in place of the layer's own: what layers derived from it call."""
        padding: str | tuple[int, ...] = self.padding
        if self.padding_mode != "zeros":
            input, padding = ops.pad(input, self._border(), self.padding_mode), (0,) * self.dimensions
        convolve = getattr(ops, f"conv{self.dimensions}d")
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution of any number of dimensions."""

    _docs = """The transposed {n}-d convolution of (N, C, {axes}) or (C, {axes}): the gradient of `Conv{n}d` as a layer.

    Args:
        in_channels, out_channels: numbers of channels of the input and the result.
        kernel_size: the kernels' size.
        stride: the step between windows in the result.
        padding: how much is left out at each border of the result.
        output_padding: how much is added at the end of each dimension.
        groups: into how many parts the channels are divided.
        bias: whether to add one.
        dilation: the step between a kernel's elements.

    Attributes: ``weight`` (in_channels, out_channels / groups, *kernel_size) and ``bias`` (out_channels).

    >>> import corefw as torch
    >>> torch.nn.ConvTranspose{n}d(2, 4, 3, stride=2)(torch.zeros(1, 2, {3})).shape
    torch.Size([1, 4, {7}])
    """

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1,
        bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        options = (kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *options)

    def _output_padding(self, input, output_size) -> tuple[int, ...]:
        """The output padding that gives the result these sizes."""
        n = self.dimensions
        if output_size is None:
            return self.output_padding
        assert isinstance(self.padding, tuple)
        spatial, wanted = tuple(input.shape[-n:]), tuple(output_size)
        if len(wanted) == input.ndim:
            wanted = wanted[-n:]
        if len(wanted) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.ndim}D input, output_size must have {n} or {input.ndim} elements "
                f"(got {len(wanted)})"
            )
        steps = zip(spatial, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in steps]
        most = [size + s - 1 for size, s in zip(least, self.stride)]
        if any(not low <= size <= high for size, low, high in zip(wanted, least, most)):
            raise ValueError(
                f"requested an output size of {list(wanted)}, but valid sizes range from {least} to {most} (for an "
                f"input of {list(spatial)})"
            )
        return tuple(size - low for size, low in zip(wanted, least))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        convolve = getattr(ops, f"conv_transpose{self.dimensions}d")
        added = self._output_padding(input, output_size)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation)


class Conv1d(_Direct, dimensions=1): ...


class Conv2d(_Direct, dimensions=2): ...


class Conv3d(_Direct, dimensions=3): ...


class ConvTranspose1d(_ConvTransposeNd, dimensions=1): ...


class ConvTranspose2d(_ConvTransposeNd, dimensions=2): ...


class ConvTranspose3d(_ConvTransposeNd, dimensions=3): ...


class Unfold(Module):
    """Every window of an image as a column: see `corefw.nn.functional.unfold`.

    >>> import corefw as torch
    >>> torch.nn.Unfold(2)(torch.zeros(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return ops.functional_unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns added where their windows lie in an image: see `corefw.nn.functional.fold`.

    >>> import corefw as torch
    >>> torch.nn.Fold(4, 2)(torch.zeros(1, 12, 9)).shape
    torch.Size([1, 3, 4, 4])
    """

    def __init__(
        self,
        output_size: Any,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return ops.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
