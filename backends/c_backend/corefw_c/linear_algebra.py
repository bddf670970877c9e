"""Products of matrices, and of batches of them that broadcast."""

from math import prod

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.shapes import broadcast
from corefw_c.arrays import REALS, empty
from corefw_c.library import fail

NUMBERS = REALS | {dtypes.int32, dtypes.int64}
NEITHER, LEFT, RIGHT = range(3)  # which factor's matrices are given transposed
ROWS = 1  # the mask of a sum over rows


def kernels(lib):
    """The family's kernels."""
    product, reduce = lib.matmul, lib.reduce

    def matmul(input, other):
        left, right = input.shape, other.shape
        shape = (left[0], right[1]) if len(left) == 2 == len(right) else _shape(left, right)
        output = empty(shape, input.dtype)
        if status := product(id(input), id(other), 0, NEITHER, 1.0, 1.0, id(output)):
            fail("matmul", status)
        return output

    def matmul_adjoint(input, other):
        left, right = input.shape, other.shape
        shape = (left[0], right[0]) if len(left) == 2 == len(right) else _shape(left, _turned(right))
        output = empty(shape, input.dtype)
        if status := product(id(input), id(other), 0, RIGHT, 1.0, 1.0, id(output)):
            fail("matmul_adjoint", status)
        return output

    def adjoint_matmul(input, other):
        left, right = input.shape, other.shape
        shape = (left[1], right[1]) if len(left) == 2 == len(right) else _shape(_turned(left), right)
        output = empty(shape, input.dtype)
        if status := product(id(input), id(other), 0, LEFT, 1.0, 1.0, id(output)):
            fail("adjoint_matmul", status)
        return output

    def mm(input, mat2):
        output = empty((input.shape[0], mat2.shape[1]), input.dtype)  # of two dimensions, so must both be
        if status := product(id(input), id(mat2), 0, NEITHER, 1.0, 1.0, id(output)):
            fail("mm", status)
        return output

    def bmm(input, mat2):
        output = empty(_batch_shape(input, mat2), input.dtype)
        if status := product(id(input), id(mat2), 0, NEITHER, 1.0, 1.0, id(output)):
            fail("bmm", status)
        return output

    def addmm(input, mat1, mat2, beta, alpha):
        output = empty((mat1.shape[0], mat2.shape[1]), input.dtype)
        if status := product(id(mat1), id(mat2), id(input), NEITHER, beta, alpha, id(output)):
            fail("addmm", status)
        return output

    def baddbmm(input, batch1, batch2, beta, alpha):
        output = empty(_batch_shape(batch1, batch2), input.dtype)
        if status := product(id(batch1), id(batch2), id(input), NEITHER, beta, alpha, id(output)):
            fail("baddbmm", status)
        return output

    def linear(input, weight, bias):
        features = weight.shape[:-1]
        if len(features) > 1:
            raise ValueError("a matrix or vector expected")
        output = empty(input.shape[:-1] + features, input.dtype)
        added = 0 if bias is None else id(bias)
        if status := product(id(input), id(weight), added, RIGHT, 1.0, 1.0, id(output)):
            fail("linear", status)
        return output

    def linear_gradients(gradient, input):
        if gradient.ndim != 2 or input.ndim != 2:
            if gradient.shape[:-1] != input.shape[:-1]:
                raise ValueError("as many rows of both expected")
            gradient, input = (array.reshape(prod(array.shape[:-1]), array.shape[-1]) for array in (gradient, input))
        features = gradient.shape[1]
        of_weight, of_bias = empty((features, input.shape[1]), input.dtype), empty((features,), input.dtype)
        status = product(id(gradient), id(input), 0, LEFT, 1.0, 1.0, id(of_weight))
        if status := status or reduce(lib.REDUCE_SUM, id(gradient), ROWS, 0, id(of_bias)):
            fail("linear_gradients", status)
        return of_weight, of_bias

    numbers = NUMBERS | {dtypes.bfloat16} if lib.has_bfloat16_products() else NUMBERS
    return [
        *(Kernel(f.__name__, f, numbers) for f in (matmul, matmul_adjoint, adjoint_matmul, mm, bmm, linear)),
        *(Kernel(f.__name__, f, REALS) for f in (addmm, baddbmm, linear_gradients)),
    ]


def _shape(left, right):
    """The shape of a product; whether the inner sizes fit is for the kernel to see."""
    batch, other = left[:-2], right[:-2]
    if batch != other and other:
        batch = broadcast(batch, other) if batch else other
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _turned(shape):
    """The shape of a batch of transposed matrices."""
    return (*shape[:-2], shape[-1], shape[-2])


def _batch_shape(left, right):
    """The shape of the products of two batches, which must not broadcast."""
    (batch, rows, _), (other, _, columns) = left.shape, right.shape
    if batch != other:
        raise ValueError("two batches of one size expected")
    return batch, rows, columns
