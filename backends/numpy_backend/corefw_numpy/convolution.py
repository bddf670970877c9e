"""Convolutions: the windows of the input as a strided view, multiplied by the kernels as matrices."""

from itertools import product
from math import prod

from corefw.windows import meaningful, window_counts
from corefw_numpy.rules import result_shape

# The copy of the windows that a matrix product needs is made for so many samples at a time that it stays in the cache:
# measured 18 ms instead of 26 ms for all at once (16 images of 64 channels, 56 x 56, 64 kernels of 3 x 3).
COPY_BYTES = 4_000_000


def kernels(xp):
    """Ops that compute."""
    as_strided = xp.lib.stride_tricks.as_strided

    def inside(sizes, padding):
        """The part of a padded array that is not padding."""
        return (..., *(slice(p, p + size) for size, p in zip(sizes, padding)))

    def padded(input, padding):
        if not any(padding):
            return input
        sizes = input.shape[2:]
        result = xp.zeros((*input.shape[:2], *(size + 2 * p for size, p in zip(sizes, padding))), input.dtype)
        result[inside(sizes, padding)] = input
        return result

    def windows(input, kernel, places, stride, padding, dilation):
        """Every window of a batch of images, as a view of the padded input: (N, C, *kernel, *places)."""
        input = padded(input, padding)
        steps = input.strides[2:]
        within = tuple(step * d for step, d in zip(steps, meaningful(dilation, kernel)))
        between = tuple(step * s for step, s in zip(steps, meaningful(stride, places)))
        return as_strided(input, (*input.shape[:2], *kernel, *places), (*input.strides[:2], *within, *between))

    def overlay(parts, sizes, stride, padding, dilation):
        """Windows (N, C, *kernel, *places) added where they lie in images of these sizes."""
        kernel, places = parts.shape[2 : 2 + len(sizes)], parts.shape[2 + len(sizes) :]
        shape = (*parts.shape[:2], *(size + 2 * p for size, p in zip(sizes, padding)))
        result = xp.zeros(shape, parts.dtype)
        for offset in product(*map(range, kernel)):
            at = tuple(slice(k * d, k * d + m * s, s) for k, d, m, s in zip(offset, dilation, places, stride))
            result[(..., *at)] += parts[(slice(None), slice(None), *offset)]
        return xp.ascontiguousarray(result[inside(sizes, padding)])

    def in_batches(view, rows, columns, groups):
        """Slices of the samples, and these samples' windows as matrices (samples, groups, rows, columns), which are
        overwritten by the next ones."""
        samples = view.shape[0]
        if view.flags.c_contiguous:  # windows of one element
            yield slice(0, samples), view.reshape(samples, groups, rows, columns)
            return
        count = min(samples, max(1, COPY_BYTES // max(1, prod(view.shape[1:]) * view.itemsize)))
        copy = xp.empty((count, *view.shape[1:]), view.dtype)
        matrices = copy.reshape(count, groups, rows, columns)
        for first in range(0, samples, max(1, count)):
            taken = min(count, samples - first)
            copy[:taken] = view[first : first + taken]
            yield slice(first, first + taken), matrices[:taken]

    def correlate(input, weight, shape, stride, padding, dilation, groups):
        kernel, places = weight.shape[2:], shape[2:]
        view = windows(input, kernel, places, stride, padding, dilation)
        rows, columns = prod(weight.shape[1:]), prod(places)
        matrix = weight.reshape(groups, weight.shape[0] // groups, rows)
        result = xp.empty((shape[0], groups, shape[1] // groups, columns), input.dtype)
        for part, matrices in in_batches(view, rows, columns, groups):
            xp.matmul(matrix, matrices, out=result[part])
        return result.reshape(shape)

    def correlate_transposed(input, weight, shape, stride, padding, dilation, groups):
        kernel, places = weight.shape[2:], input.shape[2:]
        rows = prod(weight.shape[1:])
        matrix = weight.reshape(groups, weight.shape[0] // groups, rows).swapaxes(1, 2)
        images = input.reshape(input.shape[0], groups, weight.shape[0] // groups, prod(places))
        parts = xp.matmul(matrix, images).reshape(shape[0], shape[1], *kernel, *places)
        return overlay(parts, shape[2:], stride, padding, dilation)

    def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        options = (stride, padding, dilation, transposed, output_padding, groups)
        shape = result_shape("convolution", input, weight, bias, *options)
        correlated = correlate_transposed if transposed else correlate
        result = correlated(input, weight, shape, stride, padding, dilation, groups)
        if bias is not None:
            result += bias.reshape(-1, *(1,) * len(stride))
        return result

    def convolution_weight(input, output_grad, kernel_size, stride, padding, dilation, groups):
        options = (kernel_size, stride, padding, dilation, groups)
        shape = result_shape("convolution_weight", input, output_grad, *options)
        places = output_grad.shape[2:]
        view = windows(input, kernel_size, places, stride, padding, dilation)
        rows, columns = prod(shape[1:]), prod(places)
        images = output_grad.reshape(output_grad.shape[0], groups, shape[0] // groups, columns)
        result = xp.zeros((groups, shape[0] // groups, rows), input.dtype)
        for part, matrices in in_batches(view, rows, columns, groups):
            result += xp.matmul(images[part], matrices.swapaxes(2, 3)).sum(0)
        return result.reshape(shape)

    def col2im(input, output_size, kernel_size, dilation, padding, stride):
        n, channels, *sizes = result_shape("col2im", input, output_size, kernel_size, dilation, padding, stride)
        places = window_counts(sizes, kernel_size, stride, padding, dilation)
        return overlay(input.reshape(n, channels, *kernel_size, *places), sizes, stride, padding, dilation)

    def im2col(input, kernel_size, dilation, padding, stride):
        shape = result_shape("im2col", input, kernel_size, dilation, padding, stride)
        places = window_counts(input.shape[2:], kernel_size, stride, padding, dilation)
        view = windows(input, kernel_size, places, stride, padding, dilation)
        return xp.array(view, order="C").reshape(shape)

    return {
        "col2im": col2im,
        "convolution": convolution,
        "convolution_weight": convolution_weight,
        "im2col": im2col,
    }


def data_movement(xp):
    """Ops that only move elements."""
    return {}
