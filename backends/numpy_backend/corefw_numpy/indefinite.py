"""Decompositions of symmetric and Hermitian matrices by LAPACK, which SciPy brings; without it the ops' bodies run."""

from importlib.util import find_spec

import numpy as np

#: columns that LAPACK eliminates before the others follow
_BLOCK = 64


def _function(name: str, dtype, hermitian: bool):
    from scipy.linalg import lapack

    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char]
    return getattr(lapack, f"{letter}{'he' if hermitian and letter in 'cz' else 'sy'}{name}")


def kernels(xp):
    """Ops that compute."""
    if find_spec("scipy") is None:
        return {}

    def ldl_factors(A, hermitian):
        A = np.asarray(A)
        if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
            raise ValueError("square matrices expected")
        factorize = _function("trf", A.dtype, hermitian)
        LD, pivots, info = np.zeros_like(A), np.zeros(A.shape[:-1], np.int32), np.zeros(A.shape[:-2], np.int32)
        for at in np.ndindex(A.shape[:-2] if A.size else (0,)):
            made, pivots[at], info[at] = factorize(A[at], lower=1, lwork=_BLOCK * A.shape[-1])
            LD[at] = np.tril(made)
        return xp.asarray(LD), xp.asarray(pivots), xp.asarray(info)

    def ldl_solution(LD, pivots, B, hermitian):
        LD, pivots, B = np.asarray(LD), np.asarray(pivots, np.int32), np.asarray(B)
        if (
            LD.ndim < 2
            or pivots.shape != LD.shape[:-1]
            or B.ndim < 2
            or not LD.shape[-2] == LD.shape[-1] == B.shape[-2]
        ):
            raise ValueError("square matrices, their pivots and right-hand sides expected")
        solve, n = _function("trs", LD.dtype, hermitian), LD.shape[-1]
        batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
        LD, pivots = np.broadcast_to(LD, (*batch, n, n)), np.broadcast_to(pivots, (*batch, n))
        X = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])))
        for at in np.ndindex(batch if X.size else (0,)):
            X[at] = solve(LD[at], pivots[at], X[at], lower=1)[0]
        return xp.asarray(X)

    return {"ldl_factors": ldl_factors, "ldl_solution": ldl_solution}


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
