"""Bessel functions; SciPy's are the reference."""

import numpy as np

from corefw.testing.case import Case, require

special = require("scipy.special")


def spherical_j0(a):
    return np.where(np.isinf(a), 0, np.sinc(a / np.pi))


def row(op, reference, **options):
    """The row of an op without a gradient."""
    return Case(op, reference, gradient=False, **{"rtol": 1e-11, "atol": 1e-13, **options})


BOTH, RIGHT = (-12.0, 12.0), (0.1, 12.0)

CASES = (
    Case("i0", special.i0, rtol=1e-11),
    Case("special_i0e", special.i0e, rtol=1e-11),
    Case("special_i1", special.i1, rtol=1e-11),
    Case("special_i1e", special.i1e, rtol=1e-11),
    Case("special_modified_bessel_i0", special.i0, rtol=1e-11),
    Case("special_modified_bessel_i1", special.i1, rtol=1e-11),
    row("special_modified_bessel_k0", special.k0, domain=RIGHT),
    row("special_modified_bessel_k1", special.k1, domain=RIGHT),
    row("special_scaled_modified_bessel_k0", special.k0e, domain=RIGHT),
    row("special_scaled_modified_bessel_k1", special.k1e, domain=RIGHT),
    # PyTorch's are wrong from the ninth digit on beyond 5, and Ai below -2
    row("special_bessel_j0", special.j0, domain=BOTH, torch=None),
    row("special_bessel_j1", special.j1, domain=BOTH, torch=None),
    row("special_bessel_y0", special.y0, domain=RIGHT, torch=None),
    row("special_bessel_y1", special.y1, domain=RIGHT, torch=None),
    Case("special_spherical_bessel_j0", spherical_j0, domain=RIGHT, rtol=1e-11),
    row("special_airy_ai", lambda a: special.airy(a)[0], domain=(-6.0, 6.0), special=False, torch=None),
)
