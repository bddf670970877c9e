"""Normalisations: mean 0 and variance 1 over some dimensions, in as few passes as arrays allow."""

from math import prod

from corefw_numpy.sums import sums


def kernels(xp):
    """Ops that compute."""
    sum_along, _ = sums(xp)

    def check(vector, shape):
        if vector is not None and vector.shape != tuple(shape):
            raise ValueError(f"a weight or bias of shape {tuple(shape)} expected")

    def average(x, axes):
        """The mean over `axes`, which stay. NumPy sums pairwise, hence precisely, along the last dimensions only; the
        sums along the others are of few elements, in double precision."""
        last = tuple(axis for axis in axes if set(range(axis, x.ndim)) <= set(axes))
        others = tuple(axis for axis in axes if axis not in last)
        total = x.sum(last, keepdims=True) if last else x
        if others:
            total = total.sum(others, keepdims=True, dtype="float64").astype(x.dtype)
        return total / x.dtype.type(prod(x.shape[axis] for axis in axes))

    def reciprocal_root(variance, eps):
        return 1 / xp.sqrt(variance + variance.dtype.type(eps))

    def scaled(values, weight, bias):
        if weight is not None:
            values *= weight
        if bias is not None:
            values += bias
        return values

    def normalized(input, axes, eps):
        """(input with mean 0 and variance 1, mean, variance, reciprocal standard deviation)."""
        mean = average(input, axes)
        values = input - mean
        variance = average(values * values, axes)
        scale = reciprocal_root(variance, eps)
        values *= scale
        return values, mean, variance, scale

    def last_axes(input, shape):
        if not shape or input.shape[-len(shape) :] != shape:
            raise ValueError(f"an input of shape (*, {shape}) expected")
        return tuple(range(input.ndim - len(shape), input.ndim))

    def layer_normalization(input, normalized_shape, weight, bias, eps):
        axes = last_axes(input, normalized_shape)
        check(weight, normalized_shape)
        check(bias, normalized_shape)
        values, mean, _, scale = normalized(input, axes, eps)
        return scaled(values, weight, bias), mean, scale

    def rms_normalization(input, normalized_shape, weight, eps):
        axes = last_axes(input, normalized_shape)
        check(weight, normalized_shape)
        scale = reciprocal_root(average(input * input, axes), eps)
        return scaled(input * scale, weight, None), scale

    def group_normalization(input, num_groups, weight, bias, eps):
        samples, channels, *rest = input.shape
        if channels % num_groups:
            raise ValueError("groups of different sizes")
        check(weight, (channels,))
        check(bias, (channels,))
        grouped = input.reshape(samples, num_groups, channels // num_groups, prod(rest))
        values, mean, _, scale = normalized(grouped, (2, 3), eps)
        beside = (num_groups, channels // num_groups, 1)
        weight = None if weight is None else weight.reshape(beside)
        bias = None if bias is None else bias.reshape(beside)
        return scaled(values, weight, bias).reshape(input.shape), mean[:, :, 0, 0], scale[:, :, 0, 0]

    def per_channel(input, *vectors):
        """The vectors, to stand beside an input with channels in dimension 1."""
        for vector in vectors:
            check(vector, input.shape[1:2])
        beside = (-1, *(1,) * (input.ndim - 2))
        return (None if vector is None else vector.reshape(beside) for vector in vectors)

    def batch_normalization(input, weight, bias, eps):
        channels = input.shape[1]
        weight, bias = per_channel(input, weight, bias)
        values, mean, variance, _ = normalized(input, (0, *range(2, input.ndim)), eps)
        return scaled(values, weight, bias), mean.reshape(channels), variance.reshape(channels)

    def channel_affine(input, scale, shift):
        scale, shift = per_channel(input, scale, shift)
        return scaled(input * scale, None, shift)

    def standardized(input, scale, dims, mean):
        if mean is None:
            return input * scale
        values = input - mean
        values *= scale
        return values

    def standardized_backward(gradient, input, scale, dims, mean, weight):
        if gradient.shape != input.shape:
            raise ValueError("a gradient of the input's shape expected")
        values = standardized(input, scale, dims, mean)
        weighted = gradient if weight is None else gradient * weight
        values *= average(weighted * values, dims)
        if mean is not None:
            values += average(weighted, dims)
        result = weighted - values
        result *= scale
        return result

    def sum_to(x, shape):
        """The sum over the dimensions in which `shape` was broadcast."""
        beside = (1,) * (x.ndim - len(shape)) + shape
        return sum_along(x, tuple(i for i in range(x.ndim) if beside[i] == 1), True).reshape(shape)

    def standardized_gradients(gradient, input, weight, scale, dims, mean):
        values = standardized(input, scale, dims, mean)
        values *= gradient
        of_weight, of_bias = sum_to(values, weight.shape), sum_to(gradient, weight.shape)
        return standardized_backward(gradient, input, scale, dims, mean, weight), of_weight, of_bias

    return {
        "batch_normalization": batch_normalization,
        "channel_affine": channel_affine,
        "group_normalization": group_normalization,
        "layer_normalization": layer_normalization,
        "rms_normalization": rms_normalization,
        "standardized": standardized,
        "standardized_backward": standardized_backward,
        "standardized_gradients": standardized_gradients,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
