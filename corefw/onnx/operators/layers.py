"""Products, convolutions, pooling, normalisations and resampling as ONNX."""

from __future__ import annotations

from math import prod

import numpy as np

from corefw import dtypes
from corefw.onnx.graph import Graph
from corefw.onnx.table import written_as
from corefw.windows import window_extent


# -- products ---------------------------------------------------------------------------------------------------------
@written_as("matmul", "mm", "bmm")
def matmul(g: Graph, input, other):
    return g.node("MatMul", *g.as_result(input, other))


@written_as("linear")
def linear(g: Graph, input, weight, bias=None):
    given = g.as_result(input, weight, *(() if bias is None else (bias,)))
    if len(input.shape) == 2 and len(weight.shape) == 2 and g.dtype.category >= dtypes.FLOATING:
        return g.node("Gemm", *given, transB=1)
    order = list(range(len(weight.shape)))[::-1]
    product = g.node("MatMul", given[0], g.transpose(given[1], order))
    return product if bias is None else g.node("Add", product, given[2])


@written_as("addmm", "baddbmm")
def addmm(g: Graph, input, first, second, beta=1, alpha=1):
    x, a, b = g.as_result(input, first, second)
    if g.line.op.name == "addmm" and g.dtype.category >= dtypes.FLOATING and beta:
        return g.node("Gemm", a, b, x, alpha=float(alpha), beta=float(beta))
    product = g.node("MatMul", a, b)
    product = product if alpha == 1 else g.node("Mul", product, g.number(alpha))
    if not beta:
        return product
    return g.node("Add", product, x if beta == 1 else g.node("Mul", x, g.number(beta)))


# -- windows ----------------------------------------------------------------------------------------------------------
@written_as("convolution")
def convolution(
    g: Graph, input, weight, bias, stride, padding, dilation, transposed=False, output_padding=(), groups=1
):  # fmt: skip
    options = {"strides": stride, "pads": (*padding, *padding), "dilations": dilation, "group": groups}
    if transposed:
        return g.node("ConvTranspose", input, weight, bias, **options, output_padding=output_padding)
    return g.node("Conv", input, weight, bias, **options)


def _window(g: Graph, input, kernel_size, stride, padding, dilation, ceil_mode) -> dict:
    """The attributes of a window. Where sizes are known, padding at the end stands for `ceil_mode`, in which the
    operators' versions differ."""
    found = {"kernel_shape": kernel_size, "strides": stride, "pads": (*padding, *padding)}
    sizes, counts = input.shape[2:], g.shape[2:]
    if not ceil_mode:
        return found
    if not all(isinstance(n, int) for n in (*sizes, *counts)):
        return {**found, "ceil_mode": 1}
    extents = window_extent(kernel_size, dilation)
    reached = [(count - 1) * s + e - size - p for count, s, e, size, p in zip(counts, stride, extents, sizes, padding)]
    return {**found, "pads": (*padding, *map(max, padding, reached))}


@written_as("max_pool")
def max_pool(g: Graph, input, kernel_size, stride, padding, dilation, ceil_mode):
    options = {**_window(g, input, kernel_size, stride, padding, dilation, ceil_mode), "dilations": dilation}
    if g.line.results[1] not in g.used:
        return g.node("MaxPool", input, **options), None
    values, positions = g.node("MaxPool", input, outputs=2, **options)
    size = prod(g.static(input.shape[2:], "the size of images whose positions are wanted"))
    return values, g.node("Mod", positions, g.constant(size, "int64"))  # ONNX counts through batch and channels


@written_as("avg_pool")
def avg_pool(g: Graph, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    options = _window(g, input, kernel_size, stride, padding, (1,) * len(stride), ceil_mode and not count_include_pad)
    if ceil_mode and count_include_pad:
        options["ceil_mode"] = 1
    if divisor_override is None:
        return g.node("AveragePool", input, **options, count_include_pad=int(count_include_pad))
    if ceil_mode:
        g.refuse("divisor_override with ceil_mode has no ONNX form")
    mean = g.node("AveragePool", input, **options, count_include_pad=1)
    return g.node("Mul", mean, g.number(prod(kernel_size) / divisor_override))


def _even_windows(g: Graph, input, output_size) -> tuple:
    """The sizes of windows that divide an image evenly."""
    sizes = g.static(input.shape[2:], "the size of images that adaptive windows divide")
    if any(size % count for size, count in zip(sizes, output_size)):
        g.refuse(f"windows that divide {sizes} into {output_size} differ in size; ONNX has equal ones alone")
    return tuple(size // count for size, count in zip(sizes, output_size))


@written_as("adaptive_avg_pool")
def adaptive_avg_pool(g: Graph, input, output_size):
    if all(size == 1 for size in output_size):
        return g.node("GlobalAveragePool", input)
    sizes = g.static(input.shape[2:], "the size of images that adaptive windows divide")
    if not any(size % count for size, count in zip(sizes, output_size)):
        window = _even_windows(g, input, output_size)
        return g.node("AveragePool", input, kernel_shape=window, strides=window)
    x, last = input, len(input.shape) - 1
    for dim, (size, count) in enumerate(zip(sizes, output_size), 2):  # windows that differ, as a product
        weights = np.zeros((size, count))
        for i in range(count):
            start, end = i * size // count, -(-(i + 1) * size // count)
            weights[start:end, i] = 1 / (end - start)
        order = [*range(dim), last, *range(dim + 1, last), dim] if dim < last else [*range(last + 1)]
        x = g.transpose(g.node("MatMul", g.transpose(x, order), g.number(weights)), order)
    return x


@written_as("adaptive_max_pool")
def adaptive_max_pool(g: Graph, input, output_size):
    if all(size == 1 for size in output_size) and g.line.results[1] not in g.used:
        return g.node("GlobalMaxPool", input), None
    n = len(output_size)
    window = _even_windows(g, input, output_size)
    return max_pool(g, input, window, window, (0,) * n, (1,) * n, False)


# -- normalisations ---------------------------------------------------------------------------------------------------
def _affine(g: Graph, x, weight, bias):
    """``x * weight + bias`` for those that there are."""
    x = x if weight is None else g.node("Mul", x, weight)
    return x if bias is None else g.node("Add", x, bias)


def _per_channel(g: Graph, vector, ndim: int):
    """A vector with an element for each channel, to stand beside an input of `ndim` dimensions."""
    return None if vector is None else g.reshape(g.cast(vector, g.dtype), (1, -1, *(1,) * (ndim - 2)))


def _standardized(g: Graph, x, dims, eps: float) -> tuple:
    """Mean 0 and variance 1 over `dims`; also the mean, the variance and the reciprocal standard deviation."""
    mean = g.reduce("Mean", x, dims, True)
    centred = g.node("Sub", x, mean)
    variance = g.reduce("Mean", g.node("Mul", centred, centred), dims, True)
    scale = g.node("Reciprocal", g.node("Sqrt", g.node("Add", variance, g.number(eps))))
    return g.node("Mul", centred, scale), mean, variance, scale


@written_as("layer_normalization")
def layer_normalization(g: Graph, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    count = len(normalized_shape)
    if weight is None:
        shape = g.static(normalized_shape, "the shape that is normalized")
        scale = g.node("Expand", g.number(1), g.ints(shape))
    else:
        scale = g.cast(weight, g.dtype)
    _, mean, inverse = g.line.results
    several = 3 if mean in g.used or inverse in g.used else 1
    given = (input, scale, None if bias is None else g.cast(bias, g.dtype))
    found = g.node("LayerNormalization", *given, outputs=several, axis=-count, epsilon=eps)
    return tuple(found) if several == 3 else (found, None, None)


@written_as("group_normalization")
def group_normalization(g: Graph, input, num_groups, weight=None, bias=None, eps=1e-5):
    batch, channels, *rest = input.shape
    groups = g.reshape(input, (batch, num_groups, -1)) if isinstance(batch, int) else None
    if groups is None:
        sizes = g.static((channels, *rest), "the size of an image whose groups are normalized")
        groups = g.reshape(input, (-1, num_groups, prod(sizes) // num_groups))
    values, mean, _, scale = _standardized(g, groups, [2], eps)
    output = g.node("Reshape", values, g.node("Shape", input))
    ndim = len(input.shape)
    output = _affine(g, output, _per_channel(g, weight, ndim), _per_channel(g, bias, ndim))
    return output, g.squeeze(mean, [2]), g.squeeze(scale, [2])


@written_as("batch_normalization")
def batch_normalization(g: Graph, input, weight=None, bias=None, eps=1e-5):
    ndim = len(input.shape)
    dims = (0, *range(2, ndim))
    values, mean, variance, _ = _standardized(g, input, dims, eps)
    output = _affine(g, values, _per_channel(g, weight, ndim), _per_channel(g, bias, ndim))
    return output, g.squeeze(mean, dims), g.squeeze(variance, dims)


@written_as("channel_affine")
def channel_affine(g: Graph, input, scale, shift):
    (x,) = g.as_result(input)
    ndim = len(input.shape)
    return _affine(g, x, _per_channel(g, scale, ndim), _per_channel(g, shift, ndim))


# -- resampling -------------------------------------------------------------------------------------------------------
@written_as("resample")
def resample(g: Graph, input, sizes, filter, align_corners, scales, antialias):
    options: dict = {"mode": filter, "axes": list(range(2, len(input.shape)))}
    if filter == "nearest":
        options |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif filter == "nearest-exact":
        options |= {"mode": "nearest", "coordinate_transformation_mode": "half_pixel"}
        options |= {"nearest_mode": "round_prefer_ceil"}
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        if filter == "cubic":
            options["cubic_coeff_a"] = -0.5 if antialias else -0.75
        options["antialias"] = int(antialias)
    if all(scale is not None for scale in scales) and not align_corners:
        return g.node("Resize", input, None, g.constant(scales, "float32"), **options)
    return g.node("Resize", input, None, None, g.ints(sizes), **options)
