"""corefw.vmap beside PyTorch's: dimensions of arguments and outputs, nesting in derivatives, modules, chunks, in-place
changes, and the errors of what cannot be."""

import numpy as np
import pytest

import corefw

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]  # of PyTorch's loops and forward mode
rng = np.random.default_rng(0)
X, W, PLACES = rng.standard_normal((3, 4, 5)), rng.standard_normal((5, 2)), rng.integers(0, 4, (3, 2))
WEIGHTS = [rng.standard_normal((3, 2, 5)), rng.standard_normal((3, 2))]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def model(torch, i):
    """A small network; its weights are other ones for each i."""
    layer = torch.nn.Linear(5, 2).double()
    layer.load_state_dict({"weight": torch.tensor(WEIGHTS[0][i]), "bias": torch.tensor(WEIGHTS[1][i])})
    return torch.nn.Sequential(layer, torch.nn.Tanh())


def ensemble(torch, x, w):
    """The models of PyTorch's tutorial on ensembles: other examples for each, and the same for all."""
    parameters, buffers = torch.func.stack_module_state([model(torch, i) for i in range(3)])
    net = model(torch, 0)
    run = lambda p, b, x: torch.func.functional_call(net, (p, b), (x,))
    return [torch.vmap(run)(parameters, buffers, x), torch.vmap(run, in_dims=(0, 0, None))(parameters, buffers, x[0])]


def gradients_per_sample(torch, x, w):
    """PyTorch's tutorial on gradients per sample."""
    net = model(torch, 0)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, sample, target):
        found = torch.func.functional_call(net, parameters, (sample.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(found, target.unsqueeze(0))

    slope = torch.func.grad_and_value(loss)
    return torch.vmap(slope, in_dims=(None, 0, 0))(parameters, x[0], torch.tensor([0, 1, 1, 0]))


def energy(x):
    return (x**3).sum() * x.prod()


def changed(torch, x, w):
    """In place: a batched tensor by what is batched, and what is not."""

    def change(x, at):
        y = torch.zeros_like(x)
        y[0] = x.sum()
        y[at] += 2
        y.add_(w.sum()).mul_(x)[1:].clamp_(min=0)
        return y

    return torch.vmap(change)(x, torch.tensor(PLACES))


def nested(torch, x, w):
    return [
        torch.vmap(torch.vmap(torch.vmap(lambda a, b: a * b, (None, 0)), (0, None)), (0, None))(x[0], w[0]),
        torch.vmap(torch.vmap(lambda a: a.cumsum(0).topk(2)[0], 1), 0, 1)(x),
        torch.vmap(lambda a: torch.vmap(lambda b: (a * b).sum() + b, out_dims=1)(a), in_dims=2, out_dims=-1)(x),
    ]


PROGRAMS = {
    "dimensions": lambda torch, x, w: [
        torch.vmap(lambda a: (a @ w).softmax(-1), 1, 2)(x),
        torch.vmap(lambda a, b: torch.where(a > 0, a, b.sum()), (-2, None), -1)(x, w),
        torch.vmap(lambda tree, c: (tree["a"] * tree["b"][0].sum(), c), ({"a": -1, "b": (0, None)}, None), (1, None))(
            {"a": x, "b": (w, 2.0)}, w
        ),
        torch.vmap(lambda a: {"s": a.sum(), "t": [a, a.t()]}, out_dims={"s": 0, "t": [1, -1]})(x),
        torch.vmap(lambda a, *, scale: a * scale, in_dims=2)(x, scale=w[0, 0]),
        torch.vmap(lambda a: w)(x),
        torch.vmap(lambda a: a.sum(0), in_dims=1, out_dims=1, chunk_size=2)(x),
    ],
    "nested": nested,
    "grad": lambda torch, x, w: torch.vmap(torch.func.grad(lambda w, a: ((a @ w) ** 3).sum()), (None, 0))(w, x),
    "jvp": lambda torch, x, w: torch.vmap(lambda a: torch.func.jvp(energy, (a,), (a,)))(x[0]),
    "vjp": lambda torch, x, w: torch.vmap(torch.func.vjp(torch.sin, x[0, 0])[1])(torch.eye(5, dtype=x.dtype)),
    "jacrev": lambda torch, x, w: torch.vmap(torch.func.jacrev(lambda a: (a @ w).tanh()))(x[0]),
    "jacfwd": lambda torch, x, w: torch.vmap(torch.func.jacfwd(lambda a: (a @ w).tanh()))(x[0]),
    "hessian": lambda torch, x, w: torch.vmap(torch.func.hessian(energy))(x[0]),
    "grad of vmap": lambda torch, x, w: torch.func.grad(lambda w: torch.vmap(lambda a: (a @ w).sin())(x).sum())(w),
    "ensemble": ensemble,
    "gradients per sample": gradients_per_sample,
    "in place": changed,
    "places": lambda torch, x, w: [
        torch.vmap(lambda a, i: a[i])(x, torch.tensor(PLACES)),
        torch.vmap(lambda a, i: a[:, i])(x, torch.tensor(PLACES)),
        torch.vmap(lambda a, i: a[None, :, None][:, i, :, i])(x, torch.tensor(PLACES)),
        torch.vmap(lambda a, i: a.index_put((i,), a[0], accumulate=True))(x, torch.tensor(PLACES)),
        torch.vmap(lambda a, i: a.index_add(1, i, a[:, :2]).index_fill(0, i[:1], 7.0))(x, torch.tensor(PLACES)),
    ],
    "linear algebra": lambda torch, x, w: [
        torch.vmap(torch.linalg.matrix_exp)(x[:, :, :4]),
        torch.vmap(lambda a: torch.linalg.lu_factor(a)[0])(x[:, :, :4]),
        torch.vmap(torch.cholesky_inverse)(x[:, :, :4].tril()),
    ],
}  # fmt: skip


def arrays(tree):
    """The elements of the tensors in a tree, in order."""
    tree = list(tree.values()) if isinstance(tree, dict) else tree
    return [a for one in tree for a in arrays(one)] if isinstance(tree, list | tuple) else [np.asarray(tree.detach())]


@pytest.mark.parametrize("name", PROGRAMS)
def test_vmap_is_pytorchs(torch, name):
    ours, theirs = (
        arrays(PROGRAMS[name](library, library.tensor(X), library.tensor(W))) for library in (corefw, torch)
    )
    assert [one.shape for one in ours] == [one.shape for one in theirs]
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_are_as_independent_as_pytorchs(torch, randomness):
    def equal(library):
        x, p = library.zeros(3, 30), library.full((30,), 0.5)
        draws = [
            lambda x: library.rand(30) + x, lambda x: library.randn_like(x), lambda x: library.randperm(30) + 0 * x,
            lambda x: library.nn.functional.dropout(x + 1), lambda x: library.bernoulli(p) + x,
            lambda x: library.multinomial(p, 20) + x[:20], lambda x: library.nn.functional.dropout(p) + x,
            lambda x: x.clone().uniform_(),
        ]  # fmt: skip
        found = [library.vmap(draw, randomness=randomness)(x) for draw in draws]
        return [bool((rows[0] == rows[1]).all()) for rows in found]

    assert equal(corefw) == equal(torch) == [randomness == "same"] * 8


FAILURES = {
    "in_dims is a string": lambda torch, x: torch.vmap(torch.sin, "0")(x),
    "no inputs": lambda torch, x: torch.vmap(lambda: x)(),
    "in_dims does not fit": lambda torch, x: torch.vmap(torch.sin, (0, 0))(x),
    "in_dims out of range": lambda torch, x: torch.vmap(torch.sin, 4)(x),
    "no dimension": lambda torch, x: torch.vmap(torch.sin, (None,))(x),
    "a number": lambda torch, x: torch.vmap(torch.mul)(x, 2.0),
    "sizes differ": lambda torch, x: torch.vmap(torch.mul, (0, 1))(x, x),
    "no tensor returned": lambda torch, x: torch.vmap(lambda x: None)(x),
    "a number returned": lambda torch, x: torch.vmap(lambda x: 1.0)(x),
    "out_dims does not fit": lambda torch, x: torch.vmap(torch.sin, out_dims=(0, 0))(x),
    "out_dims is None": lambda torch, x: torch.vmap(torch.sin, out_dims=None)(x),
    "out_dims out of range": lambda torch, x: torch.vmap(torch.sin, out_dims=3)(x),
    "randomness": lambda torch, x: torch.vmap(torch.sin, randomness="any")(x),
    "chunk_size": lambda torch, x: torch.vmap(torch.sin, chunk_size=0)(x),
    "item": lambda torch, x: torch.vmap(lambda x: x.sum().item())(x),
    "an if": lambda torch, x: torch.vmap(lambda x: x if x.sum() > 0 else -x)(x),
    "nonzero": lambda torch, x: torch.vmap(torch.nonzero)(x),
    "a mask": lambda torch, x: torch.vmap(lambda x: x[x > 0])(x),
    "in place": lambda torch, x: torch.vmap(lambda x: torch.zeros(3, dtype=x.dtype).add_(x))(x),
    "random": lambda torch, x: torch.vmap(lambda x: x + torch.rand(3))(x),
}


@pytest.mark.parametrize("name", FAILURES)
def test_errors_have_pytorchs_types(torch, name):
    with pytest.raises(Exception) as theirs:
        FAILURES[name](torch, torch.ones(2, 3))
    with pytest.raises(theirs.type):
        FAILURES[name](corefw, corefw.ones(2, 3))
