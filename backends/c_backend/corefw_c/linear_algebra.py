"""Products of matrices, and of batches of them that broadcast."""

from functools import lru_cache
from math import prod

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import shape_rule
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.direct import direct
from corefw_c.library import fail

NUMBERS = FLOATS | {dtypes.int32, dtypes.int64}
NEITHER, LEFT, RIGHT = range(3)  # which factor's matrices are given transposed
ROWS = 1  # the mask of a sum over rows


def _flattened(*arrays):
    """Arrays as matrices, their rows in the order in which those of the widest array lie: others that lie so, too, are
    not copied either."""
    widest = max(arrays, key=lambda array: array.shape[-1])
    last = widest.ndim - 1
    order = *sorted(range(last), key=lambda d: -abs(widest.strides[d])), last
    return [array.transpose(order).reshape(prod(array.shape[:-1]), array.shape[-1]) for array in arrays]


@lru_cache(maxsize=16)
def ones(n, dtype):
    """So many ones, kept for the next who asks."""
    return np.ones((n,), dtype)


def kernels(lib):
    """The family's kernels."""
    product, reduce = lib.matmul, lib.reduce
    of_batches = shape_rule("bmm")

    def product_of(op, transposed, fewest, most):
        """The kernel of an op for factors of so many dimensions."""
        shape_of = shape_rule(op)
        plain = None if op == "bmm" else 2  # dimensions, of two matrices, whose sizes cost less than a look-up
        rows, columns = int(transposed == LEFT), int(transposed != RIGHT)

        def kernel(input, other):
            left, right = input.shape, other.shape
            shape = (left[rows], right[columns]) if len(left) == plain == len(right) else shape_of(left, right)
            output = empty(shape, input.dtype)
            if status := product(id(input), id(other), 0, transposed, 1.0, 1.0, lib.products, id(output)):
                fail(op, status)
            return output

        return Kernel(op, direct(lib, "product", kernel, transposed, lib.products, fewest, most), NUMBERS)

    def addmm(input, mat1, mat2, beta, alpha):
        output = empty((mat1.shape[0], mat2.shape[1]), input.dtype)  # of two dimensions, so must both be
        if status := product(id(mat1), id(mat2), id(input), NEITHER, beta, alpha, lib.products, id(output)):
            fail("addmm", status)
        return output

    def baddbmm(input, batch1, batch2, beta, alpha):
        output = empty(of_batches(batch1.shape, batch2.shape), input.dtype)
        if status := product(id(batch1), id(batch2), id(input), NEITHER, beta, alpha, lib.products, id(output)):
            fail("baddbmm", status)
        return output

    def linear(input, weight, bias):
        features = weight.shape[:-1]
        if len(features) > 1:
            raise ValueError("a matrix or vector expected")
        output = empty(input.shape[:-1] + features, input.dtype)
        added = 0 if bias is None else id(bias)
        if status := product(id(input), id(weight), added, RIGHT, 1.0, 1.0, lib.products, id(output)):
            fail("linear", status)
        return output

    def linear_gradients(gradient, input):
        if gradient.ndim != 2 or input.ndim != 2:
            if gradient.shape[:-1] != input.shape[:-1]:
                raise ValueError("as many rows of both expected")
            gradient, input = _flattened(gradient, input)
        features = gradient.shape[1]
        of_weight, of_bias = empty((features, input.shape[1]), input.dtype), empty((features,), input.dtype)
        status = product(id(gradient), id(input), 0, LEFT, 1.0, 1.0, lib.products, id(of_weight))
        if input.itemsize == 2:  # sums of half types are products with ones
            factors = ones(gradient.shape[0], input.dtype)
            status = status or product(id(factors), id(gradient), 0, NEITHER, 1.0, 1.0, lib.products, id(of_bias))
        else:
            status = status or reduce(lib.REDUCE_SUM, id(gradient), ROWS, 0, id(of_bias))
        if status:
            fail("linear_gradients", status)
        return of_weight, of_bias

    def int_mm(input, mat2):
        output = empty((input.shape[0], mat2.shape[1]), np.int32)
        if status := product(id(input), id(mat2), 0, NEITHER, 1.0, 1.0, lib.products, id(output)):
            fail("_int_mm", status)
        return output

    def cross(input, other, dim):
        shape = shape_rule("cross")(input.shape, other.shape, dim)
        dim = input.shape.index(3) if dim is None else dim
        input, other = (dense(np.broadcast_to(array, shape)) for array in (input, other))
        output = empty(shape, input.dtype)
        if status := lib.cross(id(input), id(other), dim, id(output)):
            fail("cross", status)
        return output

    return [
        product_of("matmul", NEITHER, 1, 3),
        product_of("matmul_adjoint", RIGHT, 2, 3),
        product_of("adjoint_matmul", LEFT, 2, 3),
        product_of("mm", NEITHER, 2, 2),
        product_of("bmm", NEITHER, 3, 3),
        Kernel("linear", direct(lib, "affine", linear, lib.products), NUMBERS),
        Kernel("_int_mm", int_mm, frozenset({dtypes.int8})),
        *(Kernel(f.__name__, f, FLOATS) for f in (addmm, baddbmm, cross, linear_gradients)),
    ]
