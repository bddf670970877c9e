"""Divergences between distributions of one family."""

import math

from corefw.dispatch.declare import ops
from corefw.distributions.bernoulli import Bernoulli
from corefw.distributions.binomial import Binomial
from corefw.distributions.categorical import Categorical
from corefw.distributions.cauchy import Cauchy
from corefw.distributions.dirichlet import Dirichlet
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.exponential import Exponential
from corefw.distributions.geometric import Geometric
from corefw.distributions.half_normal import HalfNormal
from corefw.distributions.independent import Independent
from corefw.distributions.kl.registry import kl_divergence, register_kl
from corefw.distributions.laplace import Laplace
from corefw.distributions.normal import Normal
from corefw.distributions.one_hot_categorical import OneHotCategorical
from corefw.distributions.poisson import Poisson
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.uniform import Uniform
from corefw.distributions.utils import sum_rightmost


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    ones = p.probs * (ops.softplus(-q.logits) - ops.softplus(-p.logits))
    ones = ops.where(p.probs == 0, 0, ops.where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (ops.softplus(q.logits) - ops.softplus(p.logits))
    return ones + ops.where(p.probs == 1, 0, ops.where(q.probs == 1, math.inf, zeros))


@register_kl(Binomial, Binomial)
def _(p, q):
    n, m = p.total_count, q.total_count
    if bool((n < m).any()):  # the numbers of ways to the same count differ
        values = p.enumerate_support()
        log_prob = p.log_prob(values)
        return (log_prob.exp() * (log_prob - q.log_prob(values))).sum(0)
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return ops.where(n > m, math.inf, n * trial)


@register_kl(Categorical, Categorical)
def _(p, q):
    terms = p.probs * (p.logits - q.logits)
    return ops.where(p.probs == 0, 0, ops.where(q.probs == 0, math.inf, terms)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _(p, q):
    # Chyzak, Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions", 2019
    distance = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    logarithms = p.concentration.digamma() - p.concentration.sum(-1, keepdim=True).digamma()
    differences = ((p.concentration - q.concentration) * logarithms).sum(-1)
    return q._log_normalizer(q.concentration) - p._log_normalizer(p.concentration) + differences


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}: the cross KL-divergence between "
            "different exponential families cannot be computed using Bregman divergences"
        )
    # the divergence of Bregman of the log-normalizer, from q's parameters to p's
    normalizer, parameters, means = p._normalizer_and_means()
    products = (p._summed((theirs - own) * mean) for own, theirs, mean in zip(parameters, q._natural_params, means))
    return q._log_normalizer(*q._natural_params) - normalizer - sum(products)


@register_kl(Geometric, Geometric)
def _(p, q):
    return -p.entropy() - p.mean * (-q.probs).log1p() - q.probs.log()


@register_kl(HalfNormal, HalfNormal)
def _(p, q):
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: the distributions reinterpret different numbers of batch dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Normal, Normal)
def _(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Poisson, Poisson)
def _(p, q):
    return p.rate.xlogy(p.rate) - p.rate.xlogy(q.rate) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__} with different transforms"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return ops.where((q.low > p.low).logical_or(q.high < p.high), math.inf, result)
