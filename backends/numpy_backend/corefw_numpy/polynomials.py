"""Orthogonal polynomials by their recurrences of three terms."""

#: beyond it the result is NaN
GREATEST_DEGREE = 65536


def _chebyshev(k, x, value, before):
    return 2 * x * value - before


def _hermite_h(k, x, value, before):
    return 2 * (x * value - k * before)


def _hermite_he(k, x, value, before):
    return x * value - k * before


def _laguerre(k, x, value, before):
    return ((2 * k + 1 - x) * value - k * before) / (k + 1)


def _legendre(k, x, value, before):
    return ((2 * k + 1) * x * value - k * before) / (k + 1)


#: by name what the polynomial of degree 1 is, and from those of degrees k and k - 1 that of degree k + 1
_FAMILIES = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, _hermite_h),
    "hermite_polynomial_he": (lambda x: x, _hermite_he),
    "laguerre_polynomial_l": (lambda x: 1 - x, _laguerre),
    "legendre_polynomial_p": (lambda x: x, _legendre),
}


def kernels(xp):
    """Ops that compute."""

    def polynomial(first, following):
        def kernel(input, n):
            dtype = input.dtype
            input, n = xp.broadcast_arrays(input.astype(xp.float64), xp.trunc(n))
            before, value = xp.ones_like(input), first(input)
            result = xp.where(n == 0, before, xp.where(n == 1, value, xp.where(n > GREATEST_DEGREE, xp.nan, 0)))
            for k in range(1, int(n.max(initial=0, where=n <= GREATEST_DEGREE))):
                before, value = value, following(k, input, value, before)
                result = xp.where(n == k + 1, value, result)
            return result.astype(dtype)

        return kernel

    def shifted(kernel):
        return lambda input, n: kernel(2 * input.astype(xp.float64) - 1, n).astype(input.dtype)

    made = {f"special_{name}": polynomial(*family) for name, family in _FAMILIES.items()}
    chebyshev = [name for name in _FAMILIES if name.startswith("chebyshev")]
    return made | {f"special_shifted_{name}": shifted(made[f"special_{name}"]) for name in chebyshev}


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
