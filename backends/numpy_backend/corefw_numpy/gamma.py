"""The gamma function's relatives, by SciPy."""

from corefw_numpy.scipy_functions import by_scipy


def kernels(xp):
    """Ops that compute."""
    log_gamma = by_scipy(xp, "lgamma", "gammaln")
    zeta_by_scipy = by_scipy(xp, "special_zeta", "zeta")

    def lgamma(input):
        return log_gamma(xp.where(input == -xp.inf, xp.inf, input))  # where SciPy's is -inf

    def zeta_right(input, other):
        """SciPy's is NaN for an infinite exponent, of which the first term is left."""
        terms = xp.where(other > 1, 0, xp.where(other == 1, 1, xp.where(other >= 0, xp.inf, xp.nan)))
        return xp.where(input == xp.inf, terms, zeta_by_scipy(input, other)).astype(input.dtype)

    def zeta(input, other):
        """SciPy's for positive `other`; the terms on both sides of 0 are two such sums."""
        input, other = xp.broadcast_arrays(input, other)
        if not (other < 0).any():
            return zeta_right(input, other)
        above, below = other - xp.floor(other), xp.ceil(other) - other
        left = zeta_right(input, below) - zeta_right(input, 1 - other)
        both = zeta_right(input, above) + xp.where(input % 2 == 0, left, -left)
        regular = xp.where((above == 0) | (input == xp.inf), xp.inf, xp.where(input == xp.floor(input), both, xp.nan))
        negative = (other < 0) & (input > 1)
        return xp.where(negative, regular, zeta_right(input, xp.where(negative, 1, other))).astype(input.dtype)

    return {
        "lgamma": lgamma,
        "digamma": by_scipy(xp, "digamma", "psi"),
        "special_zeta": zeta,
        "igamma": by_scipy(xp, "igamma", "gammainc"),
        "igammac": by_scipy(xp, "igammac", "gammaincc"),
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
