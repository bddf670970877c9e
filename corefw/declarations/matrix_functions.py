"""Functions of matrices beyond solutions and factors.

Every op takes matrices in the last two dimensions; those before are a batch.
"""

from __future__ import annotations

from math import ceil, inf, log2, prod

from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import composite, ops
from corefw.errors import LinAlgError, ShapeError
from corefw.shapes import check_square

#: the coefficients of the Pade approximant [13/13] of exp, and the norm up to which it is exact in double precision
_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
    *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_PADE_NORM = 5.371920351148152


@composite(out=True, public="linalg.matrix_exp corefw.matrix_exp Tensor.matrix_exp")
def linalg_matrix_exp(A):
    """The exponential of square matrices, the sum of ``A**k / k!``.

    Args:
        A: shape (..., n, n).

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

    >>> import corefw as torch
    >>> torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    check_square("linalg.matrix_exp", A.shape)
    if not A.numel():
        return A.clone()
    if A.dtype.itemsize == 2:  # the coefficients are beyond its range, or its precision
        return ops.linalg_matrix_exp(A.float()).to(A.dtype)
    norm = all_examples(A.abs().sum(-2)).max().item()
    halvings = ceil(log2(norm / _PADE_NORM)) if _PADE_NORM < norm < inf else 0
    A = A * 0.5**halvings
    eye = ops.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    A2 = A.matmul(A)
    A4 = A2.matmul(A2)
    A6 = A4.matmul(A2)

    def polynomial(first: int):
        """The terms of every second power from `first` on, without a factor A for the odd ones."""
        c = _PADE[first::2]
        high = A6.matmul(A6 * c[6] + A4 * c[5] + A2 * c[4])
        return high + A6 * c[3] + A4 * c[2] + A2 * c[1] + eye * c[0]

    odd, even = A.matmul(polynomial(1)), polynomial(0)
    result = ops.linalg_solve(even - odd, even + odd)
    for _ in range(halvings):
        result = result.matmul(result)
    return result


@composite(out=True)
def linalg_tensorsolve(A, B, dims: tuple | None = None):
    """The solution X of ``tensordot(A, X, X.ndim) = B``.

    Args:
        A: a shape that begins with that of `B`; the product of its other sizes is that of `B`.
        B: any shape.
        dims: dimensions of `A` that are moved to its end first.

    Returns:
        X in the shape of A's other sizes.

    >>> import corefw as torch
    >>> torch.linalg.tensorsolve(torch.eye(6).reshape(2, 3, 6), torch.ones(2, 3)).shape
    torch.Size([6])
    """
    if dims is not None:
        A = ops.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if prod(shape) != prod(A.shape[: B.ndim]):
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {prod(shape)} != {prod(A.shape[: B.ndim])}"
        )
    return ops.linalg_solve(A.reshape(prod(shape), prod(shape)), B.reshape(-1)).reshape(shape)


@composite(out=True)
def cholesky_inverse(input, upper: bool = False):
    """The inverse of Hermitian positive-definite matrices from their Cholesky factors L, ``inv(L @ L.mH)``.

    Args:
        input: L, or with `upper` ``L.mH``, shape (..., n, n).

    Raises:
        LinAlgError: an element of a diagonal is 0.

    >>> import corefw as torch
    >>> torch.cholesky_inverse(torch.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    check_square("cholesky_inverse", input.shape)
    eye = ops.eye(input.shape[-1], dtype=input.dtype, device=input.device)
    factor = input.mH if upper else input
    _refuse_zero_pivots(input)
    inverse = ops.linalg_solve_triangular(factor, eye.expand(input.shape), upper=False)
    return ops.adjoint_matmul(inverse, inverse)


def _refuse_zero_pivots(factor) -> None:
    zeros = all_examples(factor.detach().diagonal(dim1=-2, dim2=-1) == 0).reshape(-1, max(factor.shape[-1], 1))
    if zeros.any():
        matrix, pivot = zeros.nonzero()[0].tolist()
        batch = f"(Batch element {matrix}): " if zeros.shape[0] > 1 or factor.ndim > 2 else ""
        raise LinAlgError(
            f"cholesky_inverse: {batch}The diagonal element {pivot + 1} is zero, the inversion could not be completed "
            "because the input matrix is singular."
        )
