"""The error function, its complement and its inverse in float64, by rational approximations on four intervals of |x|.

The approximations and their coefficients are those of FDLIBM's s_erf.c (Copyright 1993 by Sun Microsystems, Inc.;
"Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is
preserved"). Coefficients stand in ascending order of the power.
"""

import math

_NEAR, _MIDDLE, _FAR = 0.84375, 1.25, 1 / 0.35  # where the intervals meet
_ZERO_BEYOND = 28.0  # erfc underflows to 0
_ERF_OF_ONE = 8.45062911510467529297e-01  # rounded to single precision

# |x| < 0.84375: erf(x) = x + x * P(x**2) / Q(x**2)
_NEAR_P = (
    *(1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02),
    *(-5.77027029648944159157e-03, -2.37630166566501626084e-05),
)
_NEAR_Q = (
    *(1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03),
    *(1.32494738004321644526e-04, -3.96022827877536812320e-06),
)
# 0.84375 <= x < 1.25: erf(x) = _ERF_OF_ONE + P(x - 1) / Q(x - 1)
_MIDDLE_P = (
    *(-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01, 3.18346619901161753674e-01),
    *(-1.10894694282396677476e-01, 3.54783043256182359371e-02, -2.16637559486879084300e-03),
)
_MIDDLE_Q = (
    *(1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02),
    *(1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)
# 1.25 <= x < 1 / 0.35: erfc(x) = exp(-x**2 - 0.5625 + P(1 / x**2) / Q(1 / x**2)) / x
_FAR_P = (
    *(-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01, -6.23753324503260060396e01),
    *(-1.62396669462573470355e02, -1.84605092906711035994e02, -8.12874355063065934246e01, -9.81432934416914548592e00),
)
_FAR_Q = (
    *(1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02, 6.45387271733267880336e02),
    *(4.29008140027567833386e02, 1.08635005541779435134e02, 6.57024977031928170135e00, -6.04244152148580987438e-02),
)
# 1 / 0.35 <= x < 28: the same form
_FARTHER_P = (
    *(-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01, -1.60636384855821916062e02),
    *(-6.37566443368389627722e02, -1.02509513161107724954e03, -4.83519191608651397019e02),
)
_FARTHER_Q = (
    *(1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03),
    *(3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02, -2.24409524465858183362e01),
)


def _polynomial(coefficients, x):
    """Horner's rule."""
    value = coefficients[-1] * x
    for coefficient in coefficients[-2:0:-1]:
        value = (value + coefficient) * x
    return value + coefficients[0]


def _ratio(numerator, denominator, x):
    return _polynomial(numerator, x) / _polynomial(denominator, x)


def _tail(xp, numerator, denominator, x):
    """erfc(x) for x >= 1.25; x is split so that the square of its coarse part is exact."""
    coarse = x.astype(xp.float32).astype(xp.float64)
    ratio = _ratio(numerator, denominator, 1 / (x * x))
    return xp.exp(-coarse * coarse - 0.5625) * xp.exp((coarse - x) * (coarse + x) + ratio) / x


def _by_interval(xp, x, near, middle, far):
    """A function of x, given on the intervals: `near` of (x, erf(x) - x), `middle` of (x, erf(|x|) - _ERF_OF_ONE),
    `far` of (x, erfc(|x|))."""
    shape = x.shape
    x = x.reshape(-1)
    size = xp.absolute(x)
    result = xp.empty_like(x)

    def on(where, function):
        if where.any():
            result[where] = function(x[where], size[where])

    on(~(size >= _NEAR), lambda x, size: near(x, x * _ratio(_NEAR_P, _NEAR_Q, x * x)))  # NaN is here too
    on((size >= _NEAR) & (size < _MIDDLE), lambda x, size: middle(x, _ratio(_MIDDLE_P, _MIDDLE_Q, size - 1)))
    on((size >= _MIDDLE) & (size < _FAR), lambda x, size: far(x, _tail(xp, _FAR_P, _FAR_Q, size)))
    on((size >= _FAR) & (size < _ZERO_BEYOND), lambda x, size: far(x, _tail(xp, _FARTHER_P, _FARTHER_Q, size)))
    on(size >= _ZERO_BEYOND, lambda x, size: far(x, xp.zeros_like(size)))
    return result.reshape(shape)


def erf(xp, x):
    """The error function of a float64 array."""
    return _by_interval(
        xp,
        x,
        lambda x, rest: x + rest,
        lambda x, rest: xp.copysign(_ERF_OF_ONE + rest, x),
        lambda x, tail: xp.copysign(1 - tail, x),
    )


def erfc(xp, x):
    """The complement of the error function of a float64 array."""
    return _by_interval(
        xp,
        x,
        lambda x, rest: xp.where(x < 0.25, 1 - (x + rest), 0.5 - ((x - 0.5) + rest)),
        lambda x, rest: xp.where(x >= 0, (1 - _ERF_OF_ONE) - rest, 1 + (_ERF_OF_ONE + rest)),
        lambda x, tail: xp.where(x >= 0, tail, 2 - tail),
    )


def erfcx(xp, x):
    """``exp(x**2) * erfc(x)`` of a float64 array."""
    square = x * x
    middle = xp.clip(x, _MIDDLE, 100)
    inverse = 1 / (middle * middle)
    ratio = xp.where(middle < _FAR, _ratio(_FAR_P, _FAR_Q, inverse), _ratio(_FARTHER_P, _FARTHER_Q, inverse))
    small = 1 / (2 * xp.maximum(square, 1))
    series = (1 - small * (1 - 3 * small * (1 - 5 * small * (1 - 7 * small)))) / (x * math.sqrt(math.pi))  # asymptotic
    near = xp.exp(square) * erfc(xp, x)
    return xp.where(x < _MIDDLE, near, xp.where(x < _ZERO_BEYOND, xp.exp(ratio - 0.5625) / middle, series))


# A first approximation of the inverse: y * P(y**2) / Q(y**2) for |y| <= 0.7, else P(z) / Q(z) with
# z = sqrt(-log((1 - |y|) / 2)); two steps of Newton's method follow.
_INVERSE_NEAR_P = (0.886226899, -1.645349621, 0.914624893, -0.140543331)
_INVERSE_NEAR_Q = (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801)
_INVERSE_FAR_P = (-1.970840454, -1.624906493, 3.429567803, 1.641345311)
_INVERSE_FAR_Q = (1.0, 3.543889200, 1.637067800)


def erfinv(xp, y):
    """The inverse of the error function of a float64 array."""
    size = xp.absolute(y)
    z = xp.sqrt(-xp.log((1 - xp.minimum(size, 1 - 2.0**-53)) / 2))
    near = size * _ratio(_INVERSE_NEAR_P, _INVERSE_NEAR_Q, size * size)
    x = xp.where(size <= 0.7, near, _ratio(_INVERSE_FAR_P, _INVERSE_FAR_Q, z))
    for _ in range(2):
        excess = xp.where(size <= 0.7, erf(xp, x) - size, (1 - size) - erfc(xp, x))
        x = x - excess * xp.exp(x * x) * (math.sqrt(math.pi) / 2)
    x = xp.where(size == 1, math.inf, xp.where(size <= 1, x, math.nan))
    return xp.copysign(x, y)
