"""Decompositions of matrices by the namespace's own."""

from corefw.errors import LinAlgError
from corefw_numpy.linalg_errors import explained

_INDEFINITE = "linalg.cholesky: The factorization could not be completed because the input is not positive-definite."


def kernels(xp):
    """Ops that compute."""
    linalg = xp.linalg

    def cholesky_factor(A):
        return explained(_INDEFINITE, linalg.cholesky, A)

    def qr_factors(A, mode):
        if mode not in ("reduced", "complete", "r"):
            raise ValueError("an unknown mode")
        if mode == "r":
            return xp.empty((0,), A.dtype), linalg.qr(A, "r")
        return linalg.qr(A, mode)

    def linalg_eigh(A, UPLO):
        return explained("linalg.eigh: The algorithm failed to converge.", linalg.eigh, A, UPLO)

    def linalg_eigvalsh(A, UPLO):
        return explained("linalg.eigh: The algorithm failed to converge.", linalg.eigvalsh, A, UPLO)

    def linalg_eig(A):
        if not xp.isfinite(A).all():
            raise LinAlgError("linalg.eig: input tensor should not contain infs or NaNs.")
        values, vectors = explained("linalg.eig: The algorithm failed to converge.", linalg.eig, A)
        found = xp.result_type(A.dtype, xp.complex64)
        return values.astype(found), vectors.astype(found)

    def svd_factors(A, full_matrices):
        if not xp.isfinite(A).all():  # LAPACK may never come back from an infinity
            raise LinAlgError(
                "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
            )
        return explained("linalg.svd: The algorithm failed to converge.", linalg.svd, A, full_matrices)

    def singular_values(A):
        return explained("linalg.svd: The algorithm failed to converge.", lambda: linalg.svd(A, compute_uv=False))

    return {
        "cholesky_factor": cholesky_factor,
        "linalg_eig": linalg_eig,
        "linalg_eigh": linalg_eigh,
        "linalg_eigvalsh": linalg_eigvalsh,
        "qr_factors": qr_factors,
        "singular_values": singular_values,
        "svd_factors": svd_factors,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
