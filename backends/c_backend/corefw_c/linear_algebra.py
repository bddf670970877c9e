"""Products of matrices, and of batches of them that broadcast."""

from corefw import dtypes
from corefw.dispatch.registry import Kernel
from corefw.shapes import broadcast
from corefw_c.arrays import REALS, empty
from corefw_c.library import fail

NUMBERS = REALS | {dtypes.int32, dtypes.int64}
NEITHER, LEFT, RIGHT = range(3)  # which factor's matrices are given transposed


def kernels(lib):
    """The family's kernels."""

    def product(name, shape, turned):
        """A kernel of two factors; `shape` gives the result's."""

        def multiply(input, other):
            output = empty(shape(input.shape, other.shape), input.dtype)
            if status := lib.matmul(id(input), id(other), 0, turned, 1.0, 1.0, id(output)):
                fail(name, status)
            return output

        return Kernel(name, multiply, NUMBERS)

    def scaled_sum(name, shape):
        """A kernel of a product that is added to its first argument."""

        def add_product(input, left, right, beta, alpha):
            output = empty(shape(left.shape, right.shape), left.dtype)
            if status := lib.matmul(id(left), id(right), id(input), NEITHER, beta, alpha, id(output)):
                fail(name, status)
            return output

        return Kernel(name, add_product, REALS)

    def linear(input, weight, bias):
        features = weight.shape[:-1]
        if len(features) > 1:
            raise ValueError("a matrix or vector expected")
        output = empty((*input.shape[:-1], *features), input.dtype)
        added = 0 if bias is None else id(bias)
        if status := lib.matmul(id(input), id(weight), added, RIGHT, 1.0, 1.0, id(output)):
            fail("linear", status)
        return output

    return [
        product("matmul", _product_shape, NEITHER),
        product("mm", _matrix_shape, NEITHER),
        product("bmm", _batch_shape, NEITHER),
        product("matmul_adjoint", lambda left, right: _product_shape(left, (*right[:-2], right[-1], right[-2])), RIGHT),
        product("adjoint_matmul", lambda left, right: _product_shape((*left[:-2], left[-1], left[-2]), right), LEFT),
        scaled_sum("addmm", _matrix_shape),
        scaled_sum("baddbmm", _batch_shape),
        Kernel("linear", linear, NUMBERS),
    ]


def _matrix_shape(left, right):
    rows, _ = left
    _, columns = right
    return rows, columns


def _batch_shape(left, right):
    size, rows, _ = left
    _, _, columns = right
    return size, rows, columns


def _product_shape(left, right):
    if len(left) == 2 == len(right):
        return left[0], right[1]
    batch, other = left[:-2], right[:-2]
    if batch != other and other:
        batch = broadcast(batch, other) if batch else other
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))
