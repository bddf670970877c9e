"""Functions of matrices."""

import numpy as np

from corefw.testing.cases.decomposition import adjoint, definite, elements, regular, row


def exponential(A):
    """By the eigenvectors, which regular matrices at random have."""
    values, vectors = np.linalg.eig(A)
    result = vectors * np.exp(values)[..., None, :] @ np.linalg.inv(vectors)
    return result if np.iscomplexobj(A) else result.real


def tensors(rng, dtype):
    eye = 2 * np.eye(6, dtype=dtype).reshape(2, 3, 6)
    first = [elements(rng, (2, 3, 6), dtype) + eye, elements(rng, (2, 3), dtype)]
    moved = [np.moveaxis(elements(rng, (2, 3, 6), dtype) + eye, 2, 0), elements(rng, (2, 3), dtype)]
    return [(first, {}), (moved, {"dims": (0,)})]


def tensorsolve(A, B, dims=None):
    A = A if dims is None else np.moveaxis(A, dims, range(A.ndim - len(dims), A.ndim))
    return np.linalg.solve(A.reshape(6, 6), B.reshape(6, 1)).reshape(6)


def factors(rng, dtype):
    """Cholesky factors, and their adjoints."""
    lower = [np.linalg.cholesky(A).astype(dtype) for (A,), _ in definite()(rng, dtype)]
    return [([L], {}) for L in lower] + [([adjoint(L)], {"upper": True}) for L in lower]


def inverse_of_product(L, upper=False):
    return np.linalg.inv(adjoint(L) @ L if upper else L @ adjoint(L))


CASES = (
    row("linalg_matrix_exp", exponential, regular(), second=False, meta=False),
    row("linalg_tensorsolve", tensorsolve, tensors),
    row("cholesky_inverse", inverse_of_product, factors, gradient=False),
)
