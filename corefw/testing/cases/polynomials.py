"""Orthogonal polynomials, by their explicit forms in SciPy."""

import numpy as np

from corefw.testing.case import Case, require

special = require("scipy.special")


def degrees(rng, dtype):
    """Points, and degrees from -1 to 5 beside them."""
    points = rng.uniform(-2, 2, (2, 7)).astype(dtype)
    return [([points, np.arange(-1, 6).astype(dtype)], {}), ([points[:, 3], np.array(4).astype(dtype)], {})]


def row(op, reference):
    """The row of a polynomial, called with the degree first as in SciPy."""

    def defined(x, n):
        return np.where(n < 0, 0, reference(n.astype(np.int64), x))

    alone = {"gradient": False, "special": False}  # no degree is infinite
    return Case(f"special_{op}", defined, make=degrees, dtypes=("float32", "float64"), rtol=1e-11, **alone)


def kind_v(n, x):
    """The Chebyshev polynomial of the third kind, DLMF 18.7.5."""
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(n - 1, x), 0)


def kind_w(n, x):
    """That of the fourth kind."""
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(n - 1, x), 0)


def shifted(reference):
    return lambda n, x: reference(n, 2 * x - 1)


KINDS = {"t": special.eval_chebyt, "u": special.eval_chebyu, "v": kind_v, "w": kind_w}

CASES = (
    *(row(f"chebyshev_polynomial_{kind}", reference) for kind, reference in KINDS.items()),
    *(row(f"shifted_chebyshev_polynomial_{kind}", shifted(reference)) for kind, reference in KINDS.items()),
    row("hermite_polynomial_h", special.eval_hermite),
    row("hermite_polynomial_he", special.eval_hermitenorm),
    row("laguerre_polynomial_l", special.eval_laguerre),
    row("legendre_polynomial_p", special.eval_legendre),
)
