"""Normalisations: arrays seen as groups (rows of channels of elements) or as samples of channels of elements."""

from functools import lru_cache
from math import prod

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

    return [
        Kernel("batch_normalization", batch_normalization, REALS),
        Kernel("channel_affine", channel_affine, REALS),
        Kernel("group_normalization", group_normalization, REALS),
        Kernel("layer_normalization", layer_normalization, REALS),
        Kernel("rms_normalization", rms_normalization, REALS),
    ]
