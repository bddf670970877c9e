"""corefw.func: derivatives against PyTorch's, finite differences and each other; nesting, history, and bad input."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import corefw
from corefw import func
from corefw.func import jacobians

#: of PyTorch's forward mode, which compiles its formulas
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

rng = np.random.default_rng(0)
X, V, W = rng.uniform(0.5, 1.5, (3, 4)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
Pair = namedtuple("Pair", "first second")

#: functions of a (3, 4) and a (4, 2) matrix, to a matrix, a scalar, and trees of them
FUNCTIONS = {
    "product": lambda torch, x, w: (x @ w).tanh(),
    "scalar": lambda torch, x, w: ((x * x) @ w).sigmoid().sum(),
    "softmax": lambda torch, x, w: torch.softmax(x, -1) @ w,
    "norm": lambda torch, x, w: torch.nn.functional.layer_norm(x, (4,)) @ w,
    "views": lambda torch, x, w: x.t()[1:].reshape(3, 3).cumsum(0) + w.max(),
    "inplace": lambda torch, x, w: (x * 2).add_(w.sum()).mul_(3).square()[:, :2] @ w[:2],
    "parts": lambda torch, x, w: {"a": x.log(), "b": [x.sum() * w, (w * w,)]},
    "one input": lambda torch, x, w: x.sin(),
    "no input": lambda torch, x, w: torch.ones(2, dtype=torch.float64),
    "losses": lambda torch, x, w: torch.nn.functional.cross_entropy(x @ w, torch.tensor([0, 1, 1])),
}


def tensors(torch, *arrays):
    return tuple(torch.tensor(array) for array in arrays)


def arrays(tree):
    """The elements of the tensors in a tree, in order."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        return [array for branch in tree for array in arrays(branch)]
    return [np.asarray(tree.detach())]


def like(ours, theirs, rtol=1e-9):
    ours, theirs = arrays(ours), arrays(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-11)


def differences(function, x, v):
    """The derivative of a function of an array along `v`."""
    return (function(x + 1e-6 * v) - function(x - 1e-6 * v)) / 2e-6


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("transform", ["jacrev", "jacfwd", "jvp", "vjp", "linearize", "hessian"])
def test_derivatives_are_pytorchs(torch, transform, name):
    if transform == "hessian" and name == "no input":
        pytest.skip("the Hessian of nothing, in PyTorch too")

    def derivative(library):
        def function(x, w):
            return FUNCTIONS[name](library, x, w)

        x, v, w = tensors(library, X, V, W)
        if transform == "jvp":
            return library.func.jvp(function, (x, w), (v, w))
        if transform == "linearize":
            output, product = library.func.linearize(function, x, w)
            return output, product(v, w), product(x, w)
        if transform == "vjp":
            output, product = library.func.vjp(function, x, w)
            return output, product(output), product(output)
        return getattr(library.func, transform)(function, argnums=(0, 1))(x, w)

    if transform == "linearize" and name in ("no input", "parts"):
        pytest.skip("PyTorch cannot linearize functions with constant or nested outputs")
    if transform == "linearize" and name == "inplace":
        pytest.skip("PyTorch's second product is wrong where a function changes its values in place")
    like(derivative(corefw), derivative(torch))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("parts", "no input")])
def test_products_are_finite_differences(name):
    x, v, w = tensors(corefw, X, V, W)

    def function(x):
        return FUNCTIONS[name](corefw, x, w)

    wanted = differences(lambda array: function(corefw.tensor(array)).numpy(), X, V)
    output, product = func.jvp(function, (x,), (v,))
    like(output, function(x))
    like(product, corefw.tensor(wanted), rtol=1e-5)
    like((func.jacfwd(function)(x) * v).sum((-1, -2)), product)
    like(func.linearize(function, x)[1](v), product)


def test_gradients_of_any_order_of_a_cube():
    cube = lambda x: x**3
    x = corefw.tensor(2.0)
    assert func.grad(cube)(x).item() == 12
    assert func.grad(func.grad(cube))(x).item() == 12
    assert func.grad(func.grad(func.grad(cube)))(x).item() == 6
    assert func.grad(func.grad(func.grad(func.grad(cube))))(x).item() == 0
    assert func.jvp(func.grad(cube), (x,), (x,))[1].item() == 24
    assert func.jvp(lambda t: func.jvp(cube, (x,), (t,))[1], (x,), (x,))[1].item() == 24
    assert func.jvp(lambda t: func.jvp(cube, (t,), (x,))[1], (x,), (corefw.tensor(1.0),))[1].item() == 24
    assert func.hessian(func.grad(cube))(x).item() == 6


def test_levels_do_not_mix():
    """d/dx (x * d/dy (x + y)) is 1, and not the 2 of a derivative that takes x for y."""
    x = corefw.tensor(3.0)
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(x))(x).item() == 1
    assert func.grad(lambda x: x * func.jvp(lambda y: x + y, (x,), (corefw.tensor(1.0),))[1])(x).item() == 1
    assert func.jvp(lambda x: x * func.grad(lambda y: x * y)(x), (x,), (corefw.tensor(1.0),))[1].item() == 6


def test_a_result_has_a_history_only_where_it_leads_out():
    cube = lambda x: (x**3).sum()
    plain, leaf = corefw.tensor([1.0, 2.0]), corefw.tensor([1.0, 2.0], requires_grad=True)
    for transform in (func.grad, func.jacrev, func.jacfwd, func.hessian):
        assert not transform(cube)(plain).requires_grad
        assert transform(cube)(leaf).requires_grad
        with corefw.no_grad():
            assert not transform(cube)(leaf).requires_grad
        assert not transform(lambda x: func.grad(cube)(x).sum() + func.vjp(cube, x)[0])(plain).requires_grad
    assert not func.vjp(cube, plain)[0].requires_grad
    assert not func.jvp(cube, (plain,), (plain,))[1].requires_grad
    assert func.jvp(cube, (plain,), (leaf,))[1].requires_grad
    assert func.vjp(cube, plain)[1](corefw.tensor(1.0, requires_grad=True))[0].requires_grad
    func.grad(cube)(leaf).sum().backward()
    assert leaf.grad.tolist() == [6.0, 12.0]
    assert plain.grad is None and not plain.requires_grad


def test_tensors_of_the_program_keep_their_part():
    """What a function reads beside its arguments is constant to the transform and no constant to the program."""
    weight = corefw.tensor(5.0, requires_grad=True)
    slope = func.grad(lambda x: weight * x * x)(corefw.tensor(3.0))
    assert slope.item() == 30
    assert corefw.autograd.grad(slope, weight)[0].item() == 6
    value = func.vjp(lambda x: (weight, x), corefw.tensor(3.0))[0]
    assert value[0] is weight and not value[1].requires_grad


def test_levels_that_ended_leave_no_history():
    """d/dx (x * d/dy (y * y * x) at 5) is 20 x; what was y is nobody's any more."""
    five = corefw.tensor(5.0)
    slope = func.grad(lambda x: x * func.grad(lambda y: y * y * x)(five))(corefw.tensor(3.0))
    assert slope.item() == 60 and not slope.requires_grad
    assert not func.jvp(lambda x: x * func.grad(lambda y: y * y * x)(five), (five,), (five,))[0].requires_grad


def test_gradients_are_recorded_inside_of_no_grad():
    with corefw.no_grad():
        assert func.grad(lambda x: x * x)(corefw.tensor(3.0)).item() == 6
    seen = func.grad(lambda x: x * x.detach())(corefw.tensor(3.0))
    assert seen.item() == 3


def test_gradients_have_the_form_of_the_arguments():
    x, w = tensors(corefw, X, W)

    def loss(tree, scale):
        return ((tree["x"] @ tree["rest"][0]) * scale).sum() + tree["pair"].first.sum()

    tree = OrderedDict(x=x, rest=[w], pair=Pair(x, x))
    found, (value, aux) = func.grad_and_value(lambda *a: (loss(*a), {"twice": a[0]["x"] * 2}), has_aux=True)(tree, 2.0)
    assert type(found) is OrderedDict and list(found) == ["x", "rest", "pair"] and type(found["pair"]) is Pair
    assert found["pair"].second.abs().max().item() == 0
    like(found["rest"][0], corefw.tensor(2 * X.sum(0)[:, None] + 0 * W))
    like(value, loss(tree, 2.0))
    like(aux, x * 2)
    both = func.grad(loss, argnums=(1, 0))(tree, corefw.tensor(2.0, dtype=corefw.float64))
    assert isinstance(both, tuple) and both[0].shape == ()


def test_complex_arguments(torch):
    z = rng.standard_normal(3) + 1j * rng.standard_normal(3)

    def derivatives(library):
        (point,) = tensors(library, z)
        square = lambda z: (z * z.conj()).real.sum()
        return (
            library.func.grad(square)(point),
            library.func.jvp(lambda z: z * z.exp(), (point,), (point * 1j,)),
            library.func.jvp(square, (point,), (point * 1j + 1,)),
        )

    like(derivatives(corefw), derivatives(torch))


def test_empty_arguments():
    empty = corefw.zeros(0, 2)
    assert func.grad(lambda x: x.sum())(empty).shape == (0, 2)
    assert func.jacrev(lambda x: x * 2)(empty).shape == (0, 2, 0, 2)
    assert func.jacfwd(lambda x: x.sum(0))(empty).shape == (2, 0, 2)


def test_noncontiguous_arguments():
    x = corefw.tensor(X).t()
    like(func.jacrev(lambda x: x * x)(x).sum((2, 3)), 2 * x)
    like(func.jacfwd(lambda x: x * x)(x).sum((2, 3)), 2 * x)


@pytest.mark.parametrize(("chunk_size", "backwards"), [(None, 2), (1, 6), (3, 3), (4, 2), (100, 2)])
@pytest.mark.parametrize("copied", [False, True])
def test_rows_of_jacobians_come_in_chunks(chunk_size, backwards, copied, monkeypatch):
    counted = []
    one_pass = jacobians.vector_jacobian
    monkeypatch.setattr(jacobians, "vector_jacobian", lambda *given: counted.append(0) or one_pass(*given))
    x, w = corefw.tensor(X[0, :2]), corefw.tensor(W[:2])
    function = lambda x, w: (x @ w, (x * w).sin().cumsum(0), corefw.ones(0))  # outputs of 2, 4 and 0 elements
    given = {"chunk_size": chunk_size, "_preallocate_and_copy": copied}
    found = func.jacrev(function, (0, 1), **given)(x, w)
    like(found, func.jacfwd(function, (0, 1))(x, w))
    assert len(counted) == backwards
    twice = func.jacrev(func.jacrev(lambda x: (x**3).sum(), **given), **given)(x)
    like(twice, corefw.diag(6 * x))


square = lambda x: (x * x).sum()
BAD = {
    "no scalar": (lambda t, x: t.func.grad(lambda x: x * 2)(x), "to return a scalar Tensor, got tensor with 1 dims"),
    "no tensor": (lambda t, x: t.func.grad(lambda x: 3.0)(x), "to return a Tensor, got <class 'float'>"),
    "several": (lambda t, x: t.func.grad(lambda x: (x.sum(), 1))(x), "to return a Tensor, got <class 'tuple'>"),
    "aux": (lambda t, x: t.func.grad(square, has_aux=True)(x), r"should be a tuple: \(output, aux\) if has_aux"),
    "aux leaf": (lambda t, x: t.func.grad(lambda x: (x.sum(), "a"), has_aux=True)(x), "got unsupported type <class 's"),
    "argnum": (lambda t, x: t.func.grad(square, argnums=1)(x), "Got argnum=1, but only 1 positional inputs"),
    "argnums none": (lambda t, x: t.func.grad(square, argnums=())(x), "argnums must be non-empty"),
    "argnums twice": (lambda t, x: t.func.jacrev(square, argnums=(0, 0))(x), "argnums elements must be unique"),
    "argnums kind": (lambda t, x: t.func.jacrev(square, argnums="a")(x), "argnums must be int or Tuple"),
    "number": (lambda t, x: t.func.grad(square)(3.0), "Thing passed to transform API must be Tensor, got <class 'fl"),
    "integers": (lambda t, x: t.func.grad(square)(x.to(t.int64)), "floating point"),
    "cotangent shape": (lambda t, x: t.func.vjp(lambda x: x * 2, x)[1](t.ones(2)), "Mismatch in shape"),
    "cotangent kind": (lambda t, x: t.func.vjp(lambda x: x * 2, x)[1](1.0), "gradients can be either Tensors or None"),
    "cotangent form": (lambda t, x: t.func.vjp(lambda x: x * 2, x)[1]((x,)), "structure of cotangents to be the same"),
    "output": (lambda t, x: t.func.vjp(lambda x: 2, x), "to return only tensors, got unsupported type <class 'int'>"),
    "tangent shape": (lambda t, x: t.func.jvp(square, (x,), (t.ones(2),)), None),
    "primals": (lambda t, x: t.func.jvp(square, x, x), "Expected primals to be a tuple"),
    "tangents": (lambda t, x: t.func.jvp(square, (x,), (x, x)), "to have the same python structure"),
    "no primals": (lambda t, x: t.func.jvp(square, (), ()), "to contain at least one Tensor"),
    "strict": (lambda t, x: t.func.jvp(lambda x: t.ones(2), (x,), (x,), strict=True), "independent of the inputs"),
    "linearize": (lambda t, x: t.func.linearize(square, x)[1](t.ones(2)), r"tangent:0 with shape torch.Size\(\[2\]\)"),
    "chunk": (lambda t, x: t.func.jacrev(square, chunk_size=0)(x), "`chunk_size` should be greater than 0"),
    "randomness": (lambda t, x: t.func.jacfwd(square, randomness="foo")(x), "'error', 'different', or 'same'. Got foo"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told(name):
    wrong, message = BAD[name]
    with pytest.raises((RuntimeError, ValueError, TypeError), match=message) as ours:
        wrong(corefw, corefw.ones(3))
    theirs = pytest.importorskip("torch")
    with pytest.raises((RuntimeError, ValueError, TypeError), match=message) as error:
        wrong(theirs, theirs.ones(3))
    assert isinstance(ours.value, error.type)
