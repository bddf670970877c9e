"""Decompositions of matrices by the namespace's own."""

import numpy

from corefw.errors import LinAlgError

_SINGULAR = "{}: The {} could not be completed because the input matrix is singular."
_INDEFINITE = "linalg.cholesky: The factorization could not be completed because the input is not positive-definite."


def _failing(message: str, function, *arguments):
    """What `function` gives; NumPy's error, which is no RuntimeError, becomes one that says what failed."""
    try:
        return function(*arguments)
    except numpy.linalg.LinAlgError as error:
        if "square" in str(error) or "dimension" in str(error):
            raise  # the shape rule explains
        raise LinAlgError(message) from error


def kernels(xp):
    """Ops that compute."""
    linalg = xp.linalg

    def linalg_inv(A):
        return _failing(_SINGULAR.format("linalg.inv", "inversion"), linalg.inv, A)

    def solve_matrices(A, B):
        if B.ndim < 2:
            raise ValueError("matrices expected")
        return _failing(_SINGULAR.format("linalg.solve", "solution"), linalg.solve, A, B)

    def cholesky_factor(A):
        return _failing(_INDEFINITE, linalg.cholesky, A)

    def qr_factors(A, mode):
        if mode not in ("reduced", "complete", "r"):
            raise ValueError("an unknown mode")
        if mode == "r":
            return xp.empty((0,), A.dtype), linalg.qr(A, "r")
        return linalg.qr(A, mode)

    def linalg_eigh(A, UPLO):
        return _failing("linalg.eigh: The algorithm failed to converge.", linalg.eigh, A, UPLO)

    def linalg_eigvalsh(A, UPLO):
        return _failing("linalg.eigh: The algorithm failed to converge.", linalg.eigvalsh, A, UPLO)

    def svd_factors(A, full_matrices):
        return _failing("linalg.svd: The algorithm failed to converge.", linalg.svd, A, full_matrices)

    def singular_values(A):
        return _failing("linalg.svd: The algorithm failed to converge.", lambda: linalg.svd(A, compute_uv=False))

    return {
        "cholesky_factor": cholesky_factor,
        "linalg_det": linalg.det,
        "linalg_eigh": linalg_eigh,
        "linalg_eigvalsh": linalg_eigvalsh,
        "linalg_inv": linalg_inv,
        "qr_factors": qr_factors,
        "linalg_slogdet": linalg.slogdet,
        "singular_values": singular_values,
        "solve_matrices": solve_matrices,
        "svd_factors": svd_factors,
    }


def movements(xp):
    """Ops that only move elements: none."""
    return {}
