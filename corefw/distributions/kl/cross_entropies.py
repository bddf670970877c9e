"""Divergences between families: the expected value of ``-log q(x)``, less the entropy of p.

For each family of q that value is a formula in a few expected values under p, which are given for each family of p.
"""

import math

from corefw.dispatch.declare import ops
from corefw.distributions.bernoulli import Bernoulli
from corefw.distributions.beta import Beta
from corefw.distributions.binomial import Binomial
from corefw.distributions.continuous_bernoulli import ContinuousBernoulli
from corefw.distributions.exponential import Exponential
from corefw.distributions.gamma import Gamma
from corefw.distributions.gumbel import EULER, Gumbel
from corefw.distributions.kl.registry import register_kl
from corefw.distributions.laplace import Laplace
from corefw.distributions.normal import Normal
from corefw.distributions.pareto import Pareto
from corefw.distributions.poisson import Poisson
from corefw.distributions.uniform import Uniform
from corefw.shapes import broadcast

# -- expected values under p, by the class of p -----------------------------------------------------------------------
#: the expected logarithm
MEAN_LOG = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -EULER - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _mean_log_between(p.low, p.high),
}
#: the expected logarithm of 1 - x
MEAN_LOG_REST = {
    Beta: lambda p: p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Uniform: lambda p: _mean_log_between(1 - p.high, 1 - p.low),
}
#: the expected value of exp(-t * x)
MEAN_EXP = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (p.rate / (p.rate + t)) ** p.concentration,
    Gumbel: lambda p, t: ((1 + t * p.scale).lgamma() - t * p.loc).exp(),
    Normal: lambda p, t: (0.5 * (t * p.scale).square() - t * p.loc).exp(),
    Uniform: lambda p, t: ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low)),
}


def _mean_log_between(low, high):
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


# -- the expected value of -log q(x), by the class of q ---------------------------------------------------------------
def _beta(p, q, kind):
    a, b = q.concentration1, q.concentration0
    return q._log_normalizer(a, b) - (a - 1) * MEAN_LOG[kind](p) - (b - 1) * MEAN_LOG_REST[kind](p)


def _continuous_bernoulli(p, q, kind):
    return -q._log_constant - (-q.probs).log1p() - q.logits * p.mean


def _exponential(p, q, kind):
    return q.rate * p.mean - q.rate.log()


def _gamma(p, q, kind):
    a, rate = q.concentration, q.rate
    return a.lgamma() - a * rate.log() - (a - 1) * MEAN_LOG[kind](p) + rate * p.mean


def _gumbel(p, q, kind):
    t = q.scale.reciprocal()
    return q.scale.log() + t * (p.mean - q.loc) + (t * q.loc).exp() * MEAN_EXP[kind](p, t)


def _laplace_of_normal(p, q, kind):
    distance = p.loc - q.loc
    z = distance / p.scale
    mean = p.scale * math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + distance * (z / math.sqrt(2)).erf()
    return (2 * q.scale).log() + mean / q.scale


def _normal(p, q, kind):
    square = p.variance + (p.mean - q.loc).square()
    return q.scale.log() + 0.5 * math.log(2 * math.pi) + 0.5 * square / q.scale.square()


def _pareto(p, q, kind):
    return (q.alpha + 1) * MEAN_LOG[kind](p) - q.alpha.log() - q.alpha * q.scale.log()


def _uniform(p, q, kind):
    return (q.high - q.low).log()


def _poisson_of_bernoulli(p, q, kind):
    return q.rate - p.probs * q.rate.log()


# -- where q has no density for values of p ---------------------------------------------------------------------------
def _narrower_than_unit(p, q):
    return (q.low > 0) | (q.high < 1)


def _negative(p, q):
    return p.low < 0


def _outside_unit(p, q):
    return (p.low < 0) | (p.high > 1)


#: (class of p, class of q): (the expected value of -log q, where it is infinite)
_FINITE = {
    (Bernoulli, Poisson): (_poisson_of_bernoulli, None),
    (Beta, Beta): (_beta, None),
    (Beta, ContinuousBernoulli): (_continuous_bernoulli, None),
    (Beta, Exponential): (_exponential, None),
    (Beta, Gamma): (_gamma, None),
    (Beta, Normal): (_normal, None),
    (Beta, Uniform): (_uniform, _narrower_than_unit),
    (ContinuousBernoulli, ContinuousBernoulli): (_continuous_bernoulli, None),
    (ContinuousBernoulli, Exponential): (_exponential, None),
    (ContinuousBernoulli, Normal): (_normal, None),
    (ContinuousBernoulli, Uniform): (_uniform, _narrower_than_unit),
    (Exponential, Gamma): (_gamma, None),
    (Exponential, Gumbel): (_gumbel, None),
    (Exponential, Normal): (_normal, None),
    (Gamma, Exponential): (_exponential, None),
    (Gamma, Gamma): (_gamma, None),
    (Gamma, Gumbel): (_gumbel, None),
    (Gamma, Normal): (_normal, None),
    (Gumbel, Gumbel): (_gumbel, None),
    (Gumbel, Normal): (_normal, None),
    (Laplace, Normal): (_normal, None),
    (Normal, Gumbel): (_gumbel, None),
    (Normal, Laplace): (_laplace_of_normal, None),
    (Pareto, Exponential): (_exponential, None),
    (Pareto, Gamma): (_gamma, None),
    (Pareto, Normal): (_normal, None),
    (Pareto, Pareto): (_pareto, lambda p, q: p.scale < q.scale),
    (Uniform, Beta): (_beta, _outside_unit),
    (Uniform, ContinuousBernoulli): (_continuous_bernoulli, _outside_unit),
    (Uniform, Exponential): (_exponential, _negative),
    (Uniform, Gamma): (_gamma, _negative),
    (Uniform, Gumbel): (_gumbel, None),
    (Uniform, Normal): (_normal, None),
    (Uniform, Pareto): (_pareto, lambda p, q: p.low < q.scale),
}
#: for each class of p: the classes of q without a density for some values of p, whatever the parameters
_INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _formula(kind, cross_entropy, infinite):
    """The divergence of p of the class `kind`."""

    def divergence(p, q):
        result = cross_entropy(p, q, kind) - p.entropy()
        return result if infinite is None else ops.where(infinite(p, q), math.inf, result)

    return divergence


def _infinite(p, q):
    return p.mean.new_full(broadcast(tuple(p.batch_shape), tuple(q.batch_shape)), math.inf)


for (_p, _q), (_cross_entropy, _where) in _FINITE.items():
    register_kl(_p, _q)(_formula(_p, _cross_entropy, _where))
for _p, _others in _INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)
