"""Probability distributions: samples, densities, moments and divergences of batches of them."""

from corefw.distributions import constraints
from corefw.distributions.bernoulli import Bernoulli
from corefw.distributions.categorical import Categorical
from corefw.distributions.distribution import Distribution
from corefw.distributions.exponential import Exponential
from corefw.distributions.independent import Independent
from corefw.distributions.kl import kl_divergence, register_kl
from corefw.distributions.laplace import Laplace
from corefw.distributions.log_normal import LogNormal
from corefw.distributions.normal import Normal
from corefw.distributions.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Exponential",
    "Independent",
    "Laplace",
    "LogNormal",
    "Normal",
    "Uniform",
    "constraints",
    "kl_divergence",
    "register_kl",
]
