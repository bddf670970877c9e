"""Distributions: the quantities PyTorch gives, shapes, samples and errors."""

import math

import numpy as np
import pytest

import corefw
from corefw import distributions
from corefw.distributions import constraints

rng = np.random.default_rng(0)

LOC, SCALE = rng.uniform(-1, 1, (2, 3)), rng.uniform(0.5, 2, (2, 3))
PROBS = rng.uniform(0.1, 0.9, (2, 3))
REALS, UNIT = rng.uniform(-2, 2, (4, 2, 3)), rng.uniform(0.05, 0.95, (4, 2, 3))
#: name: (class, parameters, values)
FAMILIES = {
    "Normal": ("Normal", {"loc": LOC, "scale": SCALE}, REALS),
    "LogNormal": ("LogNormal", {"loc": LOC, "scale": SCALE}, UNIT),
    "Laplace": ("Laplace", {"loc": LOC, "scale": SCALE}, REALS),
    "Uniform": ("Uniform", {"low": LOC - 3, "high": LOC + 3}, REALS),
    "Exponential": ("Exponential", {"rate": SCALE}, UNIT),
    "Bernoulli": ("Bernoulli", {"probs": PROBS}, (UNIT > 0.5) * 1.0),
    "Bernoulli logits": ("Bernoulli", {"logits": LOC}, (UNIT > 0.5) * 1.0),
    "Categorical": ("Categorical", {"probs": PROBS}, rng.integers(0, 3, (4, 2))),
    "Categorical logits": ("Categorical", {"logits": LOC}, rng.integers(0, 3, (4, 2))),
}


def build(framework, name, shift=0.0, **options):
    """The distribution and its parameters, which require gradients."""
    cls, parameters, _ = FAMILIES[name]
    made = {k: framework.tensor(v + shift * 0.1, requires_grad=True) for k, v in parameters.items()}
    return getattr(framework.distributions, cls)(**made, **options), list(made.values())


def quantity(framework, d, what, values):
    if what == "kl_divergence":
        return framework.distributions.kl_divergence(d, values)
    if what in ("log_prob", "cdf", "icdf"):
        return getattr(d, what)(values)
    found = getattr(d, what)
    return found() if callable(found) else found


def host(tensor):
    return tensor.detach().numpy()


QUANTITIES = (
    *("log_prob", "cdf", "icdf", "entropy", "perplexity", "mean", "variance", "stddev", "mode"),
    *("kl_divergence", "enumerate_support"),
)


@pytest.mark.parametrize("what", QUANTITIES)
@pytest.mark.parametrize("name", FAMILIES)
def test_quantities_and_gradients_are_pytorchs(name, what):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    found = []
    for framework in (torch, corefw):
        d, parameters = build(framework, name)
        values = FAMILIES[name][2]
        given = framework.tensor(UNIT if what == "icdf" else values)
        if what == "kl_divergence":
            given = build(framework, name, shift=0.5)[0]
            if name == "Uniform":
                given = framework.distributions.Uniform(given.low - 1, given.high + 1)
        try:
            result = quantity(framework, d, what, given)
        except NotImplementedError:
            if framework is torch:
                pytest.skip("not defined")
            raise
        gradients = []
        if result.requires_grad:
            result.nansum().backward()
            gradients = [None if p.grad is None else host(p.grad) for p in parameters]
        found.append((host(result), gradients))
    (expected, expected_gradients), (actual, gradients) = found
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)
    assert len(gradients) == len(expected_gradients)
    for a, e in zip(gradients, expected_gradients):
        np.testing.assert_allclose(0 if a is None else a, 0 if e is None else e, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_have_the_mean_and_the_shape(name):
    corefw.manual_seed(0)
    d, parameters = build(corefw, name)
    sample = d.sample((20000,))
    assert sample.shape == (20000, *d.batch_shape) and not sample.requires_grad
    assert d.expand((5, *d.batch_shape)).sample().shape == (5, *d.batch_shape)
    if name.startswith("Categorical"):
        found, expected = corefw.nn.functional.one_hot(sample, 3).double().mean(0), d.probs
    else:
        found, expected = sample.mean(0), d.mean
        deviation = (sample.var(0) / d.variance).detach().numpy()
        tail = 1.0 if name == "LogNormal" else 0.1  # its variance converges slowly
        np.testing.assert_allclose(deviation, 1, atol=tail)
    np.testing.assert_allclose(host(found), host(expected), atol=0.25 if name == "LogNormal" else 0.05)
    if d.has_rsample:
        d.rsample((2,)).sum().backward()
        assert all(p.grad is not None for p in parameters)
    else:
        with pytest.raises(NotImplementedError):
            d.rsample()


def test_independent_sums_over_its_value():
    base = distributions.Normal(corefw.zeros(2, 3), corefw.ones(2, 3))
    d = distributions.Independent(base, 1)
    assert d.batch_shape == (2,) and d.event_shape == (3,) and d.sample((4,)).shape == (4, 2, 3)
    assert d.log_prob(corefw.zeros(2, 3)).shape == (2,) == d.entropy().shape
    assert d.expand((5, 2)).sample().shape == (5, 2, 3)
    assert repr(d) == "Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1)"
    assert distributions.kl_divergence(d, d).tolist() == [0.0, 0.0]
    assert bool(d.support.check(corefw.zeros(2, 3)).all())
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        distributions.Independent(base, 3)


def test_divergence_is_infinite_outside_the_support_and_zero_terms_vanish():
    D = distributions
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)) == math.inf
    zero, half = (D.Categorical(probs=corefw.tensor(p)) for p in ([0.0, 1.0], [0.5, 0.5]))
    assert D.kl_divergence(half, zero) == math.inf
    assert D.kl_divergence(zero, half).item() == pytest.approx(math.log(2), rel=1e-5)
    assert D.kl_divergence(D.Bernoulli(0.5), D.Bernoulli(0.0)) == math.inf


def test_formulas_can_be_registered_for_subclasses():
    class Mine(distributions.Normal):
        pass

    p = Mine(0.0, 1.0)
    assert distributions.kl_divergence(p, p) == 0
    with pytest.raises(NotImplementedError, match="No KL"):
        distributions.kl_divergence(p, distributions.Exponential(1.0))
    distributions.register_kl(Mine, Mine)(lambda p, q: corefw.tensor(7.0))
    assert distributions.kl_divergence(p, p) == 7
    with pytest.raises(TypeError, match="subclass"):
        distributions.register_kl(int, Mine)


D = distributions
ERRORS = {
    "parameter": (lambda: D.Normal(0.0, -1.0), r"Expected parameter scale .* GreaterThan\(lower_bound=0.0\)"),
    "nan": (lambda: D.Normal(math.nan, 1.0), r"constraint Real\(\)"),
    "empty interval": (lambda: D.Uniform(1.0, 0.0), "not defined"),
    "value": (lambda: D.Exponential(1.0).log_prob(corefw.tensor(-1.0)), "within the support"),
    "no whole number": (lambda: D.Categorical(corefw.ones(2)).log_prob(corefw.tensor(0.5)), "IntegerInterval"),
    "no tensor": (lambda: D.Normal(0.0, 1.0).log_prob(0.0), "must be a Tensor"),
    "shape": (lambda: D.Normal(corefw.zeros(2), 1.0).log_prob(corefw.zeros(3)), "not broadcastable"),
    "both": (lambda: D.Bernoulli(probs=0.5, logits=0.0), "not both"),
    "0-d": (lambda: D.Categorical(corefw.tensor(1.0)), "at least one-dimensional"),
    "text": (lambda: D.Normal("0", 1.0), "tensors or numbers"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    call, text = ERRORS[name]
    with pytest.raises(ValueError, match=text):
        call()


def test_validation_can_be_turned_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    assert not constraints.simplex.check(corefw.tensor([0.5, 0.6])).item()
