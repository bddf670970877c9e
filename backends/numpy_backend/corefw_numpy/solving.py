"""Inverses, solutions and determinants by the namespace's own."""

from corefw_numpy.linalg_errors import explained

_SINGULAR = "{}: The {} could not be completed because the input matrix is singular."


def kernels(xp):
    """Ops that compute."""
    linalg = xp.linalg

    def linalg_inv(A):
        return explained(_SINGULAR.format("linalg.inv", "inversion"), linalg.inv, A)

    def solve_matrices(A, B):
        if B.ndim < 2:
            raise ValueError("matrices expected")
        return explained(_SINGULAR.format("linalg.solve", "solution"), linalg.solve, A, B)

    return {
        "linalg_det": linalg.det,
        "linalg_inv": linalg_inv,
        "linalg_slogdet": linalg.slogdet,
        "solve_matrices": solve_matrices,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
