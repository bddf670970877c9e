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
    product = lib.matmul

    def matmul(input, other):
        output = empty(_shape(input.shape, other.shape), input.dtype)
        if status := product(id(input), id(other), 0, NEITHER, 1.0, 1.0, id(output)):
            fail("matmul", status)
        return output

    def matmul_adjoint(input, other):
        *batch, columns, inner = other.shape
        output = empty(_shape(input.shape, (*batch, inner, columns)), input.dtype)
        if status := product(id(input), id(other), 0, RIGHT, 1.0, 1.0, id(output)):
            fail("matmul_adjoint", status)
        return output

    def adjoint_matmul(input, other):
        *batch, inner, rows = input.shape
        output = empty(_shape((*batch, rows, inner), other.shape), input.dtype)
        if status := product(id(input), id(other), 0, LEFT, 1.0, 1.0, id(output)):
            fail("adjoint_matmul", status)
        return output

    def mm(input, mat2):
        (rows, _), (_, columns) = input.shape, mat2.shape
        output = empty((rows, columns), input.dtype)
        if status := product(id(input), id(mat2), 0, NEITHER, 1.0, 1.0, id(output)):
            fail("mm", status)
        return output

    def bmm(input, mat2):
        (batch, rows, _), (_, _, columns) = input.shape, mat2.shape
        output = empty((batch, rows, columns), input.dtype)
        if status := product(id(input), id(mat2), 0, NEITHER, 1.0, 1.0, id(output)):
            fail("bmm", status)
        return output

    def addmm(input, mat1, mat2, beta, alpha):
        (rows, _), (_, columns) = mat1.shape, mat2.shape
        output = empty((rows, columns), input.dtype)
        if status := product(id(mat1), id(mat2), id(input), NEITHER, beta, alpha, id(output)):
            fail("addmm", status)
        return output

    def baddbmm(input, batch1, batch2, beta, alpha):
        (batch, rows, _), (_, _, columns) = batch1.shape, batch2.shape
        output = empty((batch, rows, columns), input.dtype)
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

    return [
        *(Kernel(f.__name__, f, NUMBERS) for f in (matmul, matmul_adjoint, adjoint_matmul, mm, bmm, linear)),
        *(Kernel(f.__name__, f, REALS) for f in (addmm, baddbmm)),
    ]


def _shape(left, right):
    """The shape of a product; whether the inner sizes fit is for the kernel to see."""
    if len(left) == 2 == len(right):
        return left[0], right[1]
    batch, other = left[:-2], right[:-2]
    if batch != other and other:
        batch = broadcast(batch, other) if batch else other
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))
