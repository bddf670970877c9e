"""Integrals over the tail of a gamma or beta distribution, which give probabilities and implicit gradients.

Both distributions have a density of the logarithm, or of the log-odds, that is log-concave: seen from a value x in the
direction away from the mean it falls at once, and the tail beyond x is the density at x times the integral of
``exp(exponent(s))`` for a concave exponent with ``exponent(0) = 0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corefw.dispatch.declare import ops
from corefw.tensor import Tensor

#: where an exponent is below minus this, the integrand is zero to float64
_END = 42.0
_STEP = 0.13


def _tanh_sinh_rule() -> tuple[list[float], list[float]]:
    """Nodes in (0, 1) and weights of the double exponential formula (Takahasi and Mori, 1974)."""
    places = [k * _STEP for k in range(-24, 25)]
    inner = [math.pi / 2 * math.sinh(place) for place in places]
    nodes = [1 / (1 + math.exp(-2 * u)) for u in inner]
    weights = [_STEP * math.pi / 4 * math.cosh(place) / math.cosh(u) ** 2 for place, u in zip(places, inner)]
    return nodes, weights


_NODES, _WEIGHTS = _tanh_sinh_rule()
#: as many nodes are taken at once as give no more numbers than this, but for large inputs
_AT_ONCE = 1 << 16


def _integral(exponent: Callable, slope: Callable, start: Tensor, factor: Callable) -> Tensor:
    """The integral of ``exp(exponent(s)) * factor(s)`` over positive s; the exponent has ended at `start`.

    Newton's method for the end comes from the right, since the exponent is concave.
    """
    end = start
    for _ in range(8):
        end = end - (exponent(end) + _END) / slope(end)
    total: Any = 0.0
    ones = (1,) * end.ndim
    count = max(1, _AT_ONCE // max(1, end.numel()))
    for i in range(0, len(_NODES), count):
        nodes, weights = (end.new_tensor(v[i : i + count]).reshape((-1, *ones)) for v in (_NODES, _WEIGHTS))
        s = end * nodes
        total = total + (exponent(s).exp() * factor(s) * weights).sum(0)
    return total * end


def gamma_tail(a: Tensor, x: Tensor, factor: Callable) -> Tensor:
    """The integral of ``(t / x) ** a * exp(x - t) * factor(log t, sign)`` by ``log t``, from x away from the mean.

    Args:
        a: the concentration.
        x: positive; `sign` is 1 above the mean a, and -1 below.
        factor: a function of the logarithm of t and of the sign.
    """
    above = x > a
    sign = ops.where(above, 1.0, -1.0).to(x.dtype)
    log_x = x.log()
    # below, the exponent is at most x - a * s; above at most -x * s² / 2, and for small x the exponential ends it
    far = ops.where(x < 1, (2 * _END / x).log1p(), (2 * _END / x).sqrt())
    start = ops.where(above, far, (_END + x) / a)
    return _integral(
        lambda s: a * (sign * s) - x * (sign * s).expm1(),
        lambda s: sign * (a - x * (sign * s).exp()),
        start,
        lambda s: factor(log_x + sign * s, sign),
    )


def beta_tail(a: Tensor, b: Tensor, log_x: Tensor, log_rest: Tensor, factor: Callable) -> Tensor:
    """The integral of ``(t / x) ** a * ((1 - t) / (1 - x)) ** b * factor(log t, sign)`` by the log-odds of t, from x
    away from the mean.

    Args:
        a, b: the concentrations.
        log_x, log_rest: the logarithms of x and of 1 - x; `sign` is 1 above the mean a / (a + b), and -1 below.
        factor: a function of the logarithm of t and of the sign.
    """
    above = log_x.exp() > a / (a + b)
    sign = ops.where(above, 1.0, -1.0).to(a.dtype)
    odds = log_x - log_rest

    def exponent(s):
        moved = odds + sign * s
        return a * (ops.logsigmoid(moved) - log_x) + b * (ops.logsigmoid(-moved) - log_rest)

    # below, 1 - t is at most 1, and t at most x / (1 - x) * exp(-s); above the other way round
    near, other = ops.where(above, b, a), ops.where(above, log_x, log_rest)
    return _integral(
        exponent,
        lambda s: sign * (a - (a + b) * (odds + sign * s).sigmoid()),
        (_END - (a + b) * other) / near,
        lambda s: factor(ops.logsigmoid(odds + sign * s), sign),
    )
