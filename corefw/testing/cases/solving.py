"""Inverses, solutions and determinants of matrices."""

import numpy as np

from corefw.testing.cases.decomposition import SHAPES, TALL, adjoint, definite, elements, regular, row


def solve(A, B, left=True):
    inverse = np.linalg.inv(A)
    if B.ndim == A.ndim - 1:
        return (inverse @ B[..., None])[..., 0]
    return inverse @ B if left else B @ inverse


def solve_triangular(A, B, upper, left=True, unitriangular=False):
    A = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        A = A - A * np.eye(A.shape[-1]) + np.eye(A.shape[-1])
    return solve(A, B, left)


def slogdet(A):
    d = np.linalg.det(A)
    return d / abs(d), np.log(abs(d))


def logdet(A):
    return np.log(np.linalg.det(A))


def lstsq(A, B):
    X = np.linalg.pinv(A) @ B
    m, n = A.shape[-2:]
    return X, np.empty(0), np.full(A.shape[:-2], min(m, n)), np.empty(0)


B = ((3, 2), (2, 2, 4), (1, 1))


CASES = (
    row("linalg_inv", np.linalg.inv, regular()),
    row("inverse", np.linalg.inv, regular(), torch="linalg.inv"),
    row("solve_matrices", solve, regular(beside=B)),
    row("linalg_solve", solve, regular((*SHAPES, (2, 2, 2)), beside=(*B, (2, 2)))),
    row(
        "linalg_solve_triangular",
        solve_triangular,
        regular(SHAPES, {"upper": True}, {"upper": False, "unitriangular": True}, beside=B),
        wide=False,
        rtol=1e-5,
    ),
    row(
        "cholesky_solve",
        lambda B, L, upper=False: np.linalg.inv(adjoint(L) @ L if upper else L @ adjoint(L)) @ B,
        lambda rng, dtype: [
            (
                [elements(rng, (3, 2), dtype), function(elements(rng, (3, 3), dtype)) + np.eye(3, dtype=dtype) * 2],
                options,
            )
            for function, options in ((np.tril, {}), (np.triu, {"upper": True}))
        ],
        gradient=False,
    ),
    row("linalg_det", np.linalg.det, regular()),
    row("det", np.linalg.det, regular()),
    row("linalg_slogdet", slogdet, regular()),
    row("slogdet", slogdet, regular()),
    row("logdet", logdet, definite(), gradient=False),
    row("linalg_matrix_rank", lambda A, **options: np.linalg.matrix_rank(A), regular(TALL, {}, {"atol": 1e-3})),
    row(
        "pseudoinverse",
        lambda A, *attributes: np.linalg.pinv(A),
        lambda rng, dtype: [([a[0], None, None, False], {}) for a, _ in regular(TALL)(rng, dtype)],
    ),
    row("linalg_pinv", lambda A: np.linalg.pinv(A), regular(TALL)),
    row("pinverse", lambda A: np.linalg.pinv(A), regular(TALL)),
    row(
        "linalg_lstsq", lstsq, regular(((3, 3), (4, 2), (2, 2, 3)), beside=((3, 2), (4, 3), (2, 2, 2))), gradient=False
    ),
    row(
        "linalg_tensorinv",
        lambda A, ind=2: np.linalg.tensorinv(A, ind),
        lambda rng, dtype: [
            ([elements(rng, (4, 4), dtype).reshape(2, 2, 4) + 2 * np.eye(4, dtype=dtype).reshape(2, 2, 4)], {})
        ],
    ),
)
