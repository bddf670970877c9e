"""Normalisations: arrays seen as groups (rows of channels of elements) or as samples of channels of elements."""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.pattern import Pattern
from corefw_c.arrays import FLOATS, dense, empty, of_statistics
from corefw_c.direct import direct
from corefw_c.library import fail


def address(array) -> int:
    """An optional array, for C."""
    return 0 if array is None else id(array)


def vector(array, shape):
    """A weight or bias of that shape, dense, if there is one."""
    if array is None:
        return None
    if array.shape != shape:
        raise ValueError(f"a weight or bias of shape {shape} expected")
    return dense(array)


@lru_cache(4096)
def layer(shape, normalized_shape) -> tuple[int, tuple]:
    """(the size of a row, the shape of the rows' statistics)."""
    first = len(shape) - len(normalized_shape)
    if not normalized_shape or shape[first:] != normalized_shape:
        raise ValueError(f"an input of shape (*, {normalized_shape}) expected")
    return prod(normalized_shape), shape[:first] + (1,) * len(normalized_shape)


class View(NamedTuple):
    """How C sees an array of which statistics are taken over some dimensions."""

    grouped: bool  # statistics are of rows, otherwise of channels
    elements: int  # of a channel; of a row if grouped
    statistics: tuple  # the shape of a scale or mean
    order: tuple | None  # the dimensions' order in which it can be seen so, if that is another
    inverse: tuple | None


@lru_cache(4096)
def view_of(shape, dims) -> View:
    """Rows if `dims` are the last ones, samples of channels if what is kept lies together, or transposed rows."""
    kept = [d for d in range(len(shape)) if d not in dims]
    statistics = tuple(1 if d in dims else n for d, n in enumerate(shape))
    if kept == list(range(len(kept))):
        return View(True, prod(shape[len(kept) :]), statistics, None, None)
    if kept == list(range(kept[0], kept[-1] + 1)):
        return View(False, prod(shape[kept[-1] + 1 :]), statistics, None, None)
    order = (*kept, *dims)
    inverse = tuple(sorted(range(len(shape)), key=order.__getitem__))
    return View(True, prod(shape[d] for d in dims), statistics, order, inverse)


@lru_cache(4096)
def weight_channels(shape, dims, weight_shape) -> int | None:
    """The channels of a group that a weight tells apart (0 where C does not ask); None if it is not one per channel."""
    view, beside = view_of(shape, dims), (1,) * (len(shape) - len(weight_shape)) + weight_shape
    varied = [d for d in range(len(shape)) if beside[d] == shape[d] > 1]
    if view.order or not varied or prod(beside) != prod(shape[varied[0] : varied[-1] + 1]):
        return None
    if not view.grouped:
        return 0 if prod(beside) == prod(view.statistics) and not any(d in dims for d in varied) else None
    first = len(shape) - len(dims)
    return prod(shape[first : varied[-1] + 1]) if varied[0] <= first <= varied[-1] + 1 else None


def broadcast_dims(shape, weight_shape) -> tuple:
    """The dimensions along which a weight is repeated."""
    beside = (1,) * (len(shape) - len(weight_shape)) + weight_shape
    return tuple(d for d in range(len(shape)) if beside[d] == 1)


def statistic(array, shape, dtype):
    """A scale or mean of that shape, dense, in the dtype of statistics of another, if there is one."""
    if array is None:
        return None
    kind = of_statistics(dtype)
    array = array if array.dtype == kind else array.astype(kind)
    return dense(array if array.shape == shape else np.broadcast_to(array, shape))


def normalizations_over_channels(lib):
    """A function that normalises channels, and perhaps adds something to the result and keeps the positive part."""

    def over_channels(input, weight, bias, eps, added=None, positive=False):
        input, shape = dense(input), input.shape[1:2]
        weight, bias = vector(weight, shape), vector(bias, shape)
        output, kind = empty(input.shape, input.dtype), of_statistics(input.dtype)
        mean, variance = empty(shape, kind), empty(shape, kind)
        if status := lib.normalize_channels(
            id(input), address(weight), address(bias), eps, address(added), positive, id(output), id(mean), id(variance)
        ):
            fail("batch_normalization", status)
        return output, mean, variance

    return over_channels


def kernels(lib):
    """The family's kernels."""

    def over_groups(op, input, channels, statistics, weight, bias, eps, centred=True):
        input = dense(input)
        kind = of_statistics(input.dtype)
        output, scale = empty(input.shape, input.dtype), empty(statistics, kind)
        mean = empty(statistics, kind) if centred else None
        if status := lib.normalize_groups(
            id(input),
            channels,
            address(weight),
            address(bias),
            eps,
            id(output),
            address(mean),
            id(scale),
        ):
            fail(op, status)
        return (output, mean, scale) if centred else (output, scale)

    def layer_normalization(input, normalized_shape, weight, bias, eps):
        weight, bias = vector(weight, normalized_shape), vector(bias, normalized_shape)
        return over_groups("layer_normalization", input, *layer(input.shape, normalized_shape), weight, bias, eps)

    def rms_normalization(input, normalized_shape, weight, eps):
        weight = vector(weight, normalized_shape)
        return over_groups("rms_normalization", input, *layer(input.shape, normalized_shape), weight, None, eps, False)

    def group_normalization(input, num_groups, weight, bias, eps):
        samples, channels = input.shape[:2]
        weight, bias = vector(weight, (channels,)), vector(bias, (channels,))
        size, rest = divmod(channels, num_groups)
        if rest:
            raise ValueError("groups of different sizes")
        return over_groups("group_normalization", input, size, (samples, num_groups), weight, bias, eps)

    def affine(op, input, elements, centre, factor, shift):
        input = dense(input)
        output = empty(input.shape, input.dtype)
        if status := lib.affine_channels(id(input), elements, address(centre), id(factor), address(shift), id(output)):
            fail(op, status)
        return output

    def channel_affine(input, scale, shift):
        shape, dtype = input.shape[1:2], input.dtype
        scale, shift = (statistic(vector(array, shape), shape, dtype) for array in (scale, shift))
        return affine("channel_affine", input, prod(input.shape[2:]), None, scale, shift)

    def standardized(input, scale, dims, mean):
        view = view_of(input.shape, dims)
        scale, mean = (statistic(array, view.statistics, input.dtype) for array in (scale, mean))
        if view.order is None:
            return affine("standardized", input, view.elements, mean, scale, None)
        rows = affine("standardized", input.transpose(view.order), view.elements, mean, scale, None)
        return rows.transpose(view.inverse)

    def backward(op, gradient, input, weight, scale, dims, mean, wanted):
        """The gradients of the input, and if wanted of weight and bias: see `standardized_gradients`."""
        if gradient.shape != input.shape:
            raise ValueError("a gradient of the input's shape expected")
        view, dtype, kind = view_of(input.shape, dims), input.dtype, of_statistics(input.dtype)
        channels = 0 if weight is None else weight_channels(input.shape, dims, weight.shape)
        if channels is None:  # the weight lies across the groups
            gradient, input = (a.astype(kind, copy=False) for a in (gradient, input))
            weighted = gradient * weight.astype(kind, copy=False)
            result = backward(op, weighted, input, None, scale, dims, mean, False).astype(dtype, copy=False)
            if not wanted:
                return result
            values = standardized(input, scale, dims, mean) * gradient
            axes = broadcast_dims(input.shape, weight.shape)
            return result, *(a.sum(axes, keepdims=True).reshape(weight.shape) for a in (values, gradient))
        scale, mean = (statistic(array, view.statistics, dtype) for array in (scale, mean))
        if view.order:
            gradient, input = gradient.transpose(view.order), input.transpose(view.order)
        gradient, input = dense(gradient), dense(input)
        result, of_weight, of_bias = empty(input.shape, dtype), None, None
        if weight is not None:
            shape, weight = weight.shape, dense(weight if weight.dtype == dtype else weight.astype(kind, copy=False))
            if wanted:
                of_weight, of_bias = empty(shape, kind), empty(shape, kind)
        compute = lib.normalize_groups_backward if view.grouped else lib.normalize_channels_backward
        if status := compute(
            id(gradient),
            id(input),
            (channels or view.elements) if view.grouped else view.elements,
            address(weight),
            address(mean),
            id(scale),
            id(result),
            address(of_weight),
            address(of_bias),
        ):
            fail(op, status)
        result = result.transpose(view.inverse) if view.order else result
        return (result, of_weight, of_bias) if wanted else result

    def standardized_backward(gradient, input, scale, dims, mean, weight):
        return backward("standardized_backward", gradient, input, weight, scale, dims, mean, False)

    def standardized_gradients(gradient, input, weight, scale, dims, mean):
        return backward("standardized_gradients", gradient, input, weight, scale, dims, mean, True)

    functions = (
        *(group_normalization, rms_normalization, channel_affine),
        *(standardized, standardized_backward, standardized_gradients),
    )
    return [
        Kernel("batch_normalization", normalizations_over_channels(lib), FLOATS),
        Kernel("layer_normalization", direct(lib, "layers", layer_normalization), FLOATS),
        *(Kernel(function.__name__, function, FLOATS) for function in functions),
    ]


def patterns(lib):
    """Normalisations with what often follows them."""
    over_channels = normalizations_over_channels(lib)

    def batch_norm_relu(input, weight, bias, eps):
        return over_channels(input, weight, bias, eps, positive=True)

    def batch_norm_add_relu(input, weight, bias, eps, other):
        return over_channels(input, weight, bias, eps, dense(other), positive=True)

    normalized = "y, mean, variance = batch_normalization(input, weight, bias, eps)\n"
    return [
        Pattern("batch_norm_relu", normalized + "z = relu(y)\nz, mean, variance", batch_norm_relu, FLOATS),
        Pattern(
            "batch_norm_add_relu",
            normalized + "z = relu(add(y, other))\nz, mean, variance",
            batch_norm_add_relu,
            FLOATS,
            lambda input, weight, bias, eps, other: input.shape == other.shape,
        ),
    ]
