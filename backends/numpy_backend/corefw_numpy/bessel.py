"""Bessel functions and the Airy function, by SciPy."""

from corefw_numpy.scipy_functions import by_scipy, special

#: by op what SciPy calls it
_NAMES = {
    "i0": "i0",
    "special_i0e": "i0e",
    "special_i1": "i1",
    "special_i1e": "i1e",
    "special_bessel_j0": "j0",
    "special_bessel_j1": "j1",
    "special_bessel_y0": "y0",
    "special_bessel_y1": "y1",
    "special_modified_bessel_k0": "k0",
    "special_modified_bessel_k1": "k1",
    "special_scaled_modified_bessel_k0": "k0e",
    "special_scaled_modified_bessel_k1": "k1e",
}


def kernels(xp):
    """Ops that compute."""

    def airy_ai(input):
        values = xp.asarray(special("special_airy_ai").airy(input.astype(xp.float64))[0])
        return xp.where(input == xp.inf, 0, values).astype(input.dtype)  # where SciPy's is NaN

    return {op: by_scipy(xp, op, name) for op, name in _NAMES.items()} | {"special_airy_ai": airy_ai}


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
