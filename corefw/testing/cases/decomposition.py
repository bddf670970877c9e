"""Decompositions of matrices.

Factors are determined up to signs and phases, so rows with gradients of factors are in tests/test_namespaces.py, on
what does not depend on these.
"""

import numpy as np

from corefw.testing.case import Case

FIELDS = ("float32", "float64", "complex64", "complex128")

SHAPES = ((3, 3), (2, 2, 2), (1, 1))

TALL = (*SHAPES, (4, 2), (2, 2, 3))


def elements(rng, shape, dtype):
    values = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def regular(shapes=SHAPES, *attributes, beside=()):
    """Arguments that start with well-conditioned matrices; `beside` gives the shape of a second tensor for each."""

    def make(rng, dtype):
        calls = []
        for i, shape in enumerate(shapes):
            matrix = elements(rng, shape, dtype) + 2 * np.eye(*shape[-2:], dtype=dtype)
            more = [elements(rng, beside[i], dtype)] if beside else []
            calls += [([matrix, *more], options) for options in attributes or ({},)]
        return calls

    return make


def definite(*attributes):
    """Hermitian positive-definite matrices."""

    def make(rng, dtype):
        calls = []
        for shape in SHAPES:
            a = elements(rng, shape, dtype)
            matrix = a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1], dtype=dtype)
            calls += [([matrix], options) for options in attributes or ({},)]
        return calls

    return make


def row(op, reference, make, **options):
    """A row of an op on matrices."""
    options = {"dtypes": FIELDS, "special": False, "rtol": 1e-6, "atol": 1e-7, **options}
    return Case(op, reference, make=make, **options)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def upper_or_lower(A, upper=False):
    L = np.linalg.cholesky(A)
    return adjoint(L) if upper else L


def qr(A, mode="reduced"):
    if mode == "r":
        return np.empty((0,)), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, mode))


def eig(A):
    values, vectors = np.linalg.eig(A)
    return values.astype(complex), vectors.astype(complex)


def matrix_pair(*beside, **options):
    return regular(SHAPES, options, beside=beside)


CASES = (
    row("cholesky_factor", np.linalg.cholesky, definite(), gradient=False),
    row("linalg_cholesky", upper_or_lower, definite({}, {"upper": True}), gradient=False),
    row("cholesky", upper_or_lower, definite({}, {"upper": True}), gradient=False),
    row("qr_factors", lambda A, kind: qr(A, kind), regular(TALL, {"kind": "reduced"}), second=False),
    row("linalg_qr", qr, regular(TALL, {}), second=False),
    row("qr", lambda A, some=True: qr(A), regular(TALL), second=False),
    row("linalg_eigh", lambda A, UPLO="L": tuple(np.linalg.eigh(A, UPLO)), definite(), gradient=False, torch=None),
    row(
        "linalg_eigvalsh",
        lambda A, UPLO="L": np.linalg.eigvalsh(A, UPLO),
        definite({}, {"UPLO": "U"}),
        gradient=False,
    ),
    row("linalg_eig", eig, regular(), gradient=False, torch=None),
    row("linalg_eigvals", lambda A: eig(A)[0], regular(), gradient=False, torch=None),
    row(
        "svd_factors",
        lambda A, full_matrices: tuple(np.linalg.svd(A, full_matrices)),
        regular(TALL, {"full_matrices": False}),
        gradient=False,
    ),
    row(
        "linalg_svd",
        lambda A, full_matrices=True: tuple(np.linalg.svd(A, full_matrices)),
        regular(TALL, {}, {"full_matrices": False}),
        gradient=False,
        torch=None,
    ),
    row(
        "svd",
        lambda A: (np.linalg.svd(A, False)[0], np.linalg.svd(A, False)[1], adjoint(np.linalg.svd(A, False)[2])),
        regular(TALL),
        torch=None,
        gradient=False,
    ),
    row("singular_values", np.linalg.svdvals, regular(TALL)),
    row("linalg_svdvals", np.linalg.svdvals, regular(TALL)),
)
