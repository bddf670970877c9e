"""Convolutions of any number of dimensions, their transposes, and the windows they see as matrix columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from corefw.declarations._shared.batching import folded, full, on_images, unfolded
from corefw.declarations._shared.families import in_each_dimension
from corefw.declarations._shared.windowed import batched, per_dimension
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import numbers, same
from corefw.errors import ShapeError
from corefw.windows import check_extents, window_counts, window_extent

# -- arguments --------------------------------------------------------------------------------------------------------
_per_dimension = partial(
    per_dimension,
    "expected {argument} to be a single integer value or a list of {n} values to match the convolution dimensions, but "
    "got {argument}={value}",
    "convolution",
)


def _named(name: str, values, n: int) -> str:
    """PyTorch's listing of sizes per dimension: "kernel_height: 3 kernel_width: 3"."""
    return " ".join(
        f"{name}_{dimension}: {v}" for dimension, v in zip(("depth", "height", "width")[-n:], values[-3:], strict=False)
    )


def _times(sizes) -> str:
    return " x ".join(map(str, sizes))


def _check_steps(kernel, stride, padding, dilation) -> None:
    if any(p < 0 for p in padding):
        raise ShapeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise ShapeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise ShapeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if any(k <= 0 for k in kernel):
        raise ShapeError(f"kernel size should be greater than zero, but got {_named('kernel', kernel, len(kernel))}")


# -- the operation ----------------------------------------------------------------------------------------------------
def convolution_shape(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """(N, C, *spatial) with a weight of shape (O, C / groups, *kernel) gives (N, O, *spatial')."""
    n = len(weight) - 2
    if n < 1 or len(input) != n + 2:
        raise ShapeError(
            f"Expected {n + 2}D input to a convolution with a weight of size {list(weight)}, but got input of size: "
            f"{list(input)}"
        )
    kernel = weight[2:]
    _check_steps(kernel, stride, padding, dilation)
    if groups <= 0:
        raise ShapeError("non-positive groups is not supported")
    if weight[0] < groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(weight)} instead"
        )
    if weight[0] % groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(weight)}] instead"
        )
    given = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    expected = weight[0] if transposed else weight[1] * groups
    channels = weight[1] * groups if transposed else weight[0]
    if input[1] != expected:
        raise ShapeError(
            f"Given {given}, weight of size {list(weight)}, expected input{list(input)} to have {expected} channels, "
            f"but got {input[1]} channels instead"
        )
    if bias is not None and tuple(bias) != (channels,):
        raise ShapeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(weight)}, expected bias to be "
            f"1-dimensional with {channels} elements, but got bias of size {list(bias)} instead"
        )
    sizes, extent = input[2:], window_extent(kernel, dilation)
    padded = tuple(size + 2 * p for size, p in zip(sizes, padding, strict=True))
    check_extents("convolution", () if transposed else padded, extent, stride, dilation)
    if 0 in sizes:
        raise ShapeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input)}")
    if transposed:
        if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation, strict=True)):
            raise ShapeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"{_named('output_padding', output_padding, n)} {_named('stride', stride, n)} "
                f"{_named('dilation', dilation, n)}"
            )
        if any(o < 0 for o in output_padding):
            raise ShapeError(f"negative output_padding is not supported, but got {list(output_padding)}")
        steps = zip(sizes, extent, stride, padding, output_padding, strict=True)
        result = tuple((size - 1) * s - 2 * p + e + o for size, e, s, p, o in steps)
        if any(size <= 0 for size in result):
            raise ShapeError(
                f"Given input size per channel: ({_times(sizes)}). Calculated output size per channel: "
                f"({_times(result)}). Output size is too small"
            )
        padded = tuple(size + 2 * p for size, p in zip(result, padding, strict=True))
        check_extents("transposed convolution", padded, extent)
        return (input[0], channels, *result)
    if any(e > size for e, size in zip(extent, padded)):
        raise ShapeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(extent)}). Kernel "
            "size can't be greater than actual input size"
        )
    return (input[0], channels, *((size - e) // s + 1 for size, e, s in zip(padded, extent, stride)))


@primitive(dtype=numbers, shape=convolution_shape, public="")
def convolution(
    input, weight, bias=None, stride: tuple = (1,), padding: tuple = (0,), dilation: tuple = (1,),
    transposed: bool = False, output_padding: tuple = (0,), groups: int = 1,
):  # fmt: skip
    """The convolution (cross-correlation) of a batch with a kernel, over any number of dimensions.

    ``out[n, o, x] = bias[o] + sum(weight[o, c, k] * input[n, c, x * stride + k * dilation - padding])`` over the
    channels c of o's group and the positions k in the kernel; outside the input there are zeros. The transposed one is
    the adjoint of the linear map input -> out, which is also its gradient.

    Args:
        input: (N, C, *spatial).
        weight: (O, C / groups, *kernel), of a transposed one (C, O / groups, *kernel).
        bias: (O,) or None.
        stride, padding, dilation: one int per spatial dimension.
        output_padding: how many positions are added at the end of a transposed one's result.
    """


@convolution.batching
def convolution_batching(
    call, examples, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    window = (stride, padding, dilation, transposed, output_padding)
    if weight.shape[0] == 1 and (bias is None or bias.shape[0] == 1):
        bias = None if bias is None else bias[0]
        return unfolded(call(folded(input), weight[0], bias, *window, groups), input.shape[0])
    weight, bias = full(weight, examples), None if bias is None else full(bias, examples).reshape(-1)
    result = call(_beside(full(input, examples)), folded(weight), bias, *window, examples * groups)
    return result.reshape(result.shape[0], examples, -1, *result.shape[2:]).transpose(0, 1)


def _beside(images):
    """The channels of all examples beside each other: (N, examples * C, *spatial)."""
    return images.transpose(0, 1).reshape(images.shape[1], -1, *images.shape[3:])


def _shortfall(wanted, input, weight, stride, padding, dilation) -> tuple[int, ...]:
    """The output_padding with which a transposed convolution of `input`'s sizes has the sizes `wanted`."""
    extent = window_extent(weight[2:], dilation)
    steps = zip(wanted[2:], input[2:], extent, stride, padding, strict=True)
    return tuple(w - ((size - 1) * s - 2 * p + e) for w, size, e, s, p in steps)


def _cut(tensor, sizes):
    """The first elements of every spatial dimension of `tensor`, so many as `sizes` say."""
    for dim, size in enumerate(sizes, 2):
        if tensor.array.shape[dim] != size:
            tensor = tensor.narrow(dim, 0, size)
    return tensor


@convolution.gradient("input")
def convolution_vjp_input(grad, input_shape, weight, stride, padding, dilation, transposed, groups):
    left = (
        (0,) * len(stride)
        if transposed
        else _shortfall(input_shape, grad.shape, weight.shape, stride, padding, dilation)
    )
    gradient = ops.convolution(grad, weight.conj(), None, stride, padding, dilation, not transposed, left, groups)
    return _cut(gradient, input_shape[2:])


@convolution.gradient("weight")
def convolution_vjp_weight(grad, input, weight_shape, stride, padding, dilation, transposed, groups):
    image, result = (grad, input.conj()) if transposed else (input.conj(), grad)
    return ops.convolution_weight(image, result, weight_shape[2:], stride, padding, dilation, groups)


@convolution.gradient("bias")
def convolution_vjp_bias(grad):
    return grad.sum([0, *range(2, grad.ndim)])


def convolution_weight_shape(input, output_grad, kernel_size, stride, padding, dilation, groups):
    """(N, C, *spatial) and (N, O, *spatial') give (O, C / groups, *kernel)."""
    if len(output_grad) != len(input) or len(input) != len(kernel_size) + 2 or input[0] != output_grad[0]:
        raise ShapeError(
            f"convolution_weight: input of size {list(input)} does not fit a gradient of size {list(output_grad)}"
        )
    _check_steps(kernel_size, stride, padding, dilation)
    if input[1] % groups or output_grad[1] % groups:
        raise ShapeError(
            f"convolution_weight: {input[1]} and {output_grad[1]} channels are not divisible by {groups} groups"
        )
    left = _shortfall(input, output_grad, output_grad[:2] + tuple(kernel_size), stride, padding, dilation)
    if any(not 0 <= o < max(s, d) for o, s, d in zip(left, stride, dilation, strict=True)):
        raise ShapeError(
            f"convolution_weight: a gradient of size {list(output_grad)} does not have the windows of an input of size "
            f"{list(input)}"
        )
    padded = tuple(size + 2 * p for size, p in zip(input[2:], padding, strict=True))
    check_extents("convolution_weight", padded, window_extent(kernel_size, dilation), stride, dilation)
    return (output_grad[1], input[1] // groups, *kernel_size)


@primitive(dtype=numbers, shape=convolution_weight_shape, public="")
def convolution_weight(
    input, output_grad, kernel_size: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
):
    """The gradient of a convolution with respect to its weight, bilinear in the input and the gradient `grad` of the
    result: ``sum(output_grad[n, o, x] * input[n, c, x * stride + k * dilation - padding])`` over n and x."""


@convolution_weight.batching
def convolution_weight_batching(call, examples, input, output_grad, *window_and_groups):
    *window, groups = window_and_groups
    beside = (_beside(full(one, examples)) for one in (input, output_grad))
    result = call(*beside, *window, examples * groups)
    return result.reshape(examples, -1, *result.shape[1:])


@convolution_weight.gradient("input")
def convolution_weight_vjp_input(grad, input_shape, output_grad, stride, padding, dilation, groups):
    left = _shortfall(input_shape, output_grad.shape, grad.shape, stride, padding, dilation)
    return ops.convolution(output_grad.conj(), grad, None, stride, padding, dilation, True, left, groups)


@convolution_weight.gradient("output_grad")
def convolution_weight_vjp_output_grad(grad, input, output_grad_shape, stride, padding, dilation, groups):
    left = (0,) * len(stride)
    gradient = ops.convolution(input.conj(), grad, None, stride, padding, dilation, False, left, groups)
    return _cut(gradient, output_grad_shape[2:])


# -- functions --------------------------------------------------------------------------------------------------------
_NOT_BATCHED = "Expected {unbatched}D (unbatched) or {batched}D (batched) input to {name}, but got input of size"


def _same_padding(input, weight, dilation):
    """(input, padding) for which a convolution without stride keeps the sizes; an odd total is padded at the end."""
    total = [e - 1 for e in window_extent(weight.shape[2:], dilation)]
    if any(t % 2 for t in total):
        input = ops.pad(input, [amount for t in reversed(total) for amount in (0, t % 2)])
    return input, tuple(t // 2 for t in total)


def _convolve(name: str, n: int, input, weight, bias, stride, padding, dilation, groups):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    stride = _per_dimension("stride", stride, n)
    dilation = _per_dimension("dilation", dilation, n)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ShapeError("padding='same' is not supported for strided convolutions")
        input, padding = _same_padding(input, weight, dilation)
    elif padding == "valid":
        padding = (0,) * n
    elif isinstance(padding, str):
        raise ShapeError(f"Invalid padding string: '{padding}'")
    else:
        padding = _per_dimension("padding", padding, n)
    result = ops.convolution(input, weight, bias, stride, padding, dilation, False, (0,) * n, groups)
    return result.squeeze(0) if unbatched else result


def _convolve_transposed(name: str, n: int, input, weight, bias, stride, padding, output_padding, groups, dilation):
    input, unbatched = batched(name, input, n, _NOT_BATCHED)
    stride, padding = _per_dimension("stride", stride, n), _per_dimension("padding", padding, n)
    dilation = _per_dimension("dilation", dilation, n)
    output_padding = _per_dimension("output_padding", output_padding, n)
    result = ops.convolution(input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return result.squeeze(0) if unbatched else result


@in_each_dimension(public="corefw nn.functional")
def _conv(name: str, n: int):
    def function(
        input, weight, bias=None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1, groups: int = 1,
    ):  # fmt: skip
        """The {n}-d convolution (cross-correlation) of `input` with the kernels `weight`.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            weight: (O, C / groups, *kernel).
            bias: (O,), added to the result.
            stride: the step between windows.
            padding: how many zeros lie around the input, "valid" for none, "same" for as many as keep the sizes.
            dilation: the step between the kernel's elements.
            groups: into how many parts the channels are divided, each of which sees its own part only.

        >>> import corefw as torch
        >>> torch.nn.functional.conv{n}d(torch.ones(1, 2, {4}), torch.ones(5, 2, {3})).shape
        torch.Size([1, 5, {2}])
        """
        return _convolve(name, n, input, weight, bias, stride, padding, dilation, groups)

    return function


@in_each_dimension(public="corefw nn.functional")
def _conv_transpose(name: str, n: int):
    def function(
        input, weight, bias=None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1,
    ):  # fmt: skip
        """The transposed {n}-d convolution: the adjoint of the map that `conv{n}d` with the same options is.

        Args:
            input: (N, C, {axes}) or (C, {axes}).
            weight: (C, O / groups, *kernel).
            bias: (O,), added to the result.
            stride: the step between the windows in the result.
            padding: how many positions at each border of the result are left out.
            output_padding: how many positions are added at the end of each dimension.
            groups: into how many parts the channels are divided.
            dilation: the step between the kernel's elements.

        >>> import corefw as torch
        >>> torch.nn.functional.conv_transpose{n}d(torch.ones(1, 2, {4}), torch.ones(2, 5, {3})).shape
        torch.Size([1, 5, {6}])
        """
        return _convolve_transposed(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation)

    return function


# -- windows as columns -----------------------------------------------------------------------------------------------
def _check_windows(op, sizes, kernel_size, dilation, padding, stride) -> None:
    for name, values in (("kernel size", kernel_size), ("stride", stride), ("dilation", dilation)):
        if any(v <= 0 for v in values):
            raise ShapeError(
                f"{name} should be greater than zero, but got {_named(name.replace(' size', ''), values, 2)}"
            )
    if any(p < 0 for p in padding):
        raise ShapeError(f"padding should be non-negative, but got {_named('padding', padding, 2)}")
    padded = tuple(size + 2 * p for size, p in zip(sizes, padding, strict=True))
    check_extents(op, padded, window_extent(kernel_size, dilation), stride, dilation)


def im2col_shape(input, kernel_size, dilation, padding, stride):
    """(N, C, H, W) gives (N, C kh kw, windows)."""
    if len(input) != 4 or 0 in input[1:]:
        raise ShapeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(input)}"
        )
    _check_windows("unfold", input[2:], kernel_size, dilation, padding, stride)
    windows = window_counts(input[2:], kernel_size, stride, padding, dilation)
    if any(w < 1 for w in windows):
        raise ShapeError(
            f"Given input with spatial size {tuple(input[2:])}, kernel_size={kernel_size}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {windows}, but its components "
            "must be at least one."
        )
    return (input[0], input[1] * prod(kernel_size), prod(windows))


@primitive(dtype=same, shape=im2col_shape, public="")
def im2col(input, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple):
    """Every window of an image as a column: (N, C, H, W) gives (N, C kh kw, windows)."""


im2col.batching(on_images)


@im2col.gradient("input")
def im2col_vjp(grad, input_shape, kernel_size, dilation, padding, stride):
    return ops.col2im(grad, tuple(input_shape[2:]), kernel_size, dilation, padding, stride)


def col2im_shape(input, output_size, kernel_size, dilation, padding, stride):
    """(N, C kh kw, windows) gives (N, C, H, W)."""
    if len(input) != 3 or 0 in input[1:]:
        raise ShapeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input)}"
        )
    _check_windows("fold", output_size, kernel_size, dilation, padding, stride)
    if input[1] % prod(kernel_size):
        raise ShapeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={input[1]} and kernel_size={kernel_size}."
        )
    windows = window_counts(output_size, kernel_size, stride, padding, dilation)
    if any(w < 1 for w in windows) or prod(windows) != input[2]:
        raise ShapeError(
            f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{' * '.join(map(str, windows))} = {prod(windows)}, but got input.size(2)={input[2]}."
        )
    return (input[0], input[1] // prod(kernel_size), *output_size)


@primitive(dtype=numbers, shape=col2im_shape, public="")
def col2im(input, output_size: tuple, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple):
    """Columns added where their windows lie in an image: (N, C kh kw, windows) gives (N, C, H, W)."""


col2im.batching(on_images)
col2im.gradients(
    input=lambda grad, kernel_size, dilation, padding, stride: ops.im2col(grad, kernel_size, dilation, padding, stride),
)


def _pair(name: str, value) -> tuple[int, int]:
    value = (value, value) if isinstance(value, int) else tuple(value)
    if len(value) == 1:
        value *= 2
    if len(value) != 2:
        raise ShapeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value


@composite(public="nn.functional.unfold", name="functional_unfold")
def unfold(
    input,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
):
    """Every window that slides over an image, as a column.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size, dilation, padding, stride: of the windows, as of a convolution.

    Returns:
        (N, C * kernel positions, windows), windows in row-major order.

    >>> import corefw as torch
    >>> torch.nn.functional.unfold(torch.arange(4.0).reshape(1, 1, 2, 2), (1, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """
    options = [
        _pair(name, value)
        for name, value in (
            ("kernel_size", kernel_size),
            ("dilation", dilation),
            ("padding", padding),
            ("stride", stride),
        )
    ]
    if input.ndim == 3:
        return ops.im2col(input.unsqueeze(0), *options).squeeze(0)
    return ops.im2col(input, *options)


@composite(public="nn.functional")
def fold(
    input,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
):
    """Columns added where their windows lie in an image: the adjoint of `unfold`.

    Args:
        input: (N, C * kernel positions, windows) or without N.
        output_size: the image's height and width.
        kernel_size, dilation, padding, stride: of the windows, as of a convolution.

    Returns:
        (N, C, *output_size).

    >>> import corefw as torch
    >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    given = (
        ("output_size", output_size),
        ("kernel_size", kernel_size),
        ("dilation", dilation),
        ("padding", padding),
        ("stride", stride),
    )
    options = [_pair(name, value) for name, value in given]
    if input.ndim == 2:
        return ops.col2im(input.unsqueeze(0), *options).squeeze(0)
    return ops.col2im(input, *options)
