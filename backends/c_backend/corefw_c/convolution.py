"""Convolutions, the gradient of their weights, and windows as columns."""

from math import prod

from corefw.dispatch.backend import Kernel
from corefw.windows import window_counts, window_extent
from corefw_c.arrays import REALS, dense, empty
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""

    def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        input, weight = dense(input), dense(weight)
        sizes, kernel = input.shape[2:], weight.shape[2:]
        if transposed:
            steps = zip(sizes, window_extent(kernel, dilation), stride, padding, output_padding, strict=True)
            places = tuple((size - 1) * s - 2 * p + e + o for size, e, s, p, o in steps)
            channels = weight.shape[1] * groups
        else:
            places = window_counts(sizes, kernel, stride, padding, dilation)
            channels = weight.shape[0]
        output = empty((input.shape[0], channels, *places), input.dtype)
        bias = None if bias is None else dense(bias)
        options = (*stride, *padding, *dilation)
        address = 0 if bias is None else id(bias)
        arrays = (id(input), id(weight), address)
        if status := lib.convolution(*arrays, len(options), options, transposed, groups, id(output)):
            fail("convolution", status)
        return output

    def convolution_weight(input, output_grad, kernel_size, stride, padding, dilation, groups):
        input, output_grad = dense(input), dense(output_grad)
        result = empty((output_grad.shape[1], input.shape[1] // groups, *kernel_size), input.dtype)
        options = (*stride, *padding, *dilation)
        arrays = (id(input), id(output_grad))
        if status := lib.convolution_weight(*arrays, len(options), options, groups, id(result)):
            fail("convolution_weight", status)
        return result

    def im2col(input, kernel_size, dilation, padding, stride):
        input = dense(input)
        n, channels, *sizes = input.shape
        windows = prod(window_counts(sizes, kernel_size, stride, padding, dilation))
        output = empty((n, channels * prod(kernel_size), windows), input.dtype)
        options = _pairs(kernel_size, dilation, padding, stride)
        if status := lib.im2col(id(input), options, id(output)):
            fail("im2col", status)
        return output

    def col2im(input, output_size, kernel_size, dilation, padding, stride):
        input = dense(input)
        n, rows, _ = input.shape
        output = empty((n, rows // prod(kernel_size), *output_size), input.dtype)
        options = _pairs(kernel_size, dilation, padding, stride)
        if status := lib.col2im(id(input), options, id(output)):
            fail("col2im", status)
        return output

    return [
        Kernel("convolution", convolution, REALS),
        Kernel("convolution_weight", convolution_weight, REALS),
        Kernel("im2col", im2col),
        Kernel("col2im", col2im, REALS),
    ]


def _pairs(*options) -> tuple:
    """Options for height and width in one tuple."""
    if any(len(option) != 2 for option in options):
        raise ValueError("windows of images need options for height and width")
    return sum(options, ())
