"""Layers with weights of int8."""

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import HALVES, dense, empty
from corefw_c.library import fail


def kernels(lib):
    """The family's kernels."""
    shape_of = shape_rule("quantized_linear")

    def quantized_linear(input, weight, scale, sums, bias):
        given = (input, weight, scale, sums) if bias is None else (input, weight, scale, sums, bias)
        output = empty(shape_of(*(array.shape for array in given)), input.dtype)
        arrays = [dense(array) for array in given]
        addresses = [*map(id, arrays), 0][:5]
        if status := lib.quantized_linear(*addresses, lib.products, id(output)):
            fail("quantized_linear", status)
        return output

    return [Kernel("quantized_linear", quantized_linear, HALVES | {dtypes.float32})]
