"""Norms of vectors and matrices, distances and condition numbers."""

from math import inf

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.decomposition import SHAPES, TALL, regular, row
from corefw.testing.cases.reduction import FULL, fits


def _vector_norm(a, ord, dim=None, keepdim=False):
    axis = dim if a.ndim and dim != () else None
    modulus = np.abs(a)
    if ord == 0:
        return np.sum(modulus != 0, axis, keepdims=keepdim)
    if ord == inf:
        return np.max(modulus, axis, keepdims=keepdim)
    if ord == -inf:
        return np.min(modulus, axis, keepdims=keepdim)
    return np.sum(modulus**ord, axis, keepdims=keepdim) ** (1 / ord)


def _norm(a, p="fro", dim=None, keepdim=False):
    return _vector_norm(a, 2 if p in (None, "fro") else p, dim, keepdim)


_ORDERS = tuple({"ord": p} for p in (2, 1, 3, 1.5, 0.5, -1, 0, inf, -inf))
_ORDERS += ({"ord": 2, "dim": 0}, {"ord": 3, "dim": (0, -1), "keepdim": True}, {"ord": inf, "dim": -1})


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False):
    return np.linalg.norm(A, ord, dim, keepdim)


def vector_norm(x, ord=2, dim=None, keepdim=False):
    return np.linalg.vector_norm(x, ord=ord, axis=dim, keepdims=keepdim)


def _renorm(a, p, dim, maxnorm):
    slices = np.moveaxis(a, dim, 0)
    factors = [min(1, maxnorm / max(_vector_norm(part, p), 1e-30)) if part.size else 1 for part in slices]
    return a * np.reshape(factors, [-1 if d == dim % a.ndim else 1 for d in range(a.ndim)])


NORMS = tuple({"ord": ord} for ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf))


CASES = (
    Case("vector_norm", _vector_norm, FULL, _ORDERS, valid=fits, torch="linalg.vector_norm"),
    Case(
        "norm",
        _norm,
        FULL,
        ({}, {"p": 1}, {"p": inf, "dim": 0}, {"p": None, "dim": (0, -1), "keepdim": True}),
        valid=fits,
    ),
    Case(
        "renorm",
        _renorm,
        (((3, 4),), ((2, 3, 2),), ((0, 3),)),
        ({"p": 2, "dim": 0, "maxnorm": 2.0}, {"p": 1, "dim": -1, "maxnorm": 3.0}, {"p": inf, "dim": 1, "maxnorm": 1}),
        special=False,
        valid=lambda shape, p, **attributes: shape[0] > 0 or p != inf,
        rtol=1e-6,
    ),
    Case("dist", lambda a, b, p=2: _vector_norm(a - b, p), (((2, 3), (3,)), ((), ())), ({}, {"p": 1}, {"p": 3})),
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
)
