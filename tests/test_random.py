"""Random functions: the bits of docs/random.md, generators and their state, distributions, refusals, dropout."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

import corefw as torch
import corefw.nn.functional as F
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import registry
from corefw.tensor import wrap
from corefw_numpy import philox

SEED = 1234


def bits(tensor):
    return tensor.numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 4), (3, 1001)])
def test_streams_are_those_of_the_specification(kind, dtype, shape):
    d = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(SEED)
    function = {"uniform": torch.rand, "normal": torch.randn}[kind]
    offset = 0
    for _ in range(2):  # the second call begins where the first ended
        made = function(shape, generator=generator, dtype=d)
        wanted = getattr(philox, kind)(np, shape, d.numpy, SEED, offset)
        assert made.dtype is d and made.array.shape == wanted.shape
        if kind == "uniform":
            assert made.array.tobytes() == np.asarray(wanted).tobytes()
        else:  # each backend is within 4 units in the last place of the real value
            wide = "complex128" if d.is_complex else "float64"
            np.testing.assert_allclose(made.array.astype(wide), wanted.astype(wide), 8 * torch.finfo(d).eps, 0)
        offset += philox.consumed(kind, math.prod(shape), d.numpy)
    assert generator.get_offset() == offset


@pytest.mark.parametrize("n", [1, 100, 2049, 40_001])
def test_permutations_are_the_stable_order_of_the_keys(n):
    generator = torch.Generator().manual_seed(SEED)
    assert (torch.randperm(n, generator=generator).numpy() == philox.permutation(np, n, "int64", SEED, 0)).all()


@pytest.mark.parametrize("shape", [(7,), (1000,), (3, 301)])
@pytest.mark.parametrize(("count", "replacement"), [(1, False), (5, False), (500, True)])
def test_draws_in_proportion_to_weights(shape, count, replacement):
    weights = np.random.random(shape)
    weights[..., 1] = 0
    made = torch.from_numpy(weights).multinomial(count, replacement, generator=torch.Generator().manual_seed(SEED))
    assert (made.numpy() == philox.multinomial(np, weights, count, replacement, SEED, 0)).all()


@pytest.mark.parametrize(
    ("draw", "kind", "values", "wanted"),
    [
        (
            lambda g: torch.randint(-3, 7, (5,), generator=g),
            "integers",
            5,
            lambda p: p.integers(np, (5,), "int64", SEED, 0, -3, 7),
        ),
        (lambda g: torch.randperm(6, generator=g), "permutation", 6, lambda p: p.permutation(np, 6, "int64", SEED, 0)),
        (
            lambda g: torch.zeros(5).bernoulli_(0.3, generator=g),
            "bernoulli",
            5,
            lambda p: p.bernoulli(np, (5,), "float32", SEED, 0, 0.3),
        ),
        (
            lambda g: torch.bernoulli(torch.tensor([0.3, 0.6]), generator=g),
            "bernoulli",
            2,
            lambda p: p.bernoulli(np, (2,), "float32", SEED, 0, np.float32([0.3, 0.6])),
        ),
        (
            lambda g: torch.zeros(5).exponential_(2, generator=g),
            "exponential",
            5,
            lambda p: p.exponential(np, (5,), "float32", SEED, 0, 2.0),
        ),
        (
            lambda g: torch.zeros(5).cauchy_(1, 2, generator=g),
            "cauchy",
            5,
            lambda p: p.cauchy(np, (5,), "float32", SEED, 0, 1.0, 2.0),
        ),
        (
            lambda g: torch.zeros(5).log_normal_(0, 1, generator=g),
            "log_normal",
            5,
            lambda p: p.log_normal(np, (5,), "float32", SEED, 0, 0.0, 1.0),
        ),
        (
            lambda g: torch.zeros(5, dtype=torch.int64).geometric_(0.2, generator=g),
            "geometric",
            5,
            lambda p: p.geometric(np, (5,), "int64", SEED, 0, 0.2),
        ),
        (
            lambda g: torch.zeros(5).uniform_(-1, 3, generator=g),
            "uniform",
            5,
            lambda p: p.uniform(np, (5,), "float32", SEED, 0, -1.0, 3.0),
        ),
        (
            lambda g: torch.multinomial(torch.tensor([[1.0, 2, 3], [0, 1, 1]]), 4, True, generator=g),
            "multinomial",
            8,
            lambda p: p.multinomial(np, np.float32([[1, 2, 3], [0, 1, 1]]), 4, True, SEED, 0),
        ),
        (
            lambda g: torch.multinomial(torch.tensor([[1.0, 2, 3], [0, 1, 1]]), 2, generator=g),
            "multinomial",
            6,
            lambda p: p.multinomial(np, np.float32([[1, 2, 3], [0, 1, 1]]), 2, False, SEED, 0),
        ),
    ],
)
def test_kinds(draw, kind, values, wanted):
    generator = torch.Generator().manual_seed(SEED)
    made = draw(generator)
    assert bits(made) == np.asarray(wanted(philox)).tobytes()
    assert generator.get_offset() == philox.consumed(kind, values, made.array.dtype)


def test_numbers_do_not_depend_on_memory_order():
    torch.manual_seed(0)
    plain = torch.rand_like(torch.zeros(2, 3))
    torch.manual_seed(0)
    assert torch.equal(torch.rand_like(torch.zeros(3, 2).t()), plain)
    torch.manual_seed(0)
    assert torch.equal(torch.zeros(3, 2).t().uniform_(), plain)


# -- generators -------------------------------------------------------------------------------------------------------
def test_manual_seed_and_state():
    assert torch.manual_seed(7) is torch.default_generator and torch.initial_seed() == 7
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(3), first)
    assert state.dtype is torch.uint8 and state.shape == (16,)
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1
    assert torch.seed() == torch.initial_seed()
    with pytest.raises(ValueError, match="Overflow"):
        torch.manual_seed(2**64)


def test_generators_are_independent_and_can_be_copied():
    g = torch.Generator().manual_seed(3)
    torch.rand(5, generator=g)
    copies = [g.clone_state(), pickle.loads(pickle.dumps(g))]
    copies.append(torch.Generator())
    copies[-1].set_state(g.get_state())
    wanted = torch.rand(3, generator=g)
    assert all(torch.equal(torch.rand(3, generator=copy), wanted) for copy in copies)
    assert torch.Generator().initial_seed() == 67280421310721


@pytest.mark.parametrize("state", [5, torch.zeros(16), torch.zeros(3, dtype=torch.uint8)])
def test_wrong_states(state):
    with pytest.raises((TypeError, RuntimeError)):
        torch.Generator().set_state(state)


def test_fork_rng():
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(3)
    after = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3), after)


# -- distributions ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fill", "distribution"),
    [
        (lambda t: t.uniform_(-1, 2), stats.uniform(-1, 3)),
        (lambda t: t.normal_(1, 2), stats.norm(1, 2)),
        (lambda t: t.exponential_(0.5), stats.expon(scale=2)),
        (lambda t: t.cauchy_(1, 2), stats.cauchy(1, 2)),
        (lambda t: t.log_normal_(0.5, 0.25), stats.lognorm(0.25, scale=math.exp(0.5))),
    ],
)
def test_continuous_distributions(fill, distribution):
    torch.manual_seed(0)
    sample = fill(torch.empty(20000, dtype=torch.float64)).numpy()
    assert stats.kstest(sample, distribution.cdf).pvalue > 1e-3


def test_normal_with_tensors():
    torch.manual_seed(0)
    z = torch.randn(2, 3)
    for mean, std in ((1.0, torch.tensor([1.0, 2, 3])), (torch.ones(2, 1), 2.0), (torch.ones(2, 1), torch.ones(3))):
        torch.manual_seed(0)
        made = torch.normal(mean, std)
        full = torch.zeros(made.shape) + mean
        torch.manual_seed(0)
        assert torch.allclose(made, torch.randn(made.shape) * std + full)
    torch.manual_seed(0)
    assert torch.equal(torch.normal(0.0, 1.0, (2, 3)), z)


def test_parameters_of_normal_numbers_have_no_influence_on_the_gradient():
    mean, std = torch.ones(2, 1).requires_grad_(), torch.ones(3).requires_grad_()
    for made in (torch.normal(mean, std), torch.normal(mean, 2.0), torch.normal(0.0, std)):
        assert made.grad_fn.name() == "NormalBackward0"
        made.sum().backward()
    assert mean.grad.tolist() == [[0.0], [0.0]] and std.grad.tolist() == [0.0, 0.0, 0.0]
    assert not torch.normal(mean.detach(), std.detach()).requires_grad


@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.7, 6.0, 40.0, 1e4])
def test_poisson(rate):
    generator = torch.Generator().manual_seed(SEED)
    made = torch.poisson(torch.full((2000,), rate), generator).numpy()
    level = philox.uniform(np, (2000,), "float64", SEED, 0, 0.0, 1.0)
    expected = stats.poisson.ppf(level, np.float32(rate))
    assert made.dtype == np.float32 and (made == np.maximum(expected, 0)).all()
    assert int.from_bytes(generator.get_state().numpy()[8:].tobytes(), "little") == 1000


def test_poisson_has_a_gradient_of_zero():
    rate = torch.ones(3, requires_grad=True)
    torch.poisson(rate).sum().backward()
    assert rate.grad.tolist() == [0, 0, 0]


def test_rrelu():
    x = torch.tensor([-1.0, -2.0, 0.0, 3.0], requires_grad=True)
    drawn = torch.rrelu(x, 0.25, 0.5, True, generator=torch.Generator().manual_seed(SEED))
    slopes = philox.uniform(np, (4,), "float32", SEED, 0, 0.25, 0.5)
    slopes[3] = 1
    assert (drawn.detach().numpy() == x.detach().numpy() * slopes).all()
    drawn.sum().backward()
    assert (x.grad.numpy() == slopes).all()
    layer = torch.nn.RReLU(0.25, 0.75)
    assert layer.eval()(x).tolist() == [-0.5, -1, 0, 3] and repr(layer) == "RReLU(lower=0.25, upper=0.75)"
    y = x.detach().clone()
    assert torch.rrelu_(y, 0.25, 0.75) is y and torch.nn.RReLU(1, 1, inplace=True)(y) is y and y[1] == -1


def test_multinomial_draws_each_position_once():
    drawn = torch.multinomial(torch.rand(7, 5) + 0.1, 5)
    assert drawn.sort(-1).values.tolist() == [list(range(5))] * 7


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.rand(2, dtype=torch.int64), NotImplementedError, "check_uniform_bounds"),
        (lambda: torch.randn(2, dtype=torch.bool), NotImplementedError, "normal_kernel_cpu"),
        (lambda: torch.rand(2, generator=5), TypeError, "generator"),
        (lambda: torch.rand(-1), RuntimeError, "negative dimension"),
        (lambda: torch.randint(5, 3, (2,)), RuntimeError, "'from' to be less than 'to'"),
        (
            lambda: torch.randint(0, 300, (2,), dtype=torch.uint8),
            RuntimeError,
            "to - 1 is out of bounds for unsigned char",
        ),
        (lambda: torch.randint(-1, 3, (2,), dtype=torch.uint8), RuntimeError, "from is out of bounds"),
        (lambda: torch.randint(0, 3.5, (2,)), TypeError, "high"),
        (lambda: torch.randint(0, 3, 2), TypeError, "invalid combination"),
        (lambda: torch.randperm(-1), RuntimeError, "negative"),
        (lambda: torch.randperm(300, dtype=torch.uint8), RuntimeError, "without overflow"),
        (lambda: torch.normal(2.0, -1.0, (2,)), RuntimeError, "std >= 0.0"),
        (lambda: torch.normal(torch.ones(2), -torch.ones(2)), RuntimeError, "std >= 0.0"),
        (lambda: torch.normal(2.0, 1.0), TypeError, "size"),
        (lambda: torch.bernoulli(torch.tensor([2.0])), RuntimeError, "p_in <= 1"),
        (lambda: torch.bernoulli(torch.tensor([1])), NotImplementedError, "bernoulli_tensor_cpu_p_"),
        (lambda: torch.zeros(2).bernoulli_(-1), RuntimeError, "got p=-1"),
        (lambda: torch.poisson(torch.tensor([-1.0])), RuntimeError, "expected rate to be non-negative"),
        (lambda: torch.poisson(torch.tensor([1])), NotImplementedError, "poisson_cpu"),
        (lambda: torch.binomial(torch.tensor([1]), torch.tensor([0.5])), ValueError, "for count, got: Long"),
        (lambda: torch.binomial(torch.ones(1), torch.ones(1).double()), RuntimeError, "Double but expected Float"),
        (lambda: ops.standard_gamma(torch.tensor([1])), NotImplementedError, "not supported for int64"),
        (lambda: torch.rrelu(torch.ones(2), 0.5, 0.25), RuntimeError, "Lower bound"),
        (lambda: torch.rrelu(torch.tensor([1]), training=True), NotImplementedError, "rrelu_with_noise"),
        (lambda: torch.multinomial(torch.ones(2, 3), 4), RuntimeError, "without replacement"),
        (lambda: torch.multinomial(torch.ones(2, 3), 0), RuntimeError, "n_sample <= 0"),
        (lambda: torch.multinomial(torch.ones(2, 2, 2), 1), RuntimeError, "1 or 2 dim"),
        (lambda: torch.multinomial(torch.tensor([-1.0, 2]), 1), RuntimeError, "element < 0"),
        (lambda: torch.multinomial(torch.zeros(2), 1), RuntimeError, "sum of probabilities"),
        (lambda: torch.zeros(3).uniform_(2, 1), RuntimeError, "from=2 > to=1"),
        (lambda: torch.zeros(3).uniform_(0, math.inf), RuntimeError, "to is out of bounds"),
        (lambda: torch.zeros(3).exponential_(0), RuntimeError, "lambda > 0.0"),
        (lambda: torch.zeros(3).cauchy_(0, -1), RuntimeError, "sigma > 0.0"),
        (lambda: torch.zeros(3).log_normal_(0, -1), RuntimeError, "std > 0.0"),
        (lambda: torch.zeros(3).geometric_(1.0), RuntimeError, r"in \(0, 1\)"),
        (lambda: torch.zeros(3, requires_grad=True).normal_(), RuntimeError, "leaf"),
        (lambda: F.dropout(torch.ones(3), 1.5), ValueError, "between 0 and 1, but got 1.5"),
        (lambda: F.dropout1d(torch.ones(3)), RuntimeError, "2D or 3D"),
        (lambda: F.dropout1d(torch.tensor([[1]])), RuntimeError, "Float can't be cast to the desired output type Long"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


# -- dropout ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_and_its_gradients(p):
    x = torch.rand(200, dtype=torch.float64, requires_grad=True)
    y = torch.dropout(x, p, True)
    scale = 0 if p == 1 else 1 / (1 - p)
    kept = (y != 0).double()
    assert torch.allclose(y, x * kept * scale)
    assert 0.5 < kept.mean().item() + p < 1.5
    (gradient,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert torch.allclose(gradient, 2 * x * kept * scale**2)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert torch.allclose(second, 2 * kept * scale**2)


def test_dropout_outside_training_and_in_place():
    x = torch.ones(4)
    assert torch.dropout(x, 0.5, False) is x and F.dropout(x, 0.5, training=False) is x
    torch.manual_seed(0)
    dropped = F.dropout(x, 0.5)
    torch.manual_seed(0)
    assert F.dropout(x, 0.5, inplace=True) is x and torch.equal(x, dropped)


@pytest.mark.parametrize(
    ("function", "shape", "elements"),
    [
        (F.dropout1d, (5, 6, 3), 3),
        (F.dropout1d, (30, 3), 3),
        (F.dropout2d, (5, 6, 3, 2), 6),
        (F.dropout3d, (5, 6, 3, 2, 2), 12),
        (F.dropout3d, (30, 3, 2, 2), 12),
        (torch.feature_dropout, (5, 6, 3), 3),
    ],
)
def test_feature_dropout_drops_whole_channels(function, shape, elements):
    torch.manual_seed(0)
    made = function(torch.ones(shape), 0.5)
    assert made.shape == shape
    assert {tuple(row) for row in made.reshape(-1, elements).tolist()} == {(0.0,) * elements, (2.0,) * elements}


@pytest.mark.parametrize("features", [False, True])
def test_alpha_dropout_keeps_mean_and_variance(features):
    torch.manual_seed(0)
    x = torch.randn(400, 50, 3)
    made = (F.feature_alpha_dropout if features else F.alpha_dropout)(x, 0.3, training=True)
    assert abs(made.mean().item()) < 0.05 and abs(made.std().item() - 1) < 0.05
    assert F.alpha_dropout(x, 0.3) is x
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        F.alpha_dropout(torch.ones(3, dtype=torch.int64), 0.3, training=True)


def test_nothing_is_kept_of_any_shape():
    for function in (torch.feature_dropout, torch.dropout, torch.alpha_dropout):
        assert function(torch.tensor(2.0), 1.0, True).item() == 0
        assert function(torch.ones(3), 1.0, True).tolist() == [0, 0, 0]


def test_native_dropout():
    output, mask = torch.native_dropout(torch.ones(50), 0.5, True)
    assert mask.dtype is torch.bool and torch.equal(output, mask * 2.0)


def test_in_place_on_a_result_stops_its_gradient():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y[1:].uniform_()
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 0]


# -- over what a tensor holds -----------------------------------------------------------------------------------------
FILLS = {
    "uniform_": lambda x: x.uniform_(),
    "uniform_ in bounds": lambda x: x.uniform_(-1, 3),
    "normal_": lambda x: x.normal_(1, 2),
    "random_": lambda x: x.random_(100),
    "exponential_": lambda x: x.exponential_(),
    "cauchy_": lambda x: x.cauchy_(),
    "log_normal_": lambda x: x.log_normal_(),
    "geometric_": lambda x: x.geometric_(0.3),
}
fills = pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)


def filled(fill, x):
    """What a tensor holds once it is filled from the start of a stream, and where the stream is then."""
    torch.manual_seed(3)
    assert fill(x) is x
    return x.tolist(), torch.random.default_generator.get_offset()


@fills
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("backend", [name for name in registry.backends if name in ("numpy", "c")])
def test_memory_is_filled_with_what_a_view_of_it_is(fill, dtype, backend):
    with torch.backend(backend):
        expected = filled(fill, torch.zeros(2, 5, 3, dtype=getattr(torch, dtype))[1])
        x = torch.zeros(5, 3, dtype=getattr(torch, dtype))
        before = x.array
        assert filled(fill, x) == expected
        assert x.array is before and x._version == 1
        parameter = torch.nn.Parameter(torch.zeros(5, 3, dtype=x.dtype))
        with torch.no_grad():
            assert filled(fill, parameter) == expected
        gaps = torch.zeros(5, 3, 2, dtype=x.dtype)
        assert filled(fill, wrap(gaps.array[..., 0], gaps.dispatch_key)) == expected


@fills
def test_filling_is_refused_where_gradients_could_not_follow(fill):
    leaf = torch.zeros(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        fill(leaf)
    with torch.inference_mode():
        x = torch.zeros(4)
        fill(x)
    with pytest.raises(RuntimeError, match="inference tensor outside"):
        fill(x)
    with pytest.raises(RuntimeError, match="single memory location"):
        fill(torch.zeros(1).expand(4))
    with torch.no_grad():
        view = leaf[:2]
    with pytest.raises(RuntimeError, match="leaf"):
        fill(view)
    assert leaf.tolist() == [0] * 4


@fills
def test_what_cannot_be_filled_takes_its_numbers_once(fill):
    expected = filled(fill, torch.zeros(9))[1]
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.from_numpy(np.frombuffer(bytes(36), np.float32))
    torch.manual_seed(3)
    with pytest.raises(ValueError, match="read-only"):
        fill(x)
    assert torch.random.default_generator.get_offset() == expected and not x.any()
