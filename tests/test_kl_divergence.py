"""Kullback-Leibler divergences: every pair of PyTorch's, against it and against the mean over samples."""

import math

import numpy as np
import pytest

import corefw
from corefw import distributions as D
from corefw.distributions.kl.registry import _FORMULAS
from tests.distribution_families import FACTOR, MATRIX, gradients, host

rng = np.random.default_rng(1)


def positive(low=0.5, high=3.0):
    """Two arrays of parameters, for p and for q."""
    return rng.uniform(low, high, (2, 2, 3))


#: class: (parameters of p and of q, by name)
PARAMETERS = {
    "Bernoulli": {"probs": positive(0.1, 0.9)},
    "Beta": {"concentration1": positive(), "concentration0": positive()},
    "Binomial": {"total_count": np.array([5.0, 5.0]), "probs": positive(0.1, 0.9)},
    "Categorical": {"probs": positive()},
    "Cauchy": {"loc": positive(), "scale": positive()},
    "ContinuousBernoulli": {"probs": positive(0.1, 0.9)},
    "Dirichlet": {"concentration": positive()},
    "Exponential": {"rate": positive()},
    "Gamma": {"concentration": positive(), "rate": positive()},
    "Geometric": {"probs": positive(0.1, 0.9)},
    "Gumbel": {"loc": positive(), "scale": positive()},
    "HalfNormal": {"scale": positive()},
    "Laplace": {"loc": positive(), "scale": positive()},
    "LogNormal": {"loc": positive(), "scale": positive()},
    "LowRankMultivariateNormal": {
        "loc": positive(),
        "cov_factor": np.stack([FACTOR[..., :2], FACTOR[..., 1:]]),
        "cov_diag": positive(),
    },
    "MultivariateNormal": {"loc": positive(), "covariance_matrix": np.stack([MATRIX, MATRIX[::-1] + np.eye(3)])},
    "Normal": {"loc": positive(), "scale": positive()},
    "OneHotCategorical": {"probs": positive()},
    "Pareto": {"scale": np.stack([positive(2, 3)[0], positive(0.5, 2)[1]]), "alpha": positive(3, 5)},
    "Poisson": {"rate": positive()},
    "Uniform": {
        "low": np.stack([positive(0.55, 0.6)[0], positive(0.1, 0.2)[0]]),
        "high": np.stack([positive(0.7, 0.9)[0], positive(1.5, 2)[0]]),
    },
    "Wishart": {"df": rng.uniform(4, 6, (2, 2)), "covariance_matrix": np.stack([MATRIX, MATRIX[::-1] + np.eye(3)])},
}
#: pairs of base classes, by pairs of their families
BASES = {
    ("ExponentialFamily", "ExponentialFamily"): ("Wishart", "Wishart"),
    ("TransformedDistribution", "TransformedDistribution"): ("LogNormal", "LogNormal"),
}
#: what PyTorch has wrong: its log-normalizer is not that of its natural parameters, as the mean over samples shows
THEIR_FAULTS = {("Wishart", "Wishart")}


def build(framework, name, which):
    tensors = {k: framework.tensor(v[which].copy(), requires_grad=True) for k, v in PARAMETERS[name].items()}
    return getattr(framework.distributions, name)(**tensors), tensors


PAIRS = sorted((p.__name__, q.__name__) for p, q in _FORMULAS if p.__module__.startswith("corefw"))
PAIRS = [BASES.get(pair, pair) for pair in PAIRS if pair != ("Independent", "Independent")]
COMPARED = [pair for pair in PAIRS if pair not in THEIR_FAULTS]


@pytest.mark.parametrize(("first", "second"), COMPARED, ids=[" ".join(pair) for pair in COMPARED])
def test_divergences_and_gradients_are_pytorchs(first, second):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    found = []
    for framework in (torch, corefw):
        (p, own), (q, theirs) = build(framework, first, 0), build(framework, second, 1)
        result = framework.distributions.kl_divergence(p, q)
        parameters = {f"p {k}": v for k, v in own.items()} | {f"q {k}": v for k, v in theirs.items()}
        found.append((host(result), gradients(result, parameters)))
    (expected, expected_gradients), (actual, actual_gradients) = found
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)
    for parameter, gradient in expected_gradients.items():  # PyTorch's trigamma is no better
        np.testing.assert_allclose(actual_gradients[parameter], gradient, rtol=1e-7, atol=1e-8)


def test_the_pairs_are_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    named = {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}
    assert named <= {(p.__name__, q.__name__) for p, q in _FORMULAS}


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[" ".join(pair) for pair in PAIRS])
def test_divergences_are_the_mean_over_samples(first, second):
    corefw.manual_seed(0)
    (p, _), (q, _) = build(corefw, first, 0), build(corefw, second, 1)
    divergence = host(D.kl_divergence(p, q))
    if np.isinf(divergence).all():
        values = p.sample((500,))
        assert not bool(q.support.check(values).all())
        return
    values = p.sample((2000,))
    terms = host(p.log_prob(values) - q.log_prob(values))
    assert (abs(terms.mean(0) - divergence) < 6 * terms.std(0) / math.sqrt(2000) + 1e-9).all()


def test_divergence_is_infinite_outside_the_support_and_zero_terms_vanish():
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)) == math.inf
    zero, half = (D.Categorical(probs=corefw.tensor(p)) for p in ([0.0, 1.0], [0.5, 0.5]))
    assert D.kl_divergence(half, zero) == math.inf
    assert D.kl_divergence(zero, half).item() == pytest.approx(math.log(2), rel=1e-5)
    assert D.kl_divergence(D.Bernoulli(0.5), D.Bernoulli(0.0)) == math.inf
    for p, q in (
        (D.Uniform(-1.0, 1.0), D.Beta(1.0, 1.0)),
        (D.Uniform(-1.0, 1.0), D.Gamma(1.0, 1.0)),
        (D.Uniform(0.0, 1.0), D.Pareto(0.5, 1.0)),
        (D.Pareto(0.5, 1.0), D.Pareto(1.0, 1.0)),
        (D.Beta(1.0, 1.0), D.Uniform(0.5, 2.0)),
    ):
        assert D.kl_divergence(p, q) == math.inf
    assert D.kl_divergence(D.Poisson(0.0), D.Poisson(1.0)) == 1


def test_binomials_of_different_numbers_of_trials():
    few, many = (D.Binomial(n, corefw.tensor(0.3, dtype=corefw.float64)) for n in (2, 5))
    assert D.kl_divergence(many, few) == math.inf
    values = few.enumerate_support()
    log_prob = few.log_prob(values)
    expected = (log_prob.exp() * (log_prob - many.log_prob(values))).sum()
    assert D.kl_divergence(few, many).item() == pytest.approx(expected.item()) and expected > 0


def test_formulas_can_be_registered_for_subclasses():
    class Mine(D.Normal):
        pass

    p = Mine(0.0, 1.0)
    assert D.kl_divergence(p, p) == 0
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.StudentT(3.0), D.Exponential(1.0))
    with pytest.raises(NotImplementedError, match="different exponential families"):
        D.kl_divergence(D.Exponential(1.0), D.Poisson(1.0))
    D.register_kl(Mine, Mine)(lambda p, q: corefw.tensor(7.0))
    assert D.kl_divergence(p, p) == 7
    del _FORMULAS[Mine, Mine]
    with pytest.raises(TypeError, match="subclass"):
        D.register_kl(3, Mine)


def test_transformed_distributions_need_the_same_transforms():
    base = D.Normal(0.0, 1.0)
    up = D.TransformedDistribution(base, D.AffineTransform(0.0, 2.0))
    assert D.kl_divergence(up, D.TransformedDistribution(D.Normal(1.0, 1.0), D.AffineTransform(0.0, 2.0))) == 0.5
    with pytest.raises(NotImplementedError, match="different transforms"):
        D.kl_divergence(up, D.TransformedDistribution(base, D.ExpTransform()))


def test_vectors_of_different_sizes():
    p, q = (D.MultivariateNormal(corefw.zeros(n), corefw.eye(n)) for n in (2, 3))
    with pytest.raises(ValueError, match="differ in size"):
        D.kl_divergence(p, q)
