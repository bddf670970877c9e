"""Pooling layers: each is its function with its options kept."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.windows import per_dimension


class _Pool(Module):
    """What all layers share whose windows slide: the windows."""

    dimensions = 0

    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding


class _MaxPool(_Pool):
    """The maximum of each window."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__(kernel_size, stride, padding)
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, input):
        pool = getattr(ops, f"max_pool{self.dimensions}d")
        options = (self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)
        return pool(input, self.kernel_size, *options)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(_Pool):
    """Maxima put back where they were."""

    def __init__(self, kernel_size, stride=None, padding=0):
        n = self.dimensions
        super().__init__(
            per_dimension(kernel_size, n),
            per_dimension(kernel_size if stride is None else stride, n),
            per_dimension(padding, n),
        )

    def forward(self, input, indices, output_size=None):
        unpool = getattr(ops, f"max_unpool{self.dimensions}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(_Pool):
    """The mean of each window."""

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):
        pool = getattr(ops, f"avg_pool{self.dimensions}d")
        options = (self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return pool(input, self.kernel_size, *options)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _LPPool(Module):
    """The p-norm of each window."""

    dimensions = 0

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):
        pool = getattr(ops, f"lp_pool{self.dimensions}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AdaptiveMaxPool(Module):
    """The maxima of windows that divide the input evenly."""

    dimensions = 0

    def __init__(self, output_size, return_indices: bool = False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input):
        pool = getattr(ops, f"adaptive_max_pool{self.dimensions}d")
        return pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(Module):
    """The means of windows that divide the input evenly."""

    dimensions = 0

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return getattr(ops, f"adaptive_avg_pool{self.dimensions}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class MaxPool1d(_MaxPool):
    """The maximum of each window of (N, C, L) or (C, L).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, which is never the maximum.
        dilation: the step between a window's elements.
        return_indices: whether to return also where the maxima are, for `MaxUnpool1d`.
        ceil_mode: whether a last window that is not complete counts.

    >>> import corefw as torch
    >>> torch.nn.MaxPool1d(2)(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 2])
    """

    dimensions = 1


class MaxPool2d(_MaxPool):
    """The maximum of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, which is never the maximum.
        dilation: the step between a window's elements.
        return_indices: whether to return also where the maxima are, for `MaxUnpool2d`.
        ceil_mode: whether a last window that is not complete counts.

    >>> import corefw as torch
    >>> torch.nn.MaxPool2d(2)(torch.zeros(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class MaxPool3d(_MaxPool):
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, which is never the maximum.
        dilation: the step between a window's elements.
        return_indices: whether to return also where the maxima are, for `MaxUnpool3d`.
        ceil_mode: whether a last window that is not complete counts.

    >>> import corefw as torch
    >>> torch.nn.MaxPool3d(2)(torch.zeros(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    dimensions = 3


class MaxUnpool1d(_MaxUnpool):
    """The maxima that `MaxPool1d` found put back where they were, zeros elsewhere.

    Args:
        kernel_size, stride, padding: of the pooling.
    """

    dimensions = 1


class MaxUnpool2d(_MaxUnpool):
    """The maxima that `MaxPool2d` found put back where they were, zeros elsewhere.

    Args:
        kernel_size, stride, padding: of the pooling.
    """

    dimensions = 2


class MaxUnpool3d(_MaxUnpool):
    """The maxima that `MaxPool3d` found put back where they were, zeros elsewhere.

    Args:
        kernel_size, stride, padding: of the pooling.
    """

    dimensions = 3


class AvgPool1d(_AvgPool):
    """The mean of each window of (N, C, L) or (C, L).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, as zeros.
        ceil_mode: whether a last window that is not complete counts.
        count_include_pad: whether the zeros count as elements.

    >>> import corefw as torch
    >>> torch.nn.AvgPool1d(2)(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 2])
    """

    dimensions = 1

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        stride = kernel_size if stride is None else stride
        super().__init__(
            per_dimension(kernel_size, 1),
            per_dimension(stride, 1),
            per_dimension(padding, 1),
            ceil_mode,
            count_include_pad,
        )

    def forward(self, input):
        return ops.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, as zeros.
        ceil_mode: whether a last window that is not complete counts.
        count_include_pad: whether the zeros count as elements.
        divisor_override: what to divide by instead of the number of elements.

    >>> import corefw as torch
    >>> torch.nn.AvgPool2d(2)(torch.zeros(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, as zeros.
        ceil_mode: whether a last window that is not complete counts.
        count_include_pad: whether the zeros count as elements.
        divisor_override: what to divide by instead of the number of elements.

    >>> import corefw as torch
    >>> torch.nn.AvgPool3d(2)(torch.zeros(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    dimensions = 3


class LPPool1d(_LPPool):
    """The p-norm ``sum(x ** p) ** (1 / p)`` of each window of (N, C, L) or (C, L).

    Args:
        norm_type: p.
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        ceil_mode: whether a last window that is not complete counts.
    """

    dimensions = 1


class LPPool2d(_LPPool):
    """The p-norm ``sum(x ** p) ** (1 / p)`` of each window of (N, C, H, W) or (C, H, W).

    Args:
        norm_type: p.
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        ceil_mode: whether a last window that is not complete counts.
    """

    dimensions = 2


class LPPool3d(_LPPool):
    """The p-norm ``sum(x ** p) ** (1 / p)`` of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        norm_type: p.
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        ceil_mode: whether a last window that is not complete counts.
    """

    dimensions = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of windows that divide (N, C, L) or (C, L) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.
        return_indices: whether to return also where the maxima are.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.zeros(1, 3, 5)).shape
    torch.Size([1, 3, 2])
    """

    dimensions = 1


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of windows that divide (N, C, L) or (C, L) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.zeros(1, 3, 5)).shape
    torch.Size([1, 3, 2])
    """

    dimensions = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of windows that divide (N, C, H, W) or (C, H, W) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.
        return_indices: whether to return also where the maxima are.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveMaxPool2d(2)(torch.zeros(1, 3, 5, 5)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of windows that divide (N, C, H, W) or (C, H, W) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveAvgPool2d(2)(torch.zeros(1, 3, 5, 5)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of windows that divide (N, C, D, H, W) or (C, D, H, W) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.
        return_indices: whether to return also where the maxima are.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveMaxPool3d(2)(torch.zeros(1, 3, 5, 5, 5)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    dimensions = 3


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of windows that divide (N, C, D, H, W) or (C, D, H, W) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveAvgPool3d(2)(torch.zeros(1, 3, 5, 5, 5)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    dimensions = 3
