"""Convolutions, the gradient of their weights, and windows as columns."""

from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""
    shape_of, weight_shape_of = shape_rule("convolution"), shape_rule("convolution_weight")

    def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        shapes = input.shape, weight.shape, None if bias is None else bias.shape
        shape = shape_of(*shapes, stride, padding, dilation, transposed, output_padding, groups)
        input, weight, bias = dense(input), dense(weight), None if bias is None else dense(bias)
        output = empty(shape, input.dtype)
        options = (*stride, *padding, *dilation)
        address = 0 if bias is None else id(bias)
        arrays = (id(input), id(weight), address)
        if status := lib.convolution(*arrays, len(options), options, transposed, groups, lib.products, id(output)):
            fail("convolution", status)
        return output

    def convolution_weight(input, output_grad, kernel_size, stride, padding, dilation, groups):
        options = (*stride, *padding, *dilation)
        shape = weight_shape_of(input.shape, output_grad.shape, kernel_size, stride, padding, dilation, groups)
        input, output_grad = dense(input), dense(output_grad)
        result = empty(shape, input.dtype)
        arrays = (id(input), id(output_grad))
        if status := lib.convolution_weight(*arrays, len(options), options, groups, lib.products, id(result)):
            fail("convolution_weight", status)
        return result

    def im2col(input, kernel_size, dilation, padding, stride):
        given = kernel_size, dilation, padding, stride
        output = empty(shape_rule("im2col")(input.shape, *given), input.dtype)
        input, options = dense(input), _pairs(*given)
        if status := lib.im2col(id(input), options, id(output)):
            fail("im2col", status)
        return output

    def col2im(input, output_size, kernel_size, dilation, padding, stride):
        given = kernel_size, dilation, padding, stride
        output = empty(shape_rule("col2im")(input.shape, output_size, *given), input.dtype)
        input, options = dense(input), _pairs(*given)
        if status := lib.col2im(id(input), options, id(output)):
            fail("col2im", status)
        return output

    return [
        Kernel("convolution", convolution, FLOATS),
        Kernel("convolution_weight", convolution_weight, FLOATS),
        Kernel("im2col", im2col),
        Kernel("col2im", col2im, FLOATS),
    ]


def _pairs(*options) -> tuple:
    """Options for height and width in one tuple."""
    if any(len(option) != 2 for option in options):
        raise ValueError("windows of images need options for height and width")
    return sum(options, ())
