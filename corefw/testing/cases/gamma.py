"""The gamma function's relatives; SciPy's are the reference."""

import numpy as np

from corefw.testing.case import Case, require
from corefw.testing.cases.elementary import PAIRS

special = require("scipy.special")


def zeta(s, q):
    return special.zeta(*np.broadcast_arrays(s, q))


def log_gamma(a):
    return np.where(a == -np.inf, np.inf, special.gammaln(a))


def polygamma(a, n):
    return special.polygamma(n, a)


def multigammaln(a, p):
    return special.multigammaln(a, p)


def orders(rng, dtype):
    """An order, and points beside it."""
    return [([], {"n": n, "input": rng.uniform(0.5, 6, (2, 3)).astype(dtype)}) for n in (0, 2)]


ORDERS = tuple({"n": n} for n in (0, 1, 4))
DIMENSIONS = tuple({"p": p} for p in (1, 3))
RIGHT = (0.2, 6.0)

CASES = (
    Case("lgamma", log_gamma, domain=RIGHT, rtol=1e-11),
    # PyTorch's polygamma of order 1, digamma's gradient, is finite at the negative integers
    Case("digamma", special.psi, domain=RIGHT, rtol=1e-11, torch=None),
    Case("polygamma", polygamma, attributes=ORDERS, domain=(0.5, 6.0), special=False, torch=None),
    Case("special_polygamma", lambda n, input: special.polygamma(n, input), make=orders, dtypes=("float32", "float64")),
    # and its mvlgamma sums before it multiplies by an infinite gradient
    Case("mvlgamma", multigammaln, attributes=DIMENSIONS, domain=(1.5, 6.0), special=False, torch=None),
    # without the gradients, which only one of the inputs has
    Case("special_zeta", zeta, shapes=PAIRS, domain=(1.2, 6.0), gradient=False, rtol=1e-11, special=False),
    Case("igamma", special.gammainc, shapes=PAIRS, domain=RIGHT, gradient=False, rtol=1e-11, special=False),
    Case("igammac", special.gammaincc, shapes=PAIRS, domain=RIGHT, gradient=False, rtol=1e-11, special=False),
)
