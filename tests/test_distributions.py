"""Distributions: the quantities PyTorch gives, samples against SciPy's distributions, shapes and errors."""

import copy
import importlib
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import corefw
from corefw import distributions as D
from corefw.distributions import constraints
from tests.distribution_families import FAMILIES, LOC, PROBS, REALS, SCALE, UNIT, A, B, build, gradients, host

# -- against PyTorch ---------------------------------------------------------------------------------------------------
QUANTITIES = (
    *("log_prob", "cdf", "icdf", "entropy", "perplexity", "mean", "variance", "stddev", "mode"),
    "enumerate_support",
)
#: what PyTorch computes with constants of float32, or raises for float64, or has wrong: checked below
THEIR_FAULTS = {("GeneralizedPareto", "log_prob"), ("GeneralizedPareto", "cdf"), ("Kumaraswamy", "mode")} | {
    ("ContinuousBernoulli near 1/2", what) for what in ("cdf", "icdf")
}
CASES = [
    (name, what)
    for name, (*_, undefined) in FAMILIES.items()
    for what in QUANTITIES
    if what not in undefined.split() and (name, what) not in THEIR_FAULTS
]
#: families with a `cdf` without a gradient by the concentration
GAMMAS = {"Gamma", "Chi2", "InverseGamma"}
#: families that PyTorch computes less precisely: Bessel functions by polynomials, a factorial in float32
TOLERANCES = {"VonMises": 1e-5, "Multinomial": 1e-6, "Multinomial logits": 1e-6}


def quantity(d, what, values):
    if what in ("log_prob", "cdf", "icdf"):
        return getattr(d, what)(values)
    found = getattr(d, what)
    return found() if callable(found) else found


@pytest.mark.parametrize(("name", "what"), CASES, ids=[" ".join(case) for case in CASES])
def test_quantities_and_gradients_are_pytorchs(name, what):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    rtol = TOLERANCES.get(name, 1e-9)
    found = []
    for framework in (torch, corefw):
        d, parameters = build(framework, name)
        result = quantity(d, what, framework.tensor(UNIT if what == "icdf" else FAMILIES[name][2]))
        found.append((host(result), gradients(result, parameters)))
    (expected, expected_gradients), (actual, actual_gradients) = found
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-12)
    for parameter, expected_gradient in expected_gradients.items():
        np.testing.assert_allclose(actual_gradients[parameter], expected_gradient, rtol=rtol * 10, atol=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_not_defined_says_so(name):
    for what in set(FAMILIES[name][3].split()) - ({"cdf"} if name in GAMMAS else set()):
        with pytest.raises(NotImplementedError):
            quantity(build(corefw, name)[0], what, corefw.tensor(FAMILIES[name][2]))


@pytest.mark.parametrize("name", FAMILIES)
def test_support_shapes_and_constraints_are_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    (theirs, _), (ours, _) = (build(framework, name) for framework in (torch, corefw))
    assert (*ours.batch_shape,) == (*theirs.batch_shape,) and (*ours.event_shape,) == (*theirs.event_shape,)
    assert (ours.has_rsample, ours.has_enumerate_support) == (theirs.has_rsample, theirs.has_enumerate_support)
    assert (ours.support.event_dim, ours.support.is_discrete) == (theirs.support.event_dim, theirs.support.is_discrete)
    assert ours.arg_constraints.keys() == theirs.arg_constraints.keys()
    for values in (FAMILIES[name][2], FAMILIES[name][2] - 1.5):
        assert (
            host(ours.support.check(corefw.tensor(values))) == host(theirs.support.check(torch.tensor(values)))
        ).all()


def test_every_name_of_pytorch_is_there():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    assert set(torch.distributions.__all__) <= set(D.__all__)
    for module in ("constraints", "transforms", "constraint_registry", "kl"):
        assert set(getattr(torch.distributions, module).__all__) <= set(dir(getattr(D, module)))
    tested = {cls for cls, *_ in FAMILIES.values()}
    families = {name for name in D.__all__ if name[0].isupper() and not name.endswith("Transform")}
    assert families - tested == {
        *("Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily", "TransformedDistribution")
    }


def test_classes_stand_in_pytorchs_modules():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    for name in torch.distributions.__all__:
        module = getattr(getattr(torch.distributions, name), "__module__", "").replace("torch.", "corefw.")
        if module.startswith("corefw.distributions") and name not in ("biject_to", "transform_to"):
            assert getattr(importlib.import_module(module), name) is getattr(D, name)


def test_expand_of_subclasses_written_for_pytorch():
    class Shifted(D.Normal):
        def __init__(self, loc, validate_args=None):
            super().__init__(loc + 1, 1.0, validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
            super(D.Normal, new).__init__(new.loc, new.scale, validate_args=False)
            return new

    class Further(Shifted):
        def __init__(self):
            super().__init__(corefw.tensor(1.0))

    assert Shifted(corefw.zeros(1)).expand((3,)).mean.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(NotImplementedError, match=r"Further of Shifted .* custom .expand"):
        Further().expand((3,))


# -- samples -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FAMILIES)
def test_samples_are_in_the_support_and_expand(name):
    corefw.manual_seed(0)
    d, parameters = build(corefw, name)
    sample = d.sample((5,))
    assert sample.shape == (5, *d.batch_shape, *d.event_shape) and not sample.requires_grad
    wide = d.expand((4, *d.batch_shape))
    assert type(wide) is type(d) and wide.sample().shape == (4, *d.batch_shape, *d.event_shape)
    np.testing.assert_allclose(
        host(wide.log_prob(sample[:1])), np.broadcast_to(host(d.log_prob(sample[0])), (4, *d.batch_shape))
    )
    if not d.has_rsample:
        with pytest.raises(NotImplementedError):
            d.rsample()
        return
    d.rsample((2,)).square().sum().backward()
    assert all(p.grad is not None for p in parameters.values())


@pytest.mark.parametrize("name", FAMILIES)
def test_half_types_stay_and_copies_are_equal(name):
    cls, parameters, _, undefined = FAMILIES[name]
    halves = {k: v if isinstance(v, int) else corefw.tensor(v, dtype=corefw.float16) for k, v in parameters.items()}
    d = getattr(D, cls)(**halves)
    assert d.sample().dtype is (corefw.int64 if cls == "Categorical" else corefw.float16)
    for what in {"mean", "variance", "entropy"} - set(undefined.split()):
        assert quantity(d, what, None).dtype is corefw.float16
    for same in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert type(same) is type(d) and same.batch_shape == d.batch_shape
        assert all(getattr(same, k).tolist() == getattr(d, k).tolist() for k in halves.keys() - {"dim", "total_count"})


MOMENTS = [
    name
    for name, (*_, undefined) in FAMILIES.items()
    if "mean" not in undefined and "Cauchy" not in name and name != "VonMises"
]


@pytest.mark.parametrize("name", MOMENTS)
def test_samples_have_the_mean_and_variance_with_their_gradients(name):
    """Of 4,000 samples: the mean within 5 standard errors, and its gradients near those of the mean."""
    corefw.manual_seed(1)
    n = 4000
    d, parameters = build(corefw, name)
    if name.startswith("Categorical"):
        sample = corefw.nn.functional.one_hot(d.sample((n,)), 3).double()
        mean, variance = d.probs, d.probs * (1 - d.probs)
    else:
        sample = d.rsample((n,)) if d.has_rsample else d.sample((n,))
        mean, variance = d.mean, d.variance
    error = host(variance.sqrt()) / math.sqrt(n)
    assert (abs(host(sample.mean(0) - mean)) < 5 * error).all()
    assert (abs(host(sample.var(0) / variance) - 1) < 0.5).all()
    if d.has_rsample:
        found, expected = (gradients(value, p) for value, p in ((sample.mean(0), parameters), build_mean(name)))
        for parameter, gradient in expected.items():
            np.testing.assert_allclose(found[parameter], gradient, atol=0.3 * abs(gradient).max() + 0.1)


def build_mean(name):
    d, parameters = build(corefw, name)
    return d.mean, parameters


SCIPY = {
    "Normal": stats.norm(LOC, SCALE),
    "LogNormal": stats.lognorm(SCALE / 4, 0, np.exp(LOC)),
    "Laplace": stats.laplace(LOC, SCALE),
    "Cauchy": stats.cauchy(LOC, SCALE),
    "HalfNormal": stats.halfnorm(0, SCALE),
    "HalfCauchy": stats.halfcauchy(0, SCALE),
    "Gumbel": stats.gumbel_r(LOC, SCALE),
    "Uniform": stats.uniform(LOC - 3, 6),
    "Exponential": stats.expon(0, 1 / SCALE),
    "Weibull": stats.weibull_min(A, 0, SCALE),
    "Pareto": stats.pareto(A + 4, 0, PROBS),
    "GeneralizedPareto": stats.genpareto(LOC / 4, LOC - 3, SCALE * 9),
    "Gamma": stats.gamma(A, 0, 1 / SCALE),
    "Chi2": stats.chi2(A),
    "InverseGamma": stats.invgamma(A + 2, 0, SCALE),
    "Beta": stats.beta(A, B),
    "StudentT": stats.t(A + 4, LOC, SCALE),
    "FisherSnedecor": stats.f(A, B + 6),
    "VonMises": stats.vonmises(SCALE, LOC),
}


@pytest.mark.parametrize("name", SCIPY)
def test_densities_and_samples_are_scipys(name):
    corefw.manual_seed(2)
    d, _ = build(corefw, name)
    values = FAMILIES[name][2]
    np.testing.assert_allclose(host(d.log_prob(corefw.tensor(values))), SCIPY[name].logpdf(values), rtol=1e-9)
    if "cdf" not in FAMILIES[name][3].split() or name in GAMMAS:
        np.testing.assert_allclose(host(d.cdf(corefw.tensor(values))), SCIPY[name].cdf(values), rtol=1e-9, atol=1e-12)
    # a level per sample, which is uniform if the distribution is right
    levels = SCIPY[name].cdf(host(d.sample((400,)))).ravel() % 1
    assert stats.kstest(levels, "uniform").pvalue > 1e-3


DISCRETE = {
    "Geometric": stats.geom(PROBS, -1),
    "Poisson": stats.poisson(A),
    "Binomial": stats.binom(5, PROBS),
    "NegativeBinomial": stats.nbinom(A, 1 - PROBS / 2),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_are_as_frequent_as_scipys(name):
    corefw.manual_seed(3)
    sample = host(build(corefw, name)[0].sample((2000,)))
    for k in range(4):
        p = DISCRETE[name].pmf(k)
        assert (abs((sample == k).mean(0) - p) < 5 * np.sqrt(p / 2000)).all()


def test_correlation_matrices_are_as_likely_as_their_density_says():
    # for the concentration 1 every partial correlation of 3 variables is distributed as 2 * beta - 1
    corefw.manual_seed(4)
    factor = D.LKJCholesky(3, corefw.tensor(1.0, dtype=corefw.float64)).sample((3000,)).numpy()
    correlations = (factor @ factor.swapaxes(-1, -2))[:, [1, 2, 2], [0, 0, 1]]
    for column in correlations.T:
        assert stats.kstest((column + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-3


# -- what single families have besides ---------------------------------------------------------------------------------
def test_mode_of_kumaraswamy_is_the_greatest_density():
    d, _ = build(corefw, "Kumaraswamy")
    for nearby in (d.mode * 0.99, d.mode * 1.01):
        assert bool((d.log_prob(nearby) < d.log_prob(d.mode)).all())


def test_mode_of_weibull_is_zero_where_the_density_falls():
    assert D.Weibull(2.0, 0.5).mode == 0 == D.Weibull(2.0, 1.0).mode


def test_generalized_pareto_without_concentration_is_exponential():
    d, e = D.GeneralizedPareto(0.0, 2.0, 0.0), D.Exponential(0.5)
    x = corefw.tensor([0.5, 3.0])
    for what in ("log_prob", "cdf"):
        assert corefw.allclose(getattr(d, what)(x), getattr(e, what)(x))
    assert corefw.allclose(d.icdf(corefw.tensor(0.3)), e.icdf(corefw.tensor(0.3)))
    assert corefw.allclose(d.log_cdf(x), d.cdf(x).log())


def test_quantiles_near_one_half_go_over_into_those_farther_off():
    probs = corefw.tensor([0.4992, 0.5009], dtype=corefw.float64)
    near, far = D.ContinuousBernoulli(probs), D.ContinuousBernoulli(probs, lims=(0.5, 0.5))
    values = corefw.linspace(0, 1, 7, dtype=corefw.float64).unsqueeze(-1)
    for what in ("cdf", "icdf", "log_prob"):
        assert corefw.allclose(getattr(near, what)(values), getattr(far, what)(values), rtol=1e-8)


def test_mixture():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    found = []
    for framework in (torch, corefw):
        E = framework.distributions
        loc, scale, probs = (framework.tensor(v, requires_grad=True) for v in (LOC, SCALE, PROBS))
        d = E.MixtureSameFamily(E.Categorical(probs), E.Normal(loc, scale))
        values = framework.tensor(REALS[..., 0])
        results = [d.mean, d.variance, d.log_prob(values), d.cdf(values)]
        sum(r.sum() for r in results).backward()
        found.append([host(r) for r in results] + [host(p.grad) for p in (loc, scale, probs)])
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    corefw.manual_seed(0)
    sample = d.sample((4000,))
    assert (abs(host(sample.mean(0) - d.mean)) < 5 * host(d.stddev) / math.sqrt(4000)).all()
    assert d.expand((4, 2)).sample((3,)).shape == (3, 4, 2)
    vectors = D.MixtureSameFamily(D.Categorical(corefw.ones(2)), D.Independent(D.Normal(corefw.zeros(2, 3), 1.0), 1))
    assert vectors.sample((5,)).shape == (5, 3) and vectors.log_prob(corefw.zeros(5, 3)).shape == (5,)
    assert vectors.mean.tolist() == [0.0, 0.0, 0.0] and bool(vectors.support.check(corefw.zeros(5, 3)).all())


def test_independent_sums_over_its_value():
    base = D.Normal(corefw.zeros(2, 3), corefw.ones(2, 3))
    d = D.Independent(base, 1)
    assert d.batch_shape == (2,) and d.event_shape == (3,) and d.sample((4,)).shape == (4, 2, 3)
    assert d.log_prob(corefw.zeros(2, 3)).shape == (2,) == d.entropy().shape
    assert d.expand((5, 2)).sample().shape == (5, 2, 3)
    assert repr(d) == "Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1)"
    assert D.kl_divergence(d, d).tolist() == [0.0, 0.0]
    assert bool(d.support.check(corefw.zeros(2, 3)).all())
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        D.Independent(base, 3)


def test_straight_through_samples_are_one_hot_with_the_gradient_of_the_probabilities():
    probs = corefw.tensor([0.2, 0.8], requires_grad=True)
    sample = D.OneHotCategoricalStraightThrough(probs).rsample()
    assert sorted(sample.detach().round(decimals=6).tolist()) == [0.0, 1.0]
    (sample * corefw.tensor([1.0, 3.0])).sum().backward()
    expected = corefw.tensor([0.2, 0.8], requires_grad=True)
    ((expected / expected.sum()) * corefw.tensor([1.0, 3.0])).sum().backward()
    assert corefw.allclose(probs.grad, expected.grad)


def test_entropy_of_exponential_families_follows_from_the_normalizer():
    for name in ("Normal", "Exponential", "Bernoulli", "Gamma", "ContinuousBernoulli", "Wishart"):
        (d, own), (same, parameters) = build(corefw, name), build(corefw, name)
        general = D.ExponentialFamily.entropy(d)
        np.testing.assert_allclose(host(general), host(same.entropy()), rtol=1e-9)
        found, expected = gradients(general, own), gradients(same.entropy(), parameters)
        for parameter in own:
            np.testing.assert_allclose(found[parameter], expected[parameter], rtol=1e-8, atol=1e-12)


# -- errors ------------------------------------------------------------------------------------------------------------
ERRORS = {
    "parameter": (lambda: D.Normal(0.0, -1.0), r"Expected parameter scale .* GreaterThan\(lower_bound=0.0\)"),
    "nan": (lambda: D.Normal(math.nan, 1.0), r"constraint Real\(\)"),
    "empty interval": (lambda: D.Uniform(1.0, 0.0), "not defined"),
    "value": (lambda: D.Exponential(1.0).log_prob(corefw.tensor(-1.0)), "within the support"),
    "value of a transform": (lambda: D.LogNormal(0.0, 1.0).log_prob(corefw.tensor(-1.0)), "LogNormal.*invalid values"),
    "no whole number": (lambda: D.Categorical(corefw.ones(2)).log_prob(corefw.tensor(0.5)), "IntegerInterval"),
    "no tensor": (lambda: D.Normal(0.0, 1.0).log_prob(0.0), "must be a Tensor"),
    "shape": (lambda: D.Normal(corefw.zeros(2), 1.0).log_prob(corefw.zeros(3)), "not broadcastable"),
    "event": (lambda: D.Dirichlet(corefw.ones(2)).log_prob(corefw.ones(3) / 3), "must match event_shape"),
    "both": (lambda: D.Bernoulli(probs=0.5, logits=0.0), "not both"),
    "neither": (lambda: D.Multinomial(3), "not both"),
    "0-d": (lambda: D.Categorical(corefw.tensor(1.0)), "at least one-dimensional"),
    "text": (lambda: D.Normal("0", 1.0), "tensors or numbers"),
    "parameter of a base": (lambda: D.HalfNormal(-1.0), r"parameter scale .* HalfNormal.* to satisfy"),
    "never": (lambda: D.Geometric(0.0), "to be positive"),
    "count": (lambda: D.Binomial(-1, corefw.tensor(0.5)), "total_count"),
    "degrees": (lambda: D.Wishart(1.0, corefw.eye(3)), "greater than ndim - 1 = 2"),
    "two matrices": (
        lambda: D.MultivariateNormal(corefw.zeros(2), corefw.eye(2), corefw.eye(2)),
        "Exactly one of .* got covariance_matrix, precision_matrix",
    ),
    "not definite": (
        lambda: D.MultivariateNormal(corefw.zeros(2), -corefw.eye(2)),
        "parameter covariance_matrix .* PositiveDefinite",
    ),
    "factor": (lambda: D.LowRankMultivariateNormal(corefw.zeros(2), corefw.ones(3, 1), corefw.ones(2)), "2 x m"),
    "one row": (lambda: D.LKJCholesky(1), "greater than or equal to 2"),
    "mixture": (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(corefw.zeros(2), 1.0)), "Categorical"),
    "components": (
        lambda: D.MixtureSameFamily(D.Categorical(corefw.ones(3)), D.Normal(corefw.zeros(2), 1.0)),
        "has 3 components",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    call, text = ERRORS[name]
    with pytest.raises(ValueError, match=f"(?s){text}"):
        call()


def test_different_numbers_of_trials_have_no_common_support():
    d = D.Binomial(corefw.tensor([1.0, 2.0]), corefw.tensor(0.5))
    for what in (d.entropy, d.enumerate_support):
        with pytest.raises(NotImplementedError, match="Inhomogeneous total count"):
            what()


def test_validation_can_be_turned_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    assert not constraints.simplex.check(corefw.tensor([0.5, 0.6])).item()


def test_sample_n_is_deprecated():
    with pytest.warns(UserWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)
