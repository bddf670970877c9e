"""Normalisations: arrays seen as groups (rows of channels of elements) or as samples of channels of elements."""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from corefw.dispatch.registry import Kernel
from corefw_c.arrays import REALS, dense, empty
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


class View(NamedTuple):
    """How C sees an array of which statistics are taken over some dimensions."""

    grouped: bool  # statistics are of rows, otherwise of channels
    elements: int  # of a channel; of a row if grouped
    order: tuple | None  # the dimensions' order in which it can be seen so, if that is another
    inverse: tuple | None


@lru_cache(4096)
def view_of(shape, dims) -> View:
    """Rows if `dims` are the last ones, samples of channels if what is kept lies together, else rows of a transposed copy."""
    kept = [d for d in range(len(shape)) if d not in dims]
    if not kept or kept == list(range(len(kept))):
        return View(True, prod(shape[len(kept) :]), None, None)
    if kept == list(range(kept[0], kept[-1] + 1)):
        return View(False, prod(shape[kept[-1] + 1 :]), None, None)
    order = (*kept, *dims)
    return View(True, prod(shape[d] for d in dims), order, tuple(sorted(range(len(shape)), key=order.__getitem__)))


@lru_cache(4096)
def weight_channels(shape, dims, weight_shape) -> int | None:
    """The channels of a group that a weight distinguishes (0 where C does not ask); None if it is not one per channel."""
    view = view_of(shape, dims)
    beside = (1,) * (len(shape) - len(weight_shape)) + weight_shape
    varied = [d for d in range(len(shape)) if beside[d] == shape[d] > 1]
    if not varied or view.order or any(beside[d] not in (1, shape[d]) for d in range(len(shape))):
        return None
    if any(shape[d] > 1 for d in range(varied[0], varied[-1] + 1) if d not in varied):
        return None
    if not view.grouped:
        return 0 if prod(weight_shape) == prod(shape[d] for d in range(len(shape)) if d not in dims) and not any(
            d in dims for d in varied
        ) else None
    first = len(shape) - len(dims)
    return prod(shape[first : varied[-1] + 1]) if varied[0] <= first <= varied[-1] + 1 else None


def broadcast_dims(shape, weight_shape) -> tuple:
    """The dimensions along which a weight is repeated."""
    beside = (1,) * (len(shape) - len(weight_shape)) + weight_shape
    return tuple(d for d in range(len(shape)) if beside[d] == 1)


def statistic(array, shape, dims):
    """A scale or mean with one element for all of `dims`, dense."""
    if array is None:
        return None
    expected = tuple(1 if d in dims else n for d, n in enumerate(shape))
    return dense(array if array.shape == expected else np.broadcast_to(array, expected))


def kernels(lib):
    """The family's kernels."""

    def over_groups(op, input, channels, weight, bias, eps, statistics, centred):
        input = dense(input)
        output, scale = empty(input.shape, input.dtype), empty(statistics, input.dtype)
        mean = empty(statistics, input.dtype) if centred else None
        if status := lib.normalize_groups(
            id(input), channels, address(weight), address(bias), eps, id(output), address(mean), id(scale)
        ):
            fail(op, status)
        return (output, mean, scale) if centred else (output, scale)

    def of_layer(input, normalized_shape):
        first = input.ndim - len(normalized_shape)
        if not normalized_shape or input.shape[first:] != normalized_shape:
            raise ValueError(f"an input of shape (*, {normalized_shape}) expected")
        return prod(normalized_shape), input.shape[:first] + (1,) * len(normalized_shape)

    def layer_normalization(input, normalized_shape, weight, bias, eps):
        size, statistics = of_layer(input, normalized_shape)
        weight, bias = vector(weight, normalized_shape), vector(bias, normalized_shape)
        return over_groups("layer_normalization", input, size, weight, bias, eps, statistics, True)

    def rms_normalization(input, normalized_shape, weight, eps):
        size, statistics = of_layer(input, normalized_shape)
        weight = vector(weight, normalized_shape)
        return over_groups("rms_normalization", input, size, weight, None, eps, statistics, False)

    def group_normalization(input, num_groups, weight, bias, eps):
        samples, channels = input.shape[:2]
        weight, bias = vector(weight, (channels,)), vector(bias, (channels,))
        statistics = (samples, num_groups)
        return over_groups(
            "group_normalization", input, channels // num_groups, weight, bias, eps, statistics, True
        )

    def batch_normalization(input, weight, bias, eps):
        input, shape = dense(input), input.shape[1:2]
        weight, bias = vector(weight, shape), vector(bias, shape)
        output, mean, variance = empty(input.shape, input.dtype), empty(shape, input.dtype), empty(shape, input.dtype)
        if status := lib.normalize_channels(
            id(input), address(weight), address(bias), eps, id(output), id(mean), id(variance)
        ):
            fail("batch_normalization", status)
        return output, mean, variance

    def affine(op, input, elements, centre, factor, shift):
        input = dense(input)
        output = empty(input.shape, input.dtype)
        if status := lib.affine_channels(
            id(input), elements, address(centre), id(factor), address(shift), id(output)
        ):
            fail(op, status)
        return output

    def channel_affine(input, scale, shift):
        shape = input.shape[1:2]
        scale, shift = vector(scale, shape), vector(shift, shape)
        return affine("channel_affine", input, prod(input.shape[2:]), None, scale, shift)

    def standardized(input, scale, dims, mean):
        seen = view_of(input.shape, dims)
        scale, mean = statistic(scale, input.shape, dims), statistic(mean, input.shape, dims)
        if seen.order:
            return affine("standardized", input.transpose(seen.order), seen.elements, mean, scale, None).transpose(
                seen.inverse
            )
        return affine("standardized", input, seen.elements, mean, scale, None)

    def backward(op, gradient, input, weight, scale, dims, mean, wanted):
        """The gradients of input, and if wanted of weight and bias: see `standardized_gradients`."""
        if gradient.shape != input.shape:
            raise ValueError("a gradient of the input's shape expected")
        seen = view_of(input.shape, dims)
        channels = 0 if weight is None else weight_channels(input.shape, dims, weight.shape)
        if channels is None:  # the weight lies across the groups
            result = backward(op, gradient * weight, input, None, scale, dims, mean, False)
            if not wanted:
                return result
            values = standardized(input, scale, dims, mean) * gradient
            axes = broadcast_dims(input.shape, weight.shape)
            return result, *(a.sum(axes, keepdims=True).reshape(weight.shape) for a in (values, gradient))
        scale, mean = statistic(scale, input.shape, dims), statistic(mean, input.shape, dims)
        if seen.order:
            gradient, input = gradient.transpose(seen.order), input.transpose(seen.order)
        gradient, input = dense(gradient), dense(input)
        result = empty(input.shape, input.dtype)
        vectors = ()
        if weight is not None:
            shape, weight = weight.shape, dense(weight)
            if wanted:
                vectors = empty(shape, input.dtype), empty(shape, input.dtype)
        sums = [id(v) for v in vectors] or (0, 0)
        compute, size = (
            (lib.normalize_groups_backward, channels or seen.elements)
            if seen.grouped
            else (lib.normalize_channels_backward, seen.elements)
        )
        if status := compute(
            id(gradient), id(input), size, address(weight), address(mean), id(scale), id(result), *sums
        ):
            fail(op, status)
        result = result.transpose(seen.inverse) if seen.order else result
        return (result, *vectors) if wanted else result

    def standardized_backward(gradient, input, scale, dims, mean, weight):
        return backward("standardized_backward", gradient, input, weight, scale, dims, mean, False)

    def standardized_gradients(gradient, input, weight, scale, dims, mean):
        return backward("standardized_gradients", gradient, input, weight, scale, dims, mean, True)

    return [
        Kernel("batch_normalization", batch_normalization, REALS),
        Kernel("channel_affine", channel_affine, REALS),
        Kernel("group_normalization", group_normalization, REALS),
        Kernel("layer_normalization", layer_normalization, REALS),
        Kernel("rms_normalization", rms_normalization, REALS),
        Kernel("standardized", standardized, REALS),
        Kernel("standardized_backward", standardized_backward, REALS),
        Kernel("standardized_gradients", standardized_gradients, REALS),
    ]
