"""Transforms, constraints and the registries between them, and transformed distributions."""

import copy
import pickle

import numpy as np
import pytest

import corefw
from corefw import distributions as D
from corefw.distributions import biject_to, constraints, transform_to
from tests.distribution_families import FACTOR, LOC, MATRIX, ONE_HOT, REALS, SCALE, SIMPLEX, UNIT_ROWS, host

VECTORS = np.linspace(-1.5, 1.2, 12).reshape(2, 6)
#: name: (what makes the transform in a framework, values)
TRANSFORMS = {
    "abs": (lambda t: t.distributions.AbsTransform(), REALS),
    "affine": (lambda t: t.distributions.AffineTransform(1.0, -2.0), REALS),
    "affine of tensors": (lambda t: t.distributions.AffineTransform(t.tensor(LOC), t.tensor(-SCALE)), REALS),
    "affine of vectors": (lambda t: t.distributions.AffineTransform(t.tensor(LOC), 2.0, event_dim=1), REALS),
    "exp": (lambda t: t.distributions.ExpTransform(), REALS),
    "log": (lambda t: t.distributions.ExpTransform().inv, abs(REALS)),
    "power": (lambda t: t.distributions.PowerTransform(t.tensor(SCALE)), abs(REALS)),
    "sigmoid": (lambda t: t.distributions.SigmoidTransform(), REALS),
    "softplus": (lambda t: t.distributions.SoftplusTransform(), REALS),
    "tanh": (lambda t: t.distributions.TanhTransform(), REALS),
    "cumulative": (
        lambda t: t.distributions.CumulativeDistributionTransform(
            t.distributions.Normal(t.tensor(LOC), t.tensor(SCALE))
        ),
        REALS,
    ),
    "softmax": (lambda t: t.distributions.SoftmaxTransform(), REALS),
    "stick breaking": (lambda t: t.distributions.StickBreakingTransform(), REALS),
    "lower cholesky": (lambda t: t.distributions.LowerCholeskyTransform(), np.stack([MATRIX, -MATRIX])),
    "positive definite": (lambda t: t.distributions.PositiveDefiniteTransform(), FACTOR),
    "correlations": (lambda t: t.distributions.CorrCholeskyTransform(), VECTORS),
    "compose": (
        lambda t: t.distributions.ComposeTransform(
            [
                t.distributions.AffineTransform(t.tensor(LOC), t.tensor(SCALE)),
                t.distributions.StickBreakingTransform(),
                t.distributions.AffineTransform(0.0, 3.0),
            ]
        ),
        REALS,
    ),
    "identity": (lambda t: t.distributions.identity_transform, REALS),
    "independent": (lambda t: t.distributions.IndependentTransform(t.distributions.ExpTransform(), 2), REALS),
    "reshape": (lambda t: t.distributions.ReshapeTransform((2, 3), (6,)), REALS),
    "cat": (
        lambda t: t.distributions.CatTransform(
            [t.distributions.ExpTransform(), t.distributions.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2]
        ),
        REALS,
    ),
    "stack": (
        lambda t: t.distributions.StackTransform(
            [t.distributions.ExpTransform(), t.distributions.AffineTransform(1.0, 2.0)], dim=1
        ),
        REALS,
    ),
}
#: transforms without a Jacobian
ONTO = {"abs", "softmax", "lower cholesky", "positive definite"}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    make, values = TRANSFORMS[name]
    found = []
    for framework in (torch, corefw):
        t, x = make(framework), framework.tensor(values, requires_grad=True)
        y = t(x)
        results = [y, t.inv(y.detach())]
        if name not in ONTO:
            results.append(t.log_abs_det_jacobian(x, y))
        (results[-1] if results[-1].requires_grad else y).sum().backward()
        facts = [t.bijective, t.domain.event_dim, t.codomain.event_dim, t.domain.is_discrete]
        facts += [(*t.forward_shape(x.shape),), (*t.inverse_shape(y.shape),)]
        found.append((facts, [host(r) for r in results] + [host(x.grad)]))
    (their_facts, expected), (facts, actual) = found
    assert facts == their_facts
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in TRANSFORMS if name not in ONTO])
def test_jacobians_are_those_of_the_transform(name):
    make, values = TRANSFORMS[name]
    transform, x = make(corefw), corefw.tensor(values)
    if name == "correlations":  # its results are given by what is below the diagonal
        x, rows, columns = x[:1], *np.tril_indices(4, -1)
        matrix = corefw.autograd.functional.jacobian(lambda v: transform(v)[0, rows, columns], x)
    elif name in ("stick breaking", "compose"):  # the last number is 1 less the others
        x = x[:1]
        matrix = corefw.autograd.functional.jacobian(lambda v: transform(v)[..., :-1], x)
    else:
        matrix = corefw.autograd.functional.jacobian(transform, x)
    if name == "power":
        assert transform.sign.shape == (2, 3)
    y = transform(x)
    size = x.numel()
    total = transform.log_abs_det_jacobian(x, y).sum()
    expected = np.linalg.slogdet(matrix.numpy().reshape(size, size))[1]
    if name == "compose":  # the last part multiplies all four numbers, of which three are free
        expected += x.numel() / 3 * np.log(3.0)
    np.testing.assert_allclose(total.item(), expected, rtol=1e-9)


def test_inverse_cache_and_equality():
    cached = D.TanhTransform(cache_size=1)
    x = corefw.tensor([30.0])
    assert cached.inv(cached(x)) is x and D.TanhTransform().inv(D.TanhTransform()(x)).item() == float("inf")
    assert cached.inv.inv is cached and D.TanhTransform().with_cache().inv._cache_size == 1
    both = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)])
    assert both == D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)])
    assert both != D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)]) and both.inv.inv is both
    assert D.AffineTransform(corefw.zeros(2), 1.0) == D.AffineTransform(corefw.zeros(2), 1.0) != D.ExpTransform()
    assert D.ExpTransform().inv == D.ExpTransform().inv != D.ExpTransform()
    assert [D.ComposeTransform([D.AffineTransform(0.0, s), D.ExpTransform()]).sign for s in (2, -2)] == [1, -1]
    assert copy.deepcopy(cached) == cached == pickle.loads(pickle.dumps(cached))
    assert repr(both) == "ComposeTransform(\n    ExpTransform(),\n    AffineTransform()\n)"
    assert repr(D.IndependentTransform(D.ExpTransform(), 1).inv) == (
        "_InverseTransform(IndependentTransform(ExpTransform(), 1))"
    )


WITH_CACHE = [name for name in TRANSFORMS if name != "log"]


@pytest.mark.parametrize("name", WITH_CACHE)
def test_with_cache_keeps_the_parameters(name):
    make, values = TRANSFORMS[name]
    transform, x = make(corefw), corefw.tensor(values)
    cached = transform.with_cache()
    assert cached(x).tolist() == transform(x).tolist() and cached.with_cache(cached._cache_size) is cached
    if name not in ("identity", "compose"):
        y = cached(x)
        assert cached.inv(y) is x


# -- constraints -------------------------------------------------------------------------------------------------------
#: expression: values, some of which satisfy it
CONSTRAINTS = {
    "boolean": ONE_HOT + np.array([0, 0, 0.5]),
    "real": np.array([1.0, np.nan]),
    "real_vector": np.array([[1.0, np.nan], [0.0, 1.0]]),
    "positive": LOC,
    "nonnegative": LOC.round(),
    "nonnegative_integer": LOC.round(),
    "positive_integer": np.array([-1.0, 0.0, 0.5, 1.0, 2.0]),
    "unit_interval": LOC.round(),
    "greater_than(0.5)": LOC,
    "greater_than_eq(1.0)": LOC.round(),
    "less_than(0.5)": LOC,
    "interval(-1.0, 0.5)": LOC,
    "half_open_interval(0.0, 1.0)": LOC.round(),
    "integer_interval(0, 2)": np.array([-1.0, 0.0, 1.5, 2.0, 3.0]),
    "multinomial(3)": np.array([[1.0, 2.0], [2.0, 2.0], [-1.0, 2.0]]),
    "simplex": np.concatenate([SIMPLEX, SIMPLEX + 0.1]),
    "one_hot": np.concatenate([ONE_HOT, ONE_HOT * 2, 1 - ONE_HOT]),
    "lower_triangular": np.stack([FACTOR, MATRIX]),
    "lower_cholesky": np.stack([FACTOR, -FACTOR, MATRIX]),
    "corr_cholesky": np.stack([UNIT_ROWS, FACTOR, -UNIT_ROWS]),
    "square": FACTOR,
    "symmetric": np.stack([FACTOR, MATRIX]),
    "positive_semidefinite": np.stack([MATRIX, -MATRIX]),
    "positive_definite": np.stack([MATRIX, -MATRIX]),
    "independent(constraints.positive, 1)": LOC,
    "cat([constraints.positive, constraints.real], 1, [1, 2])": LOC,
    "stack([constraints.positive, constraints.unit_interval], 0)": LOC,
    "MixtureSameFamilyConstraint(constraints.greater_than(0.5))": LOC,
}


@pytest.mark.parametrize("expression", CONSTRAINTS)
def test_constraints_are_pytorchs(expression):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    values = CONSTRAINTS[expression]
    theirs, ours = (
        eval(f"constraints.{expression}", {"constraints": framework.distributions.constraints})
        for framework in (torch, corefw)
    )
    assert ours.check(corefw.tensor(values)).tolist() == theirs.check(torch.tensor(values)).tolist()
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)


def test_matrices_that_are_not_square():
    for constraint in (constraints.square, constraints.symmetric, constraints.positive_definite):
        assert constraint.check(corefw.ones(4, 2, 3)).tolist() == [False] * 4


def test_dependent_constraints():
    assert constraints.is_dependent(D.Uniform.support) and not constraints.is_dependent(D.Uniform(0.0, 1.0).support)
    assert D.Uniform.support.event_dim == 0 and constraints.dependent(event_dim=1).event_dim == 1
    with pytest.raises(NotImplementedError, match="is_discrete"):
        constraints.dependent.is_discrete
    with pytest.raises(ValueError, match="dependent"):
        constraints.dependent.check(corefw.ones(1))


REGISTERED = {
    "real": 3,
    "positive": 3,
    "nonnegative": 3,
    "greater_than(0.5)": 3,
    "less_than(0.5)": 3,
    "unit_interval": 3,
    "interval(-1.0, 0.5)": 3,
    "half_open_interval(0.0, 2.0)": 3,
    "simplex": 3,
    "corr_cholesky": 3,
    "independent(constraints.positive, 1)": 3,
    "cat([constraints.positive, constraints.real], -1, [1, 2])": 3,
    "stack([constraints.positive, constraints.real, constraints.unit_interval], -1)": 3,
    "lower_cholesky": None,
    "positive_definite": None,
    "positive_semidefinite": None,
}


@pytest.mark.parametrize("expression", REGISTERED)
def test_registered_transforms_lead_to_the_constraint_as_pytorchs(expression):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    values = LOC if REGISTERED[expression] else MATRIX
    for registry in ("transform_to",) if REGISTERED[expression] is None else ("transform_to", "biject_to"):
        results = []
        for framework in (torch, corefw):
            constraint = eval(f"c.{expression}", {"c": (c := framework.distributions.constraints), "constraints": c})
            transform = getattr(framework.distributions, registry)(constraint)
            y = transform(framework.tensor(values))
            assert bool(constraint.check(y).all())
            if registry == "biject_to":
                np.testing.assert_allclose(transform.inv(y).numpy(), values, rtol=1e-7)
            results.append(y.numpy())
        np.testing.assert_allclose(results[1], results[0], rtol=1e-9)


def test_what_is_not_registered():
    with pytest.raises(NotImplementedError, match="Cannot transform Boolean"):
        transform_to(constraints.boolean)
    with pytest.raises(NotImplementedError, match="LowerCholesky"):
        biject_to(constraints.lower_cholesky)
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        transform_to.register(int, D.ExpTransform)

    class Mine(constraints.Constraint):
        pass

    registry = type(biject_to)()
    registry.register(Mine)(lambda constraint: D.ExpTransform())
    assert registry(Mine()) == D.ExpTransform()


# -- transformed distributions -----------------------------------------------------------------------------------------
def transformed(framework, kind):
    E, loc, scale = framework.distributions, framework.tensor(LOC), framework.tensor(SCALE)
    base = E.Normal(loc, scale)
    transforms = {
        "increasing": [E.TanhTransform(), E.AffineTransform(1.0, 2.0)],
        "decreasing": E.AffineTransform(loc, -scale),
        "wider": [E.AffineTransform(framework.tensor(REALS), 2.0)],
        "vectors": [E.StickBreakingTransform()],
        "reshaped": [E.ReshapeTransform((2, 3), (6,)), E.ExpTransform()],
        "none": [],
    }[kind]
    return E.TransformedDistribution(E.Independent(base, 1) if kind == "vectors" else base, transforms)


@pytest.mark.parametrize("kind", ["increasing", "decreasing", "wider", "vectors", "reshaped", "none"])
def test_transformed_distributions_are_pytorchs(kind):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    theirs, ours = transformed(torch, kind), transformed(corefw, kind)
    corefw.manual_seed(0)
    assert (*ours.batch_shape,) == (*theirs.batch_shape,) and (*ours.event_shape,) == (*theirs.event_shape,)
    assert ours.support.event_dim == theirs.support.event_dim and ours.has_rsample
    x = ours.rsample((4,))
    given = torch.tensor(x.numpy())
    np.testing.assert_allclose(ours.log_prob(x).numpy(), theirs.log_prob(given).numpy(), rtol=1e-9)
    if kind in ("increasing", "decreasing", "wider", "none"):
        level = ours.cdf(x)
        np.testing.assert_allclose(level.numpy(), theirs.cdf(given).numpy(), rtol=1e-9)
        np.testing.assert_allclose(ours.icdf(level).numpy(), x.numpy(), rtol=1e-6)
    wide = ours.expand((5, *ours.batch_shape))
    assert wide.sample((2,)).shape == (2, 5, *ours.batch_shape, *ours.event_shape)


ERRORS = {
    "cache": (lambda: D.ExpTransform(cache_size=2), ValueError, "0 or 1, got 2"),
    "no transform": (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), abs), ValueError, "must be a Transform"),
    "numbers": (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
        ValueError,
        "shape with size at least 1",
    ),
    "elements": (lambda: D.ReshapeTransform((2, 3), (5,)), ValueError, "different numbers of elements"),
    "shape": (lambda: D.ReshapeTransform((2, 3), (6,))(corefw.ones(3, 2)), ValueError, "expected a shape that ends in"),
    "dimensions": (lambda: D.IndependentTransform(D.ExpTransform(), 2)(corefw.ones(3)), ValueError, "too few dim"),
    "number": (lambda: D.StickBreakingTransform().forward_shape(()), ValueError, "expected a vector"),
    "length": (lambda: D.CorrCholeskyTransform().forward_shape((4,)), ValueError, "length 4"),
    "not square": (lambda: D.CorrCholeskyTransform().inverse_shape((3, 4)), ValueError, "square"),
    "parts": (lambda: D.CatTransform([D.ExpTransform()])(corefw.ones(2)), ValueError, "expected the size 1"),
    "slices": (lambda: D.StackTransform([D.ExpTransform()])(corefw.ones(2)), ValueError, "expected the size 1"),
    "sign": (lambda: D.SoftmaxTransform().sign, NotImplementedError, "SoftmaxTransform has no sign"),
    "jacobian": (
        lambda: D.SoftmaxTransform().log_abs_det_jacobian(corefw.ones(2), corefw.ones(2)),
        NotImplementedError,
        "log_abs_det_jacobian",
    ),
    "two sizes": (lambda: D.ReshapeTransform((2,), (2, 1)).event_dim, ValueError, "domain.event_dim"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()
