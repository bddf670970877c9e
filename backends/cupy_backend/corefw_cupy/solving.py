"""Inverses, solutions and determinants by cuSOLVER and cuBLAS."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw.shapes import broadcast
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, REALS, offered
from corefw_cupy.linalg_errors import explained

_SINGULAR = "{}: The {} could not be completed because the input matrix is singular."


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    linalg, copying = cuda.xp.linalg, cuda.copying

    def expanded(matrices, batch):
        """Matrices of a batch of this shape."""
        if matrices.shape[:-2] == batch:
            return matrices
        result = cuda.empty((*batch, *matrices.shape[-2:]), matrices.dtype)
        copying.copy(result, matrices)
        return result

    def linalg_inv(A):
        return explained(_SINGULAR.format("linalg.inv", "inversion"), linalg.inv, A)

    def solve_matrices(A, B):
        if A.ndim < 2 or B.ndim < 2:
            raise ValueError("matrices expected")
        batch = broadcast(A.shape[:-2], B.shape[:-2])
        message = _SINGULAR.format("linalg.solve", "solution")
        return explained(message, linalg.solve, expanded(A, batch), expanded(B, batch))

    def linalg_det(A):
        return linalg.det(A)

    def linalg_slogdet(A):
        return tuple(linalg.slogdet(A))

    made = (linalg_det, linalg_inv, linalg_slogdet, solve_matrices)
    found = [Kernel(kernel.__name__, kernel, offered({**REALS, **COMPLEX})) for kernel in made]
    return cuda.capturing.refused(found, "cuSOLVER and cuBLAS")
