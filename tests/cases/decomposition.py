"""Decompositions of matrices, and what is computed from them.

Factors are determined up to signs and phases, so rows with gradients of factors are in tests/test_namespaces.py, on
what does not depend on these.
"""

import numpy as np

from corefw.testing import Case

FIELDS = ("float32", "float64", "complex64", "complex128")
SHAPES = ((3, 3), (2, 2, 2), (1, 1))
TALL = (*SHAPES, (4, 2), (2, 2, 3))


def elements(rng, shape, dtype):
    values = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def regular(shapes=SHAPES, *statics, beside=()):
    """Arguments that start with well-conditioned matrices; `beside` gives the shape of a second tensor for each."""

    def make(rng, dtype):
        calls = []
        for i, shape in enumerate(shapes):
            matrix = elements(rng, shape, dtype) + 2 * np.eye(*shape[-2:], dtype=dtype)
            more = [elements(rng, beside[i], dtype)] if beside else []
            calls += [([matrix, *more], options) for options in statics or ({},)]
        return calls

    return make


def definite(*statics):
    """Hermitian positive-definite matrices."""

    def make(rng, dtype):
        calls = []
        for shape in SHAPES:
            a = elements(rng, shape, dtype)
            matrix = a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1], dtype=dtype)
            calls += [([matrix], options) for options in statics or ({},)]
        return calls

    return make


def row(op, reference, make, torch="", **options):
    """A row of an op of `linalg`, or of a private one without a `torch` name."""
    if torch == "" and op.startswith("linalg_"):
        torch = f"linalg.{op.removeprefix('linalg_')}"
    options = {"dtypes": FIELDS, "special": False, "rtol": 1e-6, "atol": 1e-7, **options}
    return Case(op, reference, make=make, torch=torch, **options)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


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


def upper_or_lower(A, upper=False):
    L = np.linalg.cholesky(A)
    return adjoint(L) if upper else L


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False):
    return np.linalg.norm(A, ord, dim, keepdim)


def vector_norm(x, ord=2, dim=None, keepdim=False):
    return np.linalg.vector_norm(x, ord=ord, axis=dim, keepdims=keepdim)


def qr(A, mode="reduced"):
    if mode == "r":
        return np.empty((0,)), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, mode))


def slogdet(A):
    d = np.linalg.det(A)
    return d / abs(d), np.log(abs(d))


def logdet(A):
    return np.log(np.linalg.det(A))


def matrix_power(A, n):
    return np.linalg.matrix_power(A, n)


def matrix_pair(*beside, **options):
    return regular(SHAPES, options, beside=beside)


def lstsq(A, B):
    X = np.linalg.pinv(A) @ B
    m, n = A.shape[-2:]
    return X, np.empty(0), np.full(A.shape[:-2], min(m, n)), np.empty(0)


def chains(rng, dtype):
    shapes = (((2, 3), (3, 4)), ((3,), (3, 2), (2, 4)), ((2, 3), (3, 4), (4, 2), (2,)))
    return [([[elements(rng, s, dtype) for s in chain]], {}) for chain in shapes]


NORMS = tuple({"ord": ord} for ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf))
B = ((3, 2), (2, 2, 4), (1, 1))

CASES = (
    row("linalg_inv", np.linalg.inv, regular()),
    row("inverse", np.linalg.inv, regular(), "linalg.inv"),
    row("solve_matrices", solve, regular(beside=B), torch=None),
    row("linalg_solve", solve, regular((*SHAPES, (2, 2, 2)), beside=(*B, (2, 2)))),
    row(
        "linalg_solve_triangular",
        solve_triangular,
        regular(SHAPES, {"upper": True}, {"upper": False, "unitriangular": True}, beside=B),
        wide=False,
        rtol=1e-5,
    ),
    row("cholesky_factor", np.linalg.cholesky, definite(), gradient=False, torch=None),
    row("linalg_cholesky", upper_or_lower, definite({}, {"upper": True}), gradient=False),
    row("cholesky", upper_or_lower, definite({}, {"upper": True}), gradient=False),
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
        "cholesky_solve",
        gradient=False,
    ),
    row("qr_factors", lambda A, kind: qr(A, kind), regular(TALL, {"kind": "reduced"}), None, second=False),
    row("linalg_qr", qr, regular(TALL, {}), second=False),
    row("qr", lambda A, some=True: qr(A), regular(TALL), "qr", second=False),
    row("linalg_eigh", lambda A, UPLO="L": tuple(np.linalg.eigh(A, UPLO)), definite(), gradient=False, torch=None),
    row(
        "linalg_eigvalsh",
        lambda A, UPLO="L": np.linalg.eigvalsh(A, UPLO),
        definite({}, {"UPLO": "U"}),
        gradient=False,
    ),
    row(
        "svd_factors",
        lambda A, full_matrices: tuple(np.linalg.svd(A, full_matrices)),
        regular(TALL, {"full_matrices": False}),
        gradient=False,
        torch=None,
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
        None,
        gradient=False,
    ),
    row("singular_values", np.linalg.svdvals, regular(TALL), torch=None),
    row("linalg_svdvals", np.linalg.svdvals, regular(TALL)),
    row("linalg_det", np.linalg.det, regular()),
    row("det", np.linalg.det, regular(), "det"),
    row("linalg_slogdet", slogdet, regular()),
    row("slogdet", slogdet, regular(), "slogdet"),
    row("logdet", logdet, definite(), "logdet", gradient=False),
    row("linalg_matrix_rank", lambda A, **options: np.linalg.matrix_rank(A), regular(TALL, {}, {"atol": 1e-3})),
    row(
        "pseudoinverse",
        lambda A, *statics: np.linalg.pinv(A),
        lambda rng, dtype: [([a[0], None, None, False], {}) for a, _ in regular(TALL)(rng, dtype)],
        torch=None,
    ),
    row("linalg_pinv", lambda A: np.linalg.pinv(A), regular(TALL)),
    row("pinverse", lambda A: np.linalg.pinv(A), regular(TALL), "pinverse"),
    row(
        "linalg_lstsq", lstsq, regular(((3, 3), (4, 2), (2, 2, 3)), beside=((3, 2), (4, 3), (2, 2, 2))), gradient=False
    ),
    row(
        "linalg_cond",
        lambda A, p=None: np.linalg.cond(A, p),
        regular(SHAPES, {}, {"p": -2}, {"p": "fro"}, {"p": 1}),
        rtol=1e-5,
    ),
    row("linalg_vector_norm", vector_norm, regular(TALL, {}, {"ord": 1, "dim": -1}, {"ord": 3, "keepdim": True})),
    row("linalg_matrix_norm", matrix_norm, regular(TALL, *NORMS, {"dim": (-1, -2), "keepdim": True, "ord": 1})),
    row(
        "linalg_norm",
        lambda A, ord=None, dim=None: np.linalg.norm(A if dim or ord else A.ravel(), ord, dim),
        regular(((3, 3), (4, 2)), {}, {"dim": 1}, *NORMS),
    ),
    row("linalg_matrix_power", matrix_power, regular(SHAPES, *({"n": n} for n in (1, 5, -2)))),
    row("matrix_power", matrix_power, regular(SHAPES, {"n": 3}), "matrix_power"),
    row("linalg_multi_dot", lambda tensors: np.linalg.multi_dot(tensors), chains),
    row(
        "linalg_cross",
        lambda a, b, dim=-1: np.cross(a, b, axis=dim),
        regular(((3, 3),), {}, {"dim": 0}, beside=((3, 3),)),
    ),
    row(
        "linalg_vecdot",
        lambda a, b, dim=-1: (np.conj(a) * b).sum(dim),
        regular(((3, 3),), {}, {"dim": 0}, beside=((3, 3),)),
    ),
    row("linalg_diagonal", lambda A, offset=0: np.diagonal(A, offset, -2, -1), regular(TALL, {}, {"offset": 1})),
    row(
        "linalg_tensorinv",
        lambda A, ind=2: np.linalg.tensorinv(A, ind),
        lambda rng, dtype: [
            ([elements(rng, (4, 4), dtype).reshape(2, 2, 4) + 2 * np.eye(4, dtype=dtype).reshape(2, 2, 4)], {})
        ],
    ),
)
