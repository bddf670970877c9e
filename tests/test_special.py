"""Special functions: how near they are to SciPy's, what they are far out and at singularities, gradients, refusals."""

import sys

import numpy as np
import pytest
import scipy.special

import corefw
from corefw.autograd import gradcheck
from corefw.dispatch.registry import registry
from corefw_numpy import gamma, scipy_functions

inf, nan = float("inf"), float("nan")
rng = np.random.default_rng(0)
RIGHT = np.concatenate([rng.uniform(0.01, 3, 500), rng.uniform(3, 60, 500), np.exp(rng.uniform(-20, 20, 500))])
BOTH = np.concatenate([RIGHT[:1000], -RIGHT[:1000]])
DEGREES = rng.integers(0, 8, 1000).astype(float)
POINTS = rng.uniform(1.1, 4, 1000)  # right of all zeros that lie in [-1, 1]

#: by name the reference, the arguments, and the units in the last place that float64 results may differ by
FUNCTIONS = {
    "gammaln": (scipy.special.gammaln, (RIGHT,), 500),  # near the zeros 1 and 2
    "digamma": (scipy.special.psi, (RIGHT,), 4),
    "zeta": (scipy.special.zeta, (rng.uniform(1.1, 20, 1500), RIGHT), 12),
    "gammainc": (
        scipy.special.gammainc,
        (RIGHT[:1000], RIGHT[:1000] * rng.uniform(0.5, 2, 1000)),
        700,
    ),  # far out in the tails
    "gammaincc": (
        scipy.special.gammaincc,
        (RIGHT[:1000], RIGHT[:1000] * rng.uniform(0.5, 2, 1000)),
        700,
    ),  # far out in the tails
    "i0": (scipy.special.i0, (BOTH,), 4),
    "i0e": (scipy.special.i0e, (BOTH,), 4),
    "i1": (scipy.special.i1, (BOTH,), 16),
    "i1e": (scipy.special.i1e, (BOTH,), 16),
    "modified_bessel_k0": (scipy.special.k0, (RIGHT,), 16),
    "modified_bessel_k1": (scipy.special.k1, (RIGHT,), 8),
    "scaled_modified_bessel_k0": (scipy.special.k0e, (RIGHT,), 8),
    "scaled_modified_bessel_k1": (scipy.special.k1e, (RIGHT,), 8),
    "chebyshev_polynomial_t": (lambda x, n: scipy.special.eval_chebyt(n.astype(int), x), (POINTS, DEGREES), 16),
    "chebyshev_polynomial_u": (lambda x, n: scipy.special.eval_chebyu(n.astype(int), x), (POINTS, DEGREES), 16),
    "legendre_polynomial_p": (lambda x, n: scipy.special.eval_legendre(n.astype(int), x), (POINTS, DEGREES), 40),
}


def units(result, expected):
    """The greatest difference in units of the last place of the result."""
    with np.errstate(over="ignore"):
        rounded = expected.astype(result.dtype)
    regular = np.isfinite(rounded) & (np.abs(rounded) > np.finfo(result.dtype).tiny)
    return (np.abs(result - expected)[regular] / np.spacing(np.abs(rounded[regular]))).max()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name):
    reference, arguments, allowed = FUNCTIONS[name]
    function = getattr(corefw.special, name)
    assert units(function(*map(corefw.tensor, arguments)).numpy(), reference(*arguments)) <= allowed
    single = [argument.astype(np.float32) for argument in arguments]
    expected = reference(*[argument.astype(np.float64) for argument in single])
    assert units(function(*map(corefw.tensor, single)).numpy(), expected) <= 0.5001


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_bessel_functions_keep_their_digits(name):
    """Beside the amplitude, which falls as 1 / sqrt(x): the functions have zeros."""
    x = np.concatenate([np.linspace(0.01, 60, 3000), [1e3, 1e5, 1e8]])
    found = getattr(corefw.special, name)(corefw.tensor(x)).numpy()
    expected = getattr(scipy.special, name.removeprefix("bessel_"))(x)
    tolerance = 4e-15 + 1e-16 * x  # SciPy rounds the phase
    assert (np.abs(found - expected) <= tolerance * np.maximum(np.abs(expected), 1 / np.sqrt(x))).all()


def test_zeta_left_of_zero_takes_no_longer():
    q = np.array([-0.5, -1.25, -7.75, -1e-9])
    for n in (1, 2, 3):
        found = corefw.polygamma(n, corefw.tensor(q)).numpy()
        np.testing.assert_allclose(found, scipy.special.polygamma(n, q), rtol=1e-12)
    assert corefw.special.zeta(2, corefw.tensor([-(2.0**50) + 0.5], dtype=corefw.float64)).item() == pytest.approx(
        np.pi**2, rel=1e-14
    )


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("gammaln", ([0.0, -1, -inf, inf, nan],), [inf, inf, inf, inf, nan]),
        (
            "zeta",
            ([nan, inf, 2, 1, nan], [0.0, 0, 0, 3, -1]),
            [inf] * 5,
        ),  # zero to any power, also where it is no number
        ("zeta", ([nan, 0.5, 2], [0.5, 0, nan]), [nan] * 3),
        ("zeta", ([inf, inf, inf, inf], [-0.5, -1.5, 0.5, 2]), [inf, inf, inf, 0]),
        ("digamma", ([0.0, -0.0, -2, -inf, inf, nan],), [-inf, inf, nan, nan, inf, nan]),
        ("zeta", ([1.0, 0.5, 2, 2, 2.5, 2, nan], [2.0, 2, 0, -3, -1.5, inf, 1]), [inf, nan, inf, inf, nan, 0, nan]),
        ("gammainc", ([0.0, 0, 2, 2, inf, -1, 1], [0.0, 1, 0, inf, 1, 1, -1]), [nan, 1, 0, 1, 0, nan, nan]),
        ("gammaincc", ([0.0, 0, 2, 2, inf, -1, 1], [0.0, 1, 0, inf, 1, 1, -1]), [nan, 0, 1, 0, 1, nan, nan]),
        ("bessel_y1", ([0.0, -1, inf],), [-inf, nan, nan]),
        ("modified_bessel_k0", ([0.0, -1, inf],), [inf, nan, 0]),
        ("spherical_bessel_j0", ([0.0, inf, -inf, nan],), [1, 0, 0, nan]),
        ("hermite_polynomial_h", ([2.0, 2, 2, 2, 2], [-1.0, -0.9, 0, 1.9, nan]), [0, 1, 1, 4, 0]),
        ("legendre_polynomial_p", ([0.5, 0.5, 0.5], [inf, -inf, 1e18]), [nan, 0, nan]),
    ],
)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_special_values(backend, name, arguments, expected):
    if backend not in registry.backends:
        pytest.skip(f"no backend {backend}")
    with corefw.backend(backend):
        found = getattr(corefw.special, name)(*map(corefw.tensor, arguments))
    np.testing.assert_array_equal(found.numpy(), np.array(expected, np.float32))


A, X = (corefw.tensor(values, dtype=corefw.float64) for values in ([1.5, 3.0, 40.0], [0.5, 3.5, 45.0]))


@pytest.mark.parametrize("function", [corefw.special.zeta, corefw.igamma, corefw.igammac], ids=lambda f: f.__name__)
def test_two_arguments_of_which_one_has_a_gradient(function):
    assert gradcheck(lambda x: function(A, x), (X.clone().requires_grad_(),))
    with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
        function(A.clone().requires_grad_(), X).sum().backward()


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: corefw.polygamma(-1, X), RuntimeError, "does not support negative n, got -1"),
        (lambda: corefw.polygamma(1.5, X), TypeError, "'n' must be int, not float"),
        (lambda: X.mvlgamma(0), RuntimeError, "p has to be greater than or equal to 1, got 0"),
        (lambda: corefw.mvlgamma(corefw.tensor([True]), 2), RuntimeError, "may not be a boolean tensor"),
        (lambda: corefw.igamma(corefw.tensor([1]), corefw.tensor([2])), NotImplementedError, "igamma"),
        (lambda: corefw.digamma(corefw.tensor(1j)), NotImplementedError, "digamma"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_without_scipy_numpys_kernels_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    scipy_functions.special.cache_clear()
    with pytest.raises(ImportError, match=r"digamma: .* pip install scipy"):
        gamma.kernels(np)["digamma"](np.ones(2))
