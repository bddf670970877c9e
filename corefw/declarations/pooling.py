"""Pooling: the maximum or the mean of windows that slide over the input, or that divide it evenly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from corefw import dtypes
from corefw.declarations._shared.batching import on_images, to_images
from corefw.declarations._shared.families import in_each_dimension
from corefw.declarations._shared.windowed import batched, per_dimension
from corefw.dispatch.declare import Index, composite, ops, primitive
from corefw.dispatch.rules import index, real_floats, real_numbers, same
from corefw.errors import DtypeError, ShapeError
from corefw.windows import check_extents, window_extent


# -- windows ----------------------------------------------------------------------------------------------------------
def _times(sizes) -> str:
    return "x".join(map(str, sizes))


def _windows(input, kernel_size, stride, padding, dilation, ceil_mode) -> tuple[int, ...]:
    """How many windows each spatial dimension of (N, C, *spatial) has; raises ShapeError for windows that cannot be."""
    n = len(kernel_size)
    if len(input) != n + 2 or 0 in input[1:]:
        raise ShapeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(input)}"
        )
    if any(s <= 0 for s in stride):
        raise ShapeError(f"stride should not be zero, but got {list(stride)}")
    if any(k <= 0 for k in kernel_size):
        raise ShapeError(f"kernel size should be greater than zero, but got {list(kernel_size)}")
    if any(d <= 0 for d in dilation):
        raise ShapeError(f"dilation should be greater than zero, but got {list(dilation)}")
    result, extents = [], window_extent(kernel_size, dilation)
    check_extents("pooling", (), extents, stride, dilation)
    for size, k, s, p, d, extent in zip(input[2:], kernel_size, stride, padding, dilation, extents, strict=True):
        if p < 0:
            raise ShapeError(f"pad must be non-negative, but got pad: {p}")
        if p > extent // 2:
            raise ShapeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
        count = (size + 2 * p - extent + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= size + p:  # the last window must begin inside the input or the left padding
            count -= 1
        result.append(count)
    if any(count < 1 for count in result):
        raise ShapeError(
            f"Given input size: ({_times(input[1:])}). Calculated output size: ({_times((input[1], *result))}). "
            "Output size is too small"
        )
    return tuple(result)


_per_dimension = partial(per_dimension, "{function}: {argument} must either be a single int, or a tuple of {ints}")


_NOT_BATCHED = "{name}(): Expected {unbatched}D or {batched}D (batch mode) tensor, but got"


def _with_dimensions(title: str):
    """PyTorch's names of a kind of pooling: of one dimension too it is that of two."""
    return lambda input_shape: title.format(max(len(input_shape) - 2, 2))


# -- maxima -----------------------------------------------------------------------------------------------------------
def max_pool_shape(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Values and indices: one of each per window."""
    shape = (*input[:2], *_windows(input, kernel_size, stride, padding, dilation, ceil_mode))
    return shape, shape


@primitive(
    dtype=real_numbers.giving(same, index),
    shape=max_pool_shape,
    outputs=("values", "indices"),
    public="",
    grad_name=_with_dimensions("MaxPool{}DWithIndices"),
)
def max_pool(input, kernel_size: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool):
    """The maximum of each window of (N, C, *spatial), and where it is in the flattened spatial dimensions.

    Of equal elements the first is taken; a NaN is larger than all.
    """


max_pool.batching(on_images)
max_pool.gradients(input=lambda grad, indices, input_shape: ops.max_pool_backward(grad, indices, input_shape))


def adaptive_max_pool_shape(input, output_size):
    """Values and indices: one of each per window."""
    shape = adaptive_shape("adaptive_max_pool", input, output_size)
    return shape, shape


@primitive(
    dtype=real_floats.giving(same, index),
    shape=adaptive_max_pool_shape,
    outputs=("values", "indices"),
    public="",
    grad_name=_with_dimensions("AdaptiveMaxPool{}D"),
)
def adaptive_max_pool(input, output_size: tuple):
    """The maximum of each of the windows that divide (N, C, *spatial) evenly, and where it is, as of `max_pool`."""


adaptive_max_pool.batching(on_images)
adaptive_max_pool.gradients(
    input=lambda grad, indices, input_shape: ops.max_pool_backward(grad, indices, input_shape),
)


def max_pool_backward_shape(grad, indices, shape):
    """The input's shape."""
    if tuple(grad) != tuple(indices) or tuple(grad[:2]) != tuple(shape[:2]):
        raise ShapeError(f"max_pool: a gradient of shape {list(grad)} for indices of shape {list(indices)}")
    return tuple(shape)


@composite(dtype=real_numbers, shape=max_pool_backward_shape, public="")
def max_pool_backward(grad, indices: Index, shape: tuple):
    """The gradient of max_pool: what each maximum gets, added where the maximum was."""
    max_pool_backward_shape(grad.shape, indices.shape, shape)
    flat = (*shape[:2], prod(grad.shape[2:]))
    zeros = ops.zeros((*shape[:2], prod(shape[2:])), dtype=grad.dtype, device=grad.device)
    return zeros.scatter_add(2, indices.reshape(flat), grad.reshape(flat)).reshape(shape)


@max_pool_backward.gradient("grad")
def max_pool_backward_vjp(grad, indices):
    n, channels, *sizes = indices.shape
    flat = grad.reshape((n, channels, prod(grad.shape[2:])))
    return flat.gather(2, indices.reshape((n, channels, prod(sizes)))).reshape(indices.shape)


# -- means ------------------------------------------------------------------------------------------------------------
def avg_pool_shape(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """One mean per window."""
    if divisor_override == 0:
        raise ShapeError("divisor must be not zero")
    return (*input[:2], *_windows(input, kernel_size, stride, padding, (1,) * len(kernel_size), ceil_mode))


@primitive(dtype=real_numbers, shape=avg_pool_shape, public="", grad_name=_with_dimensions("AvgPool{}D"))
def avg_pool(
    input, kernel_size: tuple, stride: tuple, padding: tuple, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
):  # fmt: skip
    """The sum of each window of (N, C, *spatial), divided by the number of its elements.

    Args:
        count_include_pad: whether the zeros of the padding count.
        divisor_override: what to divide by instead.
    """


avg_pool.batching(on_images)


@avg_pool.gradient("input")
def avg_pool_vjp(grad, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return ops.avg_pool_backward(
        grad, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool_backward_shape(grad, shape, *options):
    """The input's shape."""
    expected = avg_pool_shape(shape, *options)
    if tuple(grad) != expected:
        raise ShapeError(f"avg_pool: expected a gradient of shape {list(expected)}, got {list(grad)}")
    return tuple(shape)


@primitive(dtype=real_floats, shape=avg_pool_backward_shape, public="")
def avg_pool_backward(
    grad, shape: tuple, kernel_size: tuple, stride: tuple, padding: tuple, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
):  # fmt: skip
    """The gradient of avg_pool: each window's elements get their share."""


avg_pool_backward.batching(to_images)


@avg_pool_backward.gradient("grad")
def avg_pool_backward_vjp(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return ops.avg_pool(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_shape(name: str, input, output_size, first: int = 1):
    """(N, C, *spatial) gives (N, C, *output_size); the sizes from dimension `first` on are not 0."""
    name += f"{len(output_size)}d"
    if len(input) != len(output_size) + 2:
        raise ShapeError(f"{name}: output_size must be {len(input) - 2}, got {len(output_size)} sizes")
    if any(size < 0 for size in output_size):
        listed = ", ".join(map(str, output_size))
        raise ShapeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{listed}}}"
        )
    for dim, size in enumerate(input):
        if dim >= first and size == 0:
            raise ShapeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(input)} with dimension {dim} being empty"
            )
    return (*input[:2], *output_size)


@primitive(
    dtype=real_floats,
    shape=lambda input, output_size: adaptive_shape("adaptive_avg_pool", input, output_size, first=2),
    public="",
    grad_name=_with_dimensions("AdaptiveAvgPool{}D"),
)
def adaptive_avg_pool(input, output_size: tuple):
    """The mean of each of the windows that divide (N, C, *spatial) evenly.

    Window i of n over a dimension of size s goes from ``floor(i s / n)`` to ``ceil((i + 1) s / n)``.
    """


adaptive_avg_pool.batching(on_images)
adaptive_avg_pool.gradients(input=lambda grad, input_shape: ops.adaptive_avg_pool_backward(grad, input_shape))


def adaptive_avg_pool_backward_shape(grad, shape):
    """The input's shape."""
    if adaptive_shape("adaptive_avg_pool", shape, grad[2:], first=2) != tuple(grad):
        raise ShapeError(f"adaptive_avg_pool: a gradient of shape {list(grad)} for an input of shape {list(shape)}")
    return tuple(shape)


@primitive(dtype=real_floats, shape=adaptive_avg_pool_backward_shape, public="")
def adaptive_avg_pool_backward(output_grad, shape: tuple):
    """The gradient of adaptive_avg_pool: each window's elements get their share."""


adaptive_avg_pool_backward.batching(to_images)
adaptive_avg_pool_backward.gradients(
    output_grad=lambda grad, output_grad_shape: ops.adaptive_avg_pool(grad, tuple(output_grad_shape[2:])),
)


# -- functions --------------------------------------------------------------------------------------------------------
def _step(name: str, stride, kernel_size: tuple) -> tuple[int, ...]:
    """The step between windows: their size where none is given, be it None or an empty sequence."""
    if stride is None or (isinstance(stride, list | tuple) and not stride):
        return kernel_size
    return _per_dimension(name, "stride", stride, len(kernel_size))


def _pooled_max(name: str, n: int, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    kernel_size = _per_dimension(name, "kernel_size", kernel_size, n)
    stride = _step(name, stride, kernel_size)
    padding = _per_dimension(name, "padding", padding, n)
    dilation = _per_dimension(name, "dilation", dilation, n)
    values, indices = ops.max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)
    if unbatched:
        values, indices = values.squeeze(0), indices.squeeze(0)
    return (values, indices) if return_indices else values


def _pooled_mean(
    name: str, n: int, input, kernel_size, stride, padding, ceil_mode, count_include_pad=True, divisor_override=None
):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    kernel_size = _per_dimension(name, "kernel_size", kernel_size, n)
    stride = _step(name, stride, kernel_size)
    padding = _per_dimension(name, "padding", padding, n)
    result = ops.avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return result.squeeze(0) if unbatched else result


def _output_size(name: str, output_size, input, n: int) -> tuple[int, ...]:
    """`output_size` with None replaced by the input's size."""
    sizes = input.shape[2:]
    given = (output_size,) * n if isinstance(output_size, int) or output_size is None else tuple(output_size)
    if len(given) != n:
        raise ShapeError(f"{name}: output_size must be {n}")
    return tuple(size if wanted is None else wanted for wanted, size in zip(given, sizes))


def _adapted_max(name: str, n: int, input, output_size, return_indices):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    values, indices = ops.adaptive_max_pool(input, _output_size(name, output_size, input, n))
    if unbatched:
        values, indices = values.squeeze(0), indices.squeeze(0)
    return (values, indices) if return_indices else values


def _adapted_mean(name: str, n: int, input, output_size):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    result = ops.adaptive_avg_pool(input, _output_size(name, output_size, input, n))
    return result.squeeze(0) if unbatched else result


def _unpooled(name: str, n: int, input, indices, kernel_size, stride, padding, output_size):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    if indices.shape != (input.shape[1:] if unbatched else input.shape):
        raise ShapeError(
            f"{name}: Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
            f"indices tensor with shape: {list(indices.shape)}"
        )
    if indices.dispatch_key.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"{name}: elements in indices should be type int64 but got: {indices.dispatch_key.dtype.title}"
        )
    kernel_size = _per_dimension(name, "kernel_size", kernel_size, n)
    stride = _step(name, stride, kernel_size)
    padding = _per_dimension(name, "padding", padding, n)
    steps = zip(input.shape[2:], kernel_size, stride, padding, strict=True)
    default = tuple((size - 1) * s - 2 * p + k for size, k, s, p in steps)
    sizes = default if output_size is None else tuple(output_size)[-n:]
    if output_size is not None and any(not d - s < size < d + s for size, d, s in zip(sizes, default, stride)):
        raise ValueError(
            f"invalid output_size {list(sizes)}: each size must differ from {list(default)} by less than {list(stride)}"
        )
    flat = (*input.shape[:2], prod(input.shape[2:]))
    zeros = ops.zeros((*input.shape[:2], prod(sizes)), dtype=input.dtype, device=input.device)
    result = zeros.scatter(2, indices.reshape(flat), input.reshape(flat)).reshape((*input.shape[:2], *sizes))
    return result.squeeze(0) if unbatched else result


def _pooled_norm(name: str, n: int, input, norm_type, kernel_size, stride, ceil_mode):
    kernel_size = _per_dimension(name, "kernel_size", kernel_size, n)
    mean = _pooled_mean(name, n, input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu() * prod(kernel_size)).pow(1.0 / norm_type)


@in_each_dimension(public="corefw nn.functional")
def _max_pool(name: str, n: int):
    def function(
        input, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        """The maximum of each window.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            kernel_size: the window's size.
            stride: the step between windows, by default their size.
            padding: how many places lie around the input, which are never the maximum.
            dilation: the step between a window's elements.
            ceil_mode: whether a last window that is not complete counts.
            return_indices: whether to return also where the maxima are in the flattened spatial dimensions.

        >>> import corefw as torch
        >>> torch.nn.functional.max_pool{n}d(torch.ones(1, 3, {4}), 2).shape
        torch.Size([1, 3, {2}])
        """
        return _pooled_max(name, n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    return function


@composite(public="corefw nn.functional")
def avg_pool1d(
    input,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
):
    """The mean of each window.

    Args:
        input: (N, C, L) or (C, L).
        kernel_size: the window's size.
        stride: the step between windows, by default their size.
        padding: how many zeros lie around the input.
        ceil_mode: whether a last window that is not complete counts.
        count_include_pad: whether the zeros count as elements.

    >>> import corefw as torch
    >>> torch.nn.functional.avg_pool1d(torch.ones(1, 3, 4), 2).shape
    torch.Size([1, 3, 2])
    """
    return _pooled_mean("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@in_each_dimension(2, 3, public="nn.functional")
def _avg_pool(name: str, n: int):
    def function(
        input, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):  # fmt: skip
        """The mean of each window.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            kernel_size: the window's size.
            stride: the step between windows, by default their size.
            padding: how many zeros lie around the input.
            ceil_mode: whether a last window that is not complete counts.
            count_include_pad: whether the zeros count as elements.
            divisor_override: what to divide by instead of the number of elements.

        >>> import corefw as torch
        >>> torch.nn.functional.avg_pool{n}d(torch.ones(1, 3, {4}), 2).shape
        torch.Size([1, 3, {2}])
        """
        return _pooled_mean(
            name, n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    return function


@in_each_dimension(1, public="corefw nn.functional")
@in_each_dimension(2, 3, public="nn.functional")
def _adaptive_max_pool(name: str, n: int):
    def function(input, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
        """The maxima of windows that divide the input evenly into a result of `output_size`.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            output_size: the result's spatial sizes; None keeps the input's.
            return_indices: whether to return also where the maxima are in the flattened spatial dimensions.

        >>> import corefw as torch
        >>> torch.nn.functional.adaptive_max_pool{n}d(torch.ones(1, 2, {4}), 3).shape
        torch.Size([1, 2, {3}])
        """
        return _adapted_max(name, n, input, output_size, return_indices)

    return function


@in_each_dimension(1, public="corefw nn.functional")
@in_each_dimension(2, 3, public="nn.functional")
def _adaptive_avg_pool(name: str, n: int):
    def function(input, output_size: int | Sequence[int | None]):
        """The means of windows that divide the input evenly into a result of `output_size`.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            output_size: the result's spatial sizes; None keeps the input's.

        >>> import corefw as torch
        >>> torch.nn.functional.adaptive_avg_pool{n}d(torch.ones(1, 2, {4}), 3).shape
        torch.Size([1, 2, {3}])
        """
        return _adapted_mean(name, n, input, output_size)

    return function


@in_each_dimension(public="nn.functional")
def _max_unpool(name: str, n: int):
    def function(
        input,
        indices: Index,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ):
        """The maxima that `max_pool{n}d` found put back where they were, zeros elsewhere.

        Args:
            input: the maxima.
            indices: where they were, in the flattened spatial dimensions.
            kernel_size, stride, padding: of the pooling.
            output_size: the pooled tensor's shape, where the others leave it open.

        >>> import corefw as torch
        >>> maxima, indices = torch.nn.functional.max_pool{n}d(torch.ones(1, 1, {4}), 2, return_indices=True)
        >>> torch.nn.functional.max_unpool{n}d(maxima, indices, 2).shape
        torch.Size([1, 1, {4}])
        """
        return _unpooled(name, n, input, indices, kernel_size, stride, padding, output_size)

    return function


@in_each_dimension(public="nn.functional")
def _lp_pool(name: str, n: int):
    def function(
        input,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ):
        """The p-norm of each window, ``sum(x ** p) ** (1 / p)`` with p = `norm_type`.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            kernel_size, stride, ceil_mode: as for `avg_pool{n}d`.

        >>> import corefw as torch
        >>> torch.nn.functional.lp_pool{n}d(torch.ones(1, 3, {4}), 2, 2).shape
        torch.Size([1, 3, {2}])
        """
        return _pooled_norm(name, n, input, norm_type, kernel_size, stride, ceil_mode)

    return function
