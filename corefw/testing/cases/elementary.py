"""Elementary functions."""

import numpy as np

from corefw.testing.case import Case

PAIRS = (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (4,)), ((3,), ()), ((0, 3), (1, 3)))
POSITIVE = (0.1, 3.0)
UNIT = (-0.9, 0.9)


def xlogy(a, b):
    return np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b))


def logit(a, eps=None):
    a = a if eps is None else np.clip(a, eps, 1 - eps)
    return np.log(a / (1 - a))


CASES = (
    Case("sqrt", np.sqrt, domain=POSITIVE),
    Case("rsqrt", lambda a: 1 / np.sqrt(a), domain=POSITIVE),
    Case("hypot", np.hypot, shapes=PAIRS),
    Case("exp", np.exp),
    Case("exp2", np.exp2),
    Case("expm1", np.expm1),
    Case("log", np.log, domain=POSITIVE),
    Case("log2", np.log2, domain=POSITIVE),
    Case("log10", np.log10, domain=POSITIVE),
    Case("log1p", np.log1p, domain=(-0.9, 3.0)),
    Case("logaddexp", lambda a, b: np.log(np.exp(a) + np.exp(b)), shapes=PAIRS, domain=(-1, 1), special=False),
    Case("logaddexp2", np.logaddexp2, shapes=PAIRS),
    Case("xlogy", xlogy, shapes=PAIRS, domain=POSITIVE),
    Case("sigmoid", lambda a: 1 / (1 + np.exp(-a))),
    Case("sigmoid_backward", lambda g, out: g * np.conj((1 - out) * out), shapes=PAIRS),
    Case("tanh_backward", lambda g, out: g * np.conj(1 - out * out), shapes=PAIRS),
    Case("logit", logit, domain=(0.1, 0.9), attributes=({}, {"eps": 0.01}), special=False),
    Case("sin", np.sin),
    Case("cos", np.cos),
    Case("tan", np.tan, domain=(-1.4, 1.4)),
    Case("asin", np.arcsin, domain=UNIT),
    Case("acos", np.arccos, domain=UNIT),
    Case("atan", np.arctan, domain=UNIT),
    Case("atan2", np.arctan2, shapes=PAIRS),
    Case("sinc", np.sinc, domain=(0.2, 3.0)),
    Case("deg2rad", np.deg2rad),
    Case("rad2deg", np.rad2deg),
    Case("sinh", np.sinh),
    Case("cosh", np.cosh),
    Case("tanh", np.tanh),
    Case("asinh", np.arcsinh, domain=UNIT),
    Case("acosh", np.arccosh, domain=(1.1, 3.0)),
    Case("atanh", np.arctanh, domain=UNIT),
)
