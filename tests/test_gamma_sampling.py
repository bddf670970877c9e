"""Numbers of the gamma, Dirichlet and binomial distributions: the streams of docs/random.md, and implicit gradients."""

import numpy as np
import pytest
from scipy import special, stats

import corefw
from corefw import distributions as D
from corefw.dispatch.declare import ops
from corefw_numpy import philox
from tests.distribution_families import host

SEED = 1234


@pytest.mark.parametrize("p", [0.0, 1e-4, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n", [0, 1, 20, 10**6])
def test_binomial(n, p):
    generator = corefw.Generator().manual_seed(SEED)
    made = corefw.binomial(
        corefw.full((500,), n, dtype=corefw.float64), corefw.tensor(p, dtype=corefw.float64), generator
    )
    level = philox.uniform(np, (500,), "float64", SEED, 0, 0.0, 1.0)
    expected = stats.binom.ppf(level, n, min(p, 1 - p))
    expected = np.maximum(expected, 0)
    assert (made.numpy() == (n - expected if p > 0.5 else expected)).all()


@pytest.mark.parametrize("a", [1e-2, 0.7, 1.0, 3.5, 1e5])
def test_gamma_numbers(a):
    generator = corefw.Generator().manual_seed(SEED)
    made = ops.standard_gamma(corefw.full((500,), a, dtype=corefw.float64), generator).numpy()
    level, power = (philox.uniform(np, (500,), "float64", SEED, offset, 0.0, 1.0) for offset in (0, 250))
    expected = special.gammaincinv(a, level) if a >= 1 else special.gammaincinv(a + 1, level) * power ** (1 / a)
    np.testing.assert_allclose(made, expected, rtol=1e-12)


def test_binomial_numbers_have_no_gradient():
    prob = corefw.full((3,), 0.5, requires_grad=True)
    with pytest.raises(NotImplementedError, match="binomial: prob"):
        corefw.binomial(corefw.ones(3), prob).sum().backward()


def test_gradient_of_gamma_samples():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    a = np.repeat([0.01, 0.3, 1.0, 3.7, 20.0, 1000.0], 5)
    level = np.tile([0.001, 0.2, 0.5, 0.9, 0.999], 6)
    x = np.maximum(special.gammaincinv(a, level), 1e-30)
    found = host(ops.standard_gamma_grad(corefw.tensor(a), corefw.tensor(x)))
    np.testing.assert_allclose(found, torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)), rtol=1e-3)
    exact = (slice(10, None),)  # the sample with the same level at slightly other concentrations
    h = 1e-4 * a[exact]
    difference = (special.gammaincinv(a[exact] + h, level[exact]) - special.gammaincinv(a[exact] - h, level[exact])) / (
        2 * h
    )
    np.testing.assert_allclose(found[exact], difference, rtol=1e-6)


def test_gradient_of_beta_samples():
    a, b, level = (v.ravel() for v in np.meshgrid([0.4, 1.0, 5.0, 90.0], [0.4, 1.0, 5.0, 90.0], [0.01, 0.5, 0.99]))
    x, h = special.betaincinv(a, b, level), 1e-4 * a
    found = host(ops.dirichlet_grad(corefw.tensor(x), corefw.tensor(a), corefw.tensor(a + b)))
    difference = (special.betaincinv(a + h, b, level) - special.betaincinv(a - h, b, level)) / (2 * h)
    np.testing.assert_allclose(found * (1 - x), difference, rtol=1e-5)


def test_small_concentrations_have_finite_samples_and_gradients():
    a = corefw.full((1000, 2), 1e-3, requires_grad=True)
    sample = D.Dirichlet(a).rsample()
    assert bool((sample > 0).all()) and bool(((sample.sum(-1) - 1).abs() < 1e-6).all())
    (sample * corefw.tensor([1.0, 2.0])).sum().backward()
    assert bool(a.grad.isfinite().all())
    assert bool((D.Gamma(a, 1.0).sample() > 0).all())
