"""Kullback-Leibler divergences, in closed form for registered pairs of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

from corefw.dispatch.declare import ops
from corefw.distributions.bernoulli import Bernoulli
from corefw.distributions.categorical import Categorical
from corefw.distributions.distribution import Distribution
from corefw.distributions.exponential import Exponential
from corefw.distributions.independent import Independent
from corefw.distributions.laplace import Laplace
from corefw.distributions.log_normal import LogNormal
from corefw.distributions.normal import Normal
from corefw.distributions.uniform import Uniform
from corefw.distributions.utils import sum_rightmost
from corefw.tensor import Tensor

_FORMULAS: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """Decorate the function that computes `kl_divergence` of these two types and their subclasses."""
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def register(formula: Callable) -> Callable:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence: the expected value of ``p.log_prob(x) - q.log_prob(x)`` for x from `p`.

    The formula is that of the most specific registered pair of classes.

    Raises:
        NotImplementedError: no formula is registered.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for type_p in type(p).__mro__:
        for type_q in type(q).__mro__:
            formula = _FORMULAS.get((type_p, type_q))
            if formula is not None:
                return formula(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    ones = p.probs * (ops.softplus(-q.logits) - ops.softplus(-p.logits))
    ones = ops.where(p.probs == 0, 0, ops.where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (ops.softplus(q.logits) - ops.softplus(p.logits))
    return ones + ops.where(p.probs == 1, 0, ops.where(q.probs == 1, math.inf, zeros))


@register_kl(Categorical, Categorical)
def _(p, q):
    terms = p.probs * (p.logits - q.logits)
    return ops.where(p.probs == 0, 0, ops.where(q.probs == 0, math.inf, terms)).sum(-1)


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Independent, Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: the distributions reinterpret different numbers of batch dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(LogNormal, LogNormal)
def _(p, q):
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Normal, Normal)
def _(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def _(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return ops.where((q.low > p.low).logical_or(q.high < p.high), math.inf, result)
