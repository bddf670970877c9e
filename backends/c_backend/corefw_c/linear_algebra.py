"""Products of matrices, and of batches of them that broadcast."""

from math import prod

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import REALS, empty
from corefw_c.library import fail

NUMBERS = REALS | {dtypes.int32, dtypes.int64}
NEITHER, LEFT, RIGHT = range(3)  # which factor's matrices are given transposed
ROWS = 1  # the mask of a sum over rows


def kernels(lib):
    """The family's kernels."""
    product, reduce = lib.matmul, lib.reduce
    of_batches = shape_rule("bmm")

    def product_of(op, transposed):
        shape_of = shape_rule(op)
        plain = None if op == "bmm" else 2  # dimensions, of two matrices, whose sizes cost less than a look-up
        rows, columns = int(transposed == LEFT), int(transposed != RIGHT)

        def kernel(input, other):
            left, right = input.shape, other.shape
            shape = (left[rows], right[columns]) if len(left) == plain == len(right) else shape_of(left, right)
            output = empty(shape, input.dtype)
            if status := product(id(input), id(other), 0, transposed, 1.0, 1.0, id(output)):
                fail(op, status)
            return output

        return Kernel(op, kernel, numbers)

    def addmm(input, mat1, mat2, beta, alpha):
        output = empty((mat1.shape[0], mat2.shape[1]), input.dtype)  # of two dimensions, so must both be
        if status := product(id(mat1), id(mat2), id(input), NEITHER, beta, alpha, id(output)):
            fail("addmm", status)
        return output

    def baddbmm(input, batch1, batch2, beta, alpha):
        output = empty(of_batches(batch1.shape, batch2.shape), input.dtype)
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
        product_of("matmul", NEITHER),
        product_of("matmul_adjoint", RIGHT),
        product_of("adjoint_matmul", LEFT),
        product_of("mm", NEITHER),
        product_of("bmm", NEITHER),
        Kernel("linear", linear, numbers),
        *(Kernel(f.__name__, f, REALS) for f in (addmm, baddbmm, linear_gradients)),
    ]
