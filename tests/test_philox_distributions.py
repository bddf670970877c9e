"""The distributions of the random streams, at fixed seeds."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from corefw_numpy import philox


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kind, parameters, distribution",
    [
        ("uniform", (), stats.uniform()),
        ("uniform", (-2.0, 3.0), stats.uniform(-2, 5)),
        ("normal", (), stats.norm()),
        ("normal", (1.0, 2.0), stats.norm(1, 2)),
        ("log_normal", (0.5, 0.8), stats.lognorm(s=0.8, scale=math.exp(0.5))),
        ("exponential", (1.5,), stats.expon(scale=1 / 1.5)),
        ("cauchy", (1.0, 2.0), stats.cauchy(1, 2)),
    ],
)
def test_continuous_distributions(kind, parameters, distribution, dtype):
    x = getattr(philox, kind)(np, (50000,), dtype, 2024, 0, *parameters)
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3
    # Neighbours do not go together, in particular the two of a Box-Muller pair.
    assert abs(stats.spearmanr(x[0::2], x[1::2]).statistic) < 0.02
    assert abs(stats.spearmanr(np.abs(x[0::2]), np.abs(x[1::2])).statistic) < 0.02


def test_complex_normal_distribution():
    z = philox.normal(np, (50000,), "complex64", 6, 0)
    for part in (z.real, z.imag):
        assert stats.kstest(part, stats.norm(scale=math.sqrt(0.5)).cdf).pvalue > 1e-3
    assert stats.kstest(np.abs(z) ** 2, stats.expon().cdf).pvalue > 1e-3


@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 1.0])
def test_bernoulli_distribution(p):
    n = 50000
    ones = int(philox.bernoulli(np, (n,), "bool", 8, 0, p).sum())
    assert stats.binomtest(ones, n, p).pvalue > 1e-3 if 0 < p < 1 else ones == n * p


def test_integers_distribution():
    assert stats.chisquare(np.bincount(philox.integers(np, (60000,), "int64", 1, 0, 0, 37))).pvalue > 1e-3
    # Even over a range that is no power of two and nearly fills 64 bits.
    x = philox.integers(np, (60000,), "uint64", 1, 0, 0, 3 * 2**62)
    assert stats.kstest(x.astype("float64") / (3 * 2.0**62), stats.uniform().cdf).pvalue > 1e-3


def test_geometric_distribution():
    n, p = 50000, 0.3
    counts = np.bincount(np.minimum(philox.geometric(np, (n,), "int64", 1, 0, p), 20), minlength=21)[1:]
    expected = n * stats.geom(p).pmf(np.arange(1, 21))
    expected[-1] = n - expected[:-1].sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-3


def test_permutation_distribution():
    orders = dict.fromkeys(permutations(range(4)), 0)
    for offset in range(0, 4800, 2):
        orders[tuple(philox.permutation(np, 4, "int64", 3, offset).tolist())] += 1
    assert stats.chisquare(list(orders.values())).pvalue > 1e-3


def test_multinomial_distribution():
    n = 20000
    weights = np.array([1.0, 0.0, 2.0, 3.0, 0.5])
    share = weights / weights.sum()
    drawn = philox.multinomial(np, weights, n, True, 1, 0)
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == 0
    assert stats.chisquare(np.delete(counts, 1), n * np.delete(share, 1)).pvalue > 1e-3
    # Without replacement: first by weight, then by the weights that are left.
    first, second = philox.multinomial(np, np.tile(weights, (n, 1)), 2, False, 1, 0).T
    pairs = [(j, k) for j, k in permutations(range(5), 2) if 1 not in (j, k)]
    counts = [int(np.sum((first == j) & (second == k))) for j, k in pairs]
    expected = [n * share[j] * share[k] / (1 - share[j]) for j, k in pairs]
    assert stats.chisquare(counts, expected).pvalue > 1e-3
