"""Kullback-Leibler divergences, in closed form for registered pairs of distributions."""

from corefw.distributions.kl import cross_entropies, normal_vectors, one_family
from corefw.distributions.kl.registry import kl_divergence, register_kl

__all__ = ["cross_entropies", "kl_divergence", "normal_vectors", "one_family", "register_kl"]
