"""Products of matrices, and of batches of them that broadcast."""

from __future__ import annotations

from math import prod

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.numbers import fitting_number
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, FLOATS, INTEGERS, offered
from corefw_cupy.products import ADJOINT, AS_IT_IS, FIRST_TRANSPOSED, SECOND_TRANSPOSED, Products


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    product = Products(cuda)

    def matmul(input, other):
        return product(input, other)

    def matmul_adjoint(input, other):
        return product(input, other, (AS_IT_IS, ADJOINT) if other.dtype.kind == "c" else SECOND_TRANSPOSED)

    def adjoint_matmul(input, other):
        return product(input, other, (ADJOINT, AS_IT_IS) if input.dtype.kind == "c" else FIRST_TRANSPOSED)

    def mm(input, mat2):
        if input.ndim != 2 or mat2.ndim != 2:
            raise ValueError("two matrices expected")
        return product(input, mat2)

    def check_batches(input, other):
        if input.ndim != 3 or other.ndim != 3 or input.shape[0] != other.shape[0]:
            raise ValueError("two batches of matrices expected")

    def bmm(input, mat2):
        check_batches(input, mat2)
        return product(input, mat2)

    def factors(matrix, beta, alpha):
        """The factors as numbers of the matrices' dtype, where that is one of integers."""
        if matrix.dtype.kind in "iu":
            beta, alpha = (fitting_number(factor, dtypes.of_numpy(matrix.dtype)) for factor in (beta, alpha))
        return {"beta": beta, "alpha": alpha}

    def addmm(input, mat1, mat2, beta, alpha):
        if mat1.ndim != 2 or mat2.ndim != 2:
            raise ValueError("two matrices expected")
        return product(mat1, mat2, added=input, **factors(mat1, beta, alpha))

    def baddbmm(input, batch1, batch2, beta, alpha):
        check_batches(batch1, batch2)
        return product(batch1, batch2, added=input, **factors(batch1, beta, alpha))

    def linear(input, weight, bias):
        if weight.ndim == 1:
            return product(input, weight, added=bias)
        if weight.ndim != 2:
            raise ValueError("a matrix or vector expected")
        return product(input, weight, SECOND_TRANSPOSED, bias)

    def as_matrix(array):
        """The last dimension's vectors as the rows of one matrix."""
        return array if array.ndim == 2 else cuda.dense(array).reshape(prod(array.shape[:-1]), array.shape[-1])

    def linear_gradients(gradient, input):
        if gradient.shape[:-1] != input.shape[:-1]:
            raise ValueError("as many rows of both expected")
        return product.with_sums(as_matrix(gradient), as_matrix(input))

    functions = (matmul, matmul_adjoint, adjoint_matmul, mm, bmm, addmm, baddbmm, linear)
    numbers = offered({**FLOATS, **COMPLEX, **INTEGERS})
    return [
        *(Kernel(function.__name__, function, numbers) for function in functions),
        Kernel("linear_gradients", linear_gradients, offered(FLOATS)),
    ]
