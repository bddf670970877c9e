"""Decompositions of matrices by cuSOLVER."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, REALS, offered
from corefw_cupy.linalg_errors import explained

_INDEFINITE = "linalg.cholesky: The factorization could not be completed because the input is not positive-definite."
_EIGENVALUES = "linalg.eigh: The algorithm failed to converge."
_SINGULAR_VALUES = "linalg.svd: The algorithm failed to converge."


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    linalg = cuda.xp.linalg

    def cholesky_factor(A):
        return explained(_INDEFINITE, linalg.cholesky, A)

    def qr_factors(A, mode):
        if mode not in ("reduced", "complete", "r"):
            raise ValueError("an unknown mode")
        if mode == "r":
            return cuda.empty((0,), A.dtype), linalg.qr(A, "r")
        return tuple(linalg.qr(A, mode))

    def linalg_eig(A):
        values, vectors = explained("linalg.eig: The algorithm failed to converge.", linalg.eig, A)
        found = np.result_type(A.dtype, np.complex64)
        return cuda.copying.cast(values, found), cuda.copying.cast(vectors, found)

    def linalg_eigh(A, UPLO):
        return tuple(explained(_EIGENVALUES, linalg.eigh, A, UPLO.upper()))

    def linalg_eigvalsh(A, UPLO):
        return explained(_EIGENVALUES, linalg.eigvalsh, A, UPLO.upper())

    def svd_factors(A, full_matrices):
        return tuple(explained(_SINGULAR_VALUES, linalg.svd, A, full_matrices))

    def singular_values(A):
        return explained(_SINGULAR_VALUES, linalg.svd, A, False, False)

    made = (cholesky_factor, linalg_eig, linalg_eigh, linalg_eigvalsh, qr_factors, singular_values, svd_factors)
    found = [Kernel(kernel.__name__, kernel, offered({**REALS, **COMPLEX})) for kernel in made]
    return cuda.capturing.refused(found, "cuSOLVER")
