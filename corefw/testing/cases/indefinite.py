"""Decompositions of matrices that may be indefinite: the reference is LAPACK's, and NumPy's solution."""

import numpy as np

from corefw.testing.case import require
from corefw.testing.cases.decomposition import adjoint, elements, row
from corefw.testing.cases.elimination import over_batch

lapack = require("scipy.linalg.lapack")
SHAPES = ((4, 4), (2, 3, 3), (1, 1))


@over_batch
def compact(A, hermitian=False):
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[A.dtype.char]
    name = f"{letter}{'he' if hermitian and letter in 'cz' else 'sy'}trf"
    LD, pivots, info = getattr(lapack, name)(A, lower=1)
    return np.tril(LD), pivots.astype(np.int32), np.int32(info)


def whole(A, hermitian=False):
    """The matrix of a lower triangle, whatever stands above."""
    below = np.tril(A, -1)
    if not hermitian:
        return np.tril(A) + np.swapaxes(below, -1, -2)
    return below + adjoint(below) + np.real(np.tril(np.triu(A)))


def matrices(rng, dtype):
    """Matrices with small diagonals, so that some steps take two rows."""
    calls = []
    for shape in SHAPES:
        A = elements(rng, shape, dtype)
        calls += [([A * (1 - 0.9 * np.eye(shape[-1], dtype=dtype))], {"hermitian": option}) for option in (False, True)]
    return calls


def systems(rng, dtype):
    calls = []
    for [A], options in matrices(rng, dtype):
        LD, pivots, _ = compact(A, **options)
        calls.append(([LD, pivots, elements(rng, (*A.shape[:-1], 2), dtype)], options))
    return calls


def back(LD, pivots, B, hermitian=False):
    """The solution by the matrix that a compact form means."""

    @over_batch
    def matrix(LD, pivots):
        n, k = len(LD), 0
        A, steps = np.zeros_like(LD), []
        while k < n:
            rows = 1 if pivots[k] > 0 else 2
            steps.append((k, k + rows, abs(pivots[k]) - 1))
            k += rows
        for k, rest, at in reversed(steps):
            D, L = whole(LD[k:rest, k:rest], hermitian), LD[rest:, k:rest]
            turned = adjoint(L) if hermitian else L.T
            A[rest:, rest:] += L @ D @ turned
            A[k:rest, k:rest], A[rest:, k:rest], A[k:rest, rest:] = D, L @ D, D @ turned
            A[[rest - 1, at]] = A[[at, rest - 1]]
            A[:, [rest - 1, at]] = A[:, [at, rest - 1]]
        return A

    return np.linalg.solve(matrix(LD, pivots), B)


CASES = (
    row("ldl_factors", compact, matrices, gradient=False, torch=None),
    row("linalg_ldl_factor_ex", compact, matrices, gradient=False),
    row("linalg_ldl_factor", lambda *a, **k: compact(*a, **k)[:2], matrices, gradient=False, meta=False),
    row("ldl_solution", back, systems, gradient=False, torch=None),
    row("linalg_ldl_solve", back, systems, gradient=False, meta=False),
)
