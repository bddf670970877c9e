"""The error function and its relatives."""

import math
from statistics import NormalDist

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.elementary import UNIT


def _erfcx(x: float) -> float:
    """exp(x^2) erfc(x); of large numbers, where one factor overflows, the first terms of its series."""
    if x < -26:
        return math.inf
    if x < 20:
        return math.exp(x * x) * math.erfc(x)
    return (1 - 1 / (2 * x * x)) / (x * math.sqrt(math.pi))


def _erfinv(y: float) -> float:
    """A quantile of the normal distribution, and a step of Newton's method."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    x = NormalDist().inv_cdf((y + 1) / 2) / math.sqrt(2)
    return math.copysign(x - (math.erf(x) - y) * math.sqrt(math.pi) / 2 * math.exp(x * x), y)


def elementwise(function):
    """A function of a number as one of arrays."""
    return np.vectorize(function, otypes=[float])


CASES = (
    Case("erf", elementwise(math.erf)),
    Case("erfc", elementwise(math.erfc), rtol=1e-13, atol=1e-13),
    Case("special_erfcx", elementwise(_erfcx), rtol=1e-12),
    Case("erfinv", elementwise(_erfinv), domain=UNIT, rtol=1e-12),
    Case("special_ndtr", elementwise(lambda x: math.erfc(-x / math.sqrt(2)) / 2), rtol=1e-12),
)
