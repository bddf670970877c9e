"""Pooling layers: each is its function with its options kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.nn.modules.spatial import Spatial
from corefw.tensor import Tensor
from corefw.windows import per_dimension


class _Pool(Spatial):
    """What all layers share whose windows slide: the windows."""

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None, padding: int | Sequence[int]
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def _pooled(self, name: str, input, *options):
        """What the function `name` for this number of dimensions gives."""
        pool = getattr(ops, f"{name}{self.dimensions}d")
        return pool(input, self.kernel_size, self.stride, self.padding, *options)


class _MaxPool(_Pool):
    """The maximum of each window."""

    _docs = """The maximum of each window of (N, C, {axes}) or (C, {axes}).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, which is never the maximum.
        dilation: the step between a window's elements.
        return_indices: whether to return also where the maxima are, for `MaxUnpool{n}d`.
        ceil_mode: whether a last window that is not complete counts.

    >>> import corefw as torch
    >>> torch.nn.MaxPool{n}d(2)(torch.zeros(1, 3, {4})).shape
    torch.Size([1, 3, {2}])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._pooled("max_pool", input, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(_Pool):
    """Maxima put back where they were."""

    _docs = """The maxima that `MaxPool{n}d` found put back where they were, zeros elsewhere.

    Args:
        kernel_size, stride, padding: of the pooling.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        n = self.dimensions
        super().__init__(
            per_dimension(kernel_size, n),
            per_dimension(kernel_size if stride is None else stride, n),
            per_dimension(padding, n),
        )

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = getattr(ops, f"max_unpool{self.dimensions}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(_Pool):
    """The mean of each window."""

    _docs = """The mean of each window of (N, C, {axes}) or (C, {axes}).

    Args:
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how much lies around the input, as zeros.
        ceil_mode: whether a last window that is not complete counts.
        count_include_pad: whether the zeros count as elements.
        divisor_override: what to divide by instead of the number of elements.

    >>> import corefw as torch
    >>> torch.nn.AvgPool{n}d(2)(torch.zeros(1, 3, {4})).shape
    torch.Size([1, 3, {2}])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        options = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return self._pooled("avg_pool", input, *options)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _FractionalMaxPool(Spatial):
    """The maximum of each window, at drawn distances."""

    _docs = """The maximum of each window of (N, C, {axes}) or (C, {axes}), of which so many lie at drawn distances that
    they reach from end to end (Graham, "Fractional max-pooling", 2014).

    Args:
        kernel_size: the windows' size.
        output_size: how many windows there are in each dimension.
        output_ratio: the same as a part of the input's sizes, between 0 and 1.
        return_indices: whether to return also where the maxima are, for `MaxUnpool{n}d`.

    >>> import corefw as torch
    >>> torch.nn.FractionalMaxPool{n}d(2, output_size=3)(torch.zeros(1, 3, {5})).shape
    torch.Size([1, 3, {3}])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        n, name = self.dimensions, type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio, and not both")
        self.kernel_size, self.return_indices = per_dimension(kernel_size, n), return_indices
        self.output_size = None if output_size is None else per_dimension(output_size, n)
        self.output_ratio = None if output_ratio is None else per_dimension(output_ratio, n)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(ops, f"fractional_max_pool{self.dimensions}d")
        options = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return pool(input, *options, _random_samples=self._random_samples)


class _LPPool(Spatial):
    """The p-norm of each window."""

    _docs = """The p-norm ``sum(x ** p) ** (1 / p)`` of each window of (N, C, {axes}) or (C, {axes}).

    Args:
        norm_type: p.
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        ceil_mode: whether a last window that is not complete counts.
    """

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(ops, f"lp_pool{self.dimensions}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AdaptiveMaxPool(Spatial):
    """The maxima of windows that divide the input evenly."""

    _docs = """The maxima of windows that divide (N, C, {axes}) or (C, {axes}) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.
        return_indices: whether to return also where the maxima are.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveMaxPool{n}d(2)(torch.zeros(1, 3, {5})).shape
    torch.Size([1, 3, {2}])
    """

    def __init__(self, output_size, return_indices: bool = False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(ops, f"adaptive_max_pool{self.dimensions}d")
        return pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(Spatial):
    """The means of windows that divide the input evenly."""

    _docs = """The means of windows that divide (N, C, {axes}) or (C, {axes}) evenly.

    Args:
        output_size: the result's spatial sizes; None keeps the input's.

    >>> import corefw as torch
    >>> torch.nn.AdaptiveAvgPool{n}d(2)(torch.zeros(1, 3, {5})).shape
    torch.Size([1, 3, {2}])
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(ops, f"adaptive_avg_pool{self.dimensions}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class MaxPool1d(_MaxPool, dimensions=1): ...


class MaxPool2d(_MaxPool, dimensions=2): ...


class MaxPool3d(_MaxPool, dimensions=3): ...


class MaxUnpool1d(_MaxUnpool, dimensions=1): ...


class MaxUnpool2d(_MaxUnpool, dimensions=2): ...


class MaxUnpool3d(_MaxUnpool, dimensions=3): ...


class AvgPool1d(_AvgPool, dimensions=1):
    """The mean of each window of (N, C, L) or (C, L).

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad: as for `AvgPool2d`.

    >>> import corefw as torch
    >>> torch.nn.AvgPool1d(2)(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 2])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        stride = kernel_size if stride is None else stride
        super().__init__(
            per_dimension(kernel_size, 1),
            per_dimension(stride, 1),
            per_dimension(padding, 1),
            ceil_mode,
            count_include_pad,
        )

    def forward(self, input: Tensor) -> Tensor:
        return ops.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(_AvgPool, dimensions=2): ...


class AvgPool3d(_AvgPool, dimensions=3): ...


class LPPool1d(_LPPool, dimensions=1): ...


class LPPool2d(_LPPool, dimensions=2): ...


class LPPool3d(_LPPool, dimensions=3): ...


class AdaptiveMaxPool1d(_AdaptiveMaxPool, dimensions=1): ...


class AdaptiveAvgPool1d(_AdaptiveAvgPool, dimensions=1): ...


class AdaptiveMaxPool2d(_AdaptiveMaxPool, dimensions=2): ...


class AdaptiveAvgPool2d(_AdaptiveAvgPool, dimensions=2): ...


class AdaptiveMaxPool3d(_AdaptiveMaxPool, dimensions=3): ...


class AdaptiveAvgPool3d(_AdaptiveAvgPool, dimensions=3): ...


class FractionalMaxPool2d(_FractionalMaxPool, dimensions=2): ...


class FractionalMaxPool3d(_FractionalMaxPool, dimensions=3): ...
