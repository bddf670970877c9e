"""Products of matrices: two of them go to BLAS by the shortest way, batches through `matmul`."""

from math import prod

from corefw import dtypes
from corefw.dispatch.flags import unheard
from corefw.dispatch.numbers import fitting_number
from corefw_numpy.sums import sums


def kernels(xp):
    """Ops that compute."""
    sum, _ = sums(xp)

    @unheard
    def matmul(input, other):
        if input.ndim == 2 == other.ndim:
            return input.dot(other)
        if other.ndim == 2 < input.ndim:  # one large product instead of many small ones
            rows = input.reshape(prod(input.shape[:-1]), input.shape[-1])
            return rows.dot(other).reshape(*input.shape[:-1], other.shape[1])
        return xp.matmul(input, other)

    def adjoint(matrix):
        transposed = matrix.swapaxes(-2, -1)
        return transposed.conj() if transposed.dtype.kind == "c" else transposed

    @unheard
    def matmul_adjoint(input, other):
        if input.ndim == 2 == other.ndim and input.dtype.kind != "c":
            return input.dot(other.T)
        return matmul(input, adjoint(other))

    @unheard
    def adjoint_matmul(input, other):
        if input.ndim == 2 == other.ndim and input.dtype.kind != "c":
            return input.T.dot(other)
        return matmul(adjoint(input), other)

    @unheard
    def mm(input, mat2):
        if input.ndim != 2 or mat2.ndim != 2:
            raise ValueError("two matrices expected")
        return input.dot(mat2)

    @unheard
    def bmm(input, mat2):
        if input.ndim != 3 or mat2.ndim != 3 or input.shape[0] != mat2.shape[0]:
            raise ValueError("two batches of matrices expected")
        return xp.matmul(input, mat2)

    def scaled_sum(input, out, beta, alpha):
        if out.dtype.kind in "iu":
            beta, alpha = (fitting_number(factor, dtypes.of_numpy(out.dtype)) for factor in (beta, alpha))
        if alpha != 1:
            out *= alpha
        if beta == 0:  # NaN in the input is ignored
            xp.broadcast_to(input, out.shape)  # its shape is not
        else:
            out += input if beta == 1 else input * beta
        return out

    def addmm(input, mat1, mat2, beta, alpha):
        return scaled_sum(input, mm(mat1, mat2), beta, alpha)

    def baddbmm(input, batch1, batch2, beta, alpha):
        return scaled_sum(input, bmm(batch1, batch2), beta, alpha)

    @unheard
    def linear(input, weight, bias):
        if weight.ndim not in (1, 2) or not input.ndim:
            raise ValueError("a matrix or vector expected")
        out = input.dot(weight.T) if input.ndim <= 2 else matmul(input, weight.T)
        if bias is not None:
            if bias.ndim > out.ndim:
                raise ValueError("the bias has more dimensions than the result")
            out += bias
        return out

    @unheard
    def linear_gradients(gradient, input):
        if gradient.shape[:-1] != input.shape[:-1]:
            raise ValueError("as many rows of both expected")
        if gradient.ndim != 2:
            gradient, input = (array.reshape(prod(array.shape[:-1]), array.shape[-1]) for array in (gradient, input))
        return adjoint_matmul(gradient, input), sum(gradient, (0,), False)

    return {
        "addmm": addmm,
        "adjoint_matmul": adjoint_matmul,
        "baddbmm": baddbmm,
        "bmm": bmm,
        "linear": linear,
        "linear_gradients": linear_gradients,
        "matmul": matmul,
        "matmul_adjoint": matmul_adjoint,
        "mm": mm,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
