"""How ops compute on all examples of a vmap: none by a loop without a reason, rules where positions, weights and
parameters differ between the examples, checks of elements, and what `explain` says."""

import numpy as np
import pytest

import corefw
from corefw import func
from corefw.dispatch.batching.arrays import BatchingError
from corefw.dispatch.batching.calls import how
from corefw.dispatch.registry import registry

F = corefw.nn.functional
rng = np.random.default_rng(1)
N = 3
#: the ops that are computed for one example after the other, or not at all, with the reason
LOOPS = {"masked_scatter": "how many elements go to an example only its mask tells"}
REFUSED = {
    **dict.fromkeys(("masked_select", "nonzero", "repeated_positions", "unique_values"), "shapes depend on the data"),
    **dict.fromkeys(
        ("adadelta_step", "adagrad_step", "adam_step", "adamax_step", "nadam_step", "radam_step", "rmsprop_step",
         "scale_step", "sgd_step"),
        "a step changes parameters in place",
    ),
    **{op.name: "collectives change tensors in place" for op in set(registry.declared.values())
       if op.family == "collective" and op.update},
}  # fmt: skip


def numbers(*shape):
    return corefw.tensor(rng.standard_normal(shape))


def positions(*shape, below, least=0):
    return corefw.tensor(rng.integers(least, below, shape))


def matrices(*shape):
    x = numbers(*shape)
    return x @ x.mT + corefw.eye(shape[-1], dtype=x.dtype)


def close(actual, expected):
    assert tuple(actual.shape) == tuple(expected.shape) and actual.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(actual.detach()), np.asarray(expected.detach()), rtol=1e-7, atol=1e-9)


def check(function, *arguments):
    """vmap of a function and of its gradient equal a loop, whichever of the arguments the examples share."""
    for shared in range(2 ** len(arguments) - 1):
        dims = tuple(None if shared >> i & 1 else 0 for i in range(len(arguments)))
        given = [x[0] if d is None else x for x, d in zip(arguments, dims)]
        each = [[x if d is None else x[i] for x, d in zip(given, dims)] for i in range(N)]
        close(func.vmap(function, dims)(*given), corefw.stack([function(*one) for one in each]))
        smooth = [i for i, x in enumerate(given) if x.is_floating_point()]
        slope = func.grad(lambda *x: (function(*x).double() ** 2).sum(), tuple(smooth))
        if smooth and function(*each[0]).is_floating_point():
            expected = zip(*(slope(*one) for one in each))
            for found, wanted in zip(func.vmap(slope, dims)(*given), expected, strict=True):
                close(found, corefw.stack(list(wanted)))


def test_no_op_is_computed_by_a_loop_without_a_reason():
    ops = set(registry.declared.values())
    assert {op.name for op in ops if how(op) == "loop"} == set(LOOPS)
    assert {op.name for op in ops if how(op) == "refused"} == set(REFUSED)


# -- positions of each example ----------------------------------------------------------------------------------------
X, VECTOR = numbers(N, 4, 5), numbers(N, 4)
AT, ONE = positions(N, 2, below=4), positions(N, below=4)
OFFSETS = corefw.tensor([[0, 1], [0, 2], [0, 4]])
PLACES, SOURCE = positions(N, 4, 2, below=4), numbers(N, 4, 2)
POSITIONS = {
    "gather": (lambda x, i: x.gather(1, i), X, PLACES),
    "gather of a number": (lambda x, i: x.sum().gather(0, i * 0), X, ONE),
    "gather by a number": (lambda x, i: x.gather(0, i), VECTOR, ONE),
    "scatter": (lambda x, i, s: x.scatter(0, i[:1], s[:1]), X, PLACES, SOURCE),
    "scatter a number": (lambda x, i: x.scatter(1, i, 7.0), X, PLACES),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), X, PLACES, SOURCE),
    "scatter_reduce": (lambda x, i, s: x.scatter_reduce(1, i, s, "mean", include_self=False), X, PLACES, SOURCE),
    "index_select": (lambda x, i: x.index_select(1, i), X, AT),
    "index_select by a number": (lambda x, i: x.index_select(0, i), X, ONE),
    "index_select of a number": (lambda x, i: x.sum().index_select(0, i.reshape(1) * 0), X, ONE),
    "index_add": (lambda x, i, s: x.index_add(1, i, s, alpha=2), X, AT, SOURCE),
    "index_copy": (lambda x, i, s: x.index_copy(1, i, s), X, corefw.tensor([[0, 1], [3, 2], [1, 0]]), SOURCE),
    "index_fill": (lambda x, i, v: x.index_fill(1, i - 4, v.sum()), X, AT, SOURCE),
    "index_reduce": (lambda x, i, s: x.index_reduce(1, i, s, "amax"), X, AT, SOURCE),
    "take": (lambda x, i: x.take(i - 7), X, PLACES),
    "take_along_dim": (lambda x, i: x.take_along_dim(i[:1], 1), X, PLACES),
    "put": (lambda x, i, s: x.put(i - 20, s, accumulate=True), X, PLACES, SOURCE),
    "index": (lambda x, i: x[i], X, AT),
    "index a later dimension": (lambda x, i: x[:, i], X, AT),
    "index two apart": (lambda x, i: x[None][:, :, None][i * 0, :, :, i[:, None]], X, AT),
    "index two together": (lambda x, i, j: x[None][:, i, j[:, :1]], X, AT, PLACES[:, :2]),
    "index by numbers": (lambda x, i: x[i, i] + x[:, i].sum(), X, ONE),
    "index_put": (lambda x, i, s: x.index_put((i,), s[0, 0]), X, AT, SOURCE),
    "index_put to a later dimension": (lambda x, i, s: x[None].index_put((None, i), s[0, 0], True), X, AT, SOURCE),
    "index_put to two apart": (lambda x, i, s: x[None].index_put((i * 0, None, i), s.mT, True), X, AT, SOURCE),
    "index_put by a mask": (lambda x, m: x.index_put((m > 0,), x.sum()), X, VECTOR),
    "index_put rows by a mask": (lambda x, m: x.index_put((m > 0,), x[:1], True), X, VECTOR),
    "index_put by a later mask": (lambda x, m: x[None].index_put((None, m > 0), x[:1, :1]), X, X),
    "masked_fill": (lambda x, v: x.masked_fill(x > 0, v.sum()), X, VECTOR),
    "masked_scatter": (lambda x, s: x.masked_scatter(x > 0, s.detach()), X, numbers(N, 20)),
    "fill": (lambda x, v: corefw.fill(x, v.sum()), X, VECTOR),
    "where": (lambda x, v: corefw.where(x > v[:, None], x, v.sum()), X, VECTOR),
    "embedding": (lambda w, i: F.embedding(i, w, padding_idx=1), X, PLACES),
    "embedding_bag": (lambda w, i: F.embedding_bag(i, w, mode="max", padding_idx=2), X, PLACES),
    "bags by offsets": (lambda w, i: F.embedding_bag(i.reshape(-1), w, corefw.tensor([0, 3, 3])), X, PLACES),
    "max over bags": (lambda w, o: F.embedding_bag(corefw.tensor([0, 3, 3, 1]), w, o, mode="max"), X, OFFSETS),
    "searchsorted": (lambda s, x: corefw.searchsorted(s.sort().values, x), VECTOR, X),
    "searchsorted by rows": (lambda s, x: corefw.searchsorted(s.sort().values, x, right=True), X, X + 0.1),
    "bucketize": (lambda x, s: corefw.bucketize(x, s.sort().values), X, VECTOR),
    "isin": (lambda x, t: corefw.isin(x, t[:2]), PLACES, AT),
    "isin of truths": (lambda x, t: corefw.isin(x > 0, t[:1] > 2), PLACES, AT),
    "isin inverted": (lambda x, t: corefw.isin(x, t[:0] if len(t) < 2 else t, invert=True), PLACES, AT),
    "roll": (lambda x: x.roll((1, -2), (0, -1)) + x.roll(3), X),
    "sort": (lambda x: x.sort(0).values.topk(2, -1).values * x.argsort()[:, :2], X),
    "diagonals": (lambda x: corefw.diag_embed(x.diagonal()) + corefw.diag(x[0])[1:, 1:], X),
    "histc": (lambda x: corefw.histc(x.detach(), 5, -1, 1), X),
    "triangles": (lambda x: x[corefw.triu_indices(4, 5, device=x.device).unbind()], X),
}  # fmt: skip


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_of_each_example(name):
    check(*POSITIONS[name])


def test_a_position_out_of_range_does_not_reach_another_example():
    outside = corefw.tensor([0, 9, 0])
    for function in (
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.index_fill(0, i, 0.0),
        lambda x, i: x.take(i + 20),
        lambda x, i: x.index_put((i,), x[0]),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            func.vmap(function)(X, outside)


# -- parameters of each example ---------------------------------------------------------------------------------------
IMAGES, KERNELS, BIAS = numbers(N, 2, 4, 5, 5), numbers(N, 6, 2, 3, 3), numbers(N, 6)
VECTORS, WEIGHT, RIGHT = numbers(N, 2, 4), numbers(N, 4), numbers(N, 3, 2)
LAYERS = {
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=2), IMAGES, KERNELS, BIAS),
    "transposed convolution": (lambda x, w: F.conv_transpose2d(x, w, stride=2), IMAGES, KERNELS[:, :4]),
    "linear": (lambda x, w, b: F.linear(x, w, b), VECTORS, numbers(N, 3, 4), numbers(N, 3)),
    "bilinear": (lambda x, w: F.bilinear(x, x, w), VECTORS, numbers(N, 2, 4, 4)),
    "layer norm": (lambda x, w: F.layer_norm(x, (4,), w, w), VECTORS, WEIGHT),
    "rms norm": (lambda x, w: F.rms_norm(x, (4,), w), VECTORS, WEIGHT),
    "group norm": (lambda x, w: F.group_norm(x, 2, w, w), IMAGES, WEIGHT),
    "instance norm": (lambda x, w: F.instance_norm(x, weight=w, bias=w), IMAGES, WEIGHT),
    "batch norm": (lambda x, w: F.batch_norm(x, None, None, w, w, training=True), IMAGES, WEIGHT),
    "batch norm of running statistics": (lambda x, m: F.batch_norm(x, m, m.exp()), IMAGES, WEIGHT),
    "prelu": (lambda x, w: F.prelu(x, w), IMAGES, WEIGHT),
    "activations": (lambda x: F.gelu(x) + F.silu(x) * F.elu(x) + F.softplus(x), VECTORS),
    "attention": (lambda x, m: F.scaled_dot_product_attention(x, x, x, m), numbers(N, 2, 3, 4), numbers(N, 3, 3)),
    "pooling": (lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2) + F.adaptive_avg_pool2d(x, 2), IMAGES),
    "resampling": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES),
    "unfold": (lambda x: F.fold(F.unfold(x, 2), (5, 5), 2), IMAGES),
    "cross entropy": (lambda x, t: F.cross_entropy(x, t), VECTORS, positions(N, 2, below=4)),
    "weighted loss": (lambda x, w: F.binary_cross_entropy_with_logits(x, x * 0, w), VECTORS, VECTORS),
    "gaussian loss": (lambda x, v: F.gaussian_nll_loss(x, x * 0, v.exp()), VECTORS, VECTORS),
    "matrix_exp": (lambda a: corefw.linalg.matrix_exp(a), numbers(N, 3, 3) * corefw.tensor([0.1, 1, 9])[:, None, None]),
    "cholesky": (lambda a: corefw.cholesky_inverse(corefw.linalg.cholesky(a)), matrices(N, 3, 3)),
    "lu": (lambda a, b: corefw.linalg.lu_solve(*corefw.linalg.lu_factor(a), b), matrices(N, 3, 3), RIGHT),
    "lu of wide matrices": (lambda a: sum(m.sum() for m in corefw.linalg.lu(a)[1:]), numbers(N, 2, 3)),
    "solve": (lambda a, b: corefw.linalg.solve(a, b), matrices(N, 3, 3), numbers(N, 3)),
    "solve triangles": (lambda a, b: corefw.linalg.solve_triangular(a, b, upper=True), matrices(N, 3, 3), RIGHT),
    "least squares": (lambda a, b: corefw.linalg.lstsq(a, b).solution, numbers(N, 4, 2), numbers(N, 4, 1)),
    "determinants": (lambda a: corefw.linalg.slogdet(a)[1] + corefw.linalg.det(a), matrices(N, 3, 3)),
    "cross": (lambda a, b: corefw.linalg.cross(a, b), numbers(N, 2, 3), numbers(N, 2, 3)),
    "pdist": (lambda x: F.pdist(x), VECTORS),
    "cov": (lambda x, w: corefw.cov(x, aweights=w.detach().abs()), VECTORS, WEIGHT),
    "quantile": (lambda x, w: x.quantile(w.detach().sigmoid()[0]), VECTORS, WEIGHT),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_parameters_of_each_example(name):
    check(*LAYERS[name])


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_recurrent_networks_of_each_example(kind):
    networks = [getattr(corefw.nn, kind)(2, 3, batch_first=True, bidirectional=True).double() for _ in range(N)]
    parameters, buffers = func.stack_module_state(networks)
    x = numbers(N, 2, 4, 2)
    run = lambda p, b, x: func.functional_call(networks[0], (p, b), (x,))[0]
    close(func.vmap(run)(parameters, buffers, x), corefw.stack([n(one)[0] for n, one in zip(networks, x)]))


# -- checks of elements -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (corefw.linalg.lu_factor, corefw.stack([corefw.eye(2), corefw.ones(2, 2)]), r"U\[2,2\] is zero"),
        (corefw.cholesky_inverse, corefw.stack([corefw.eye(2), corefw.zeros(2, 2)]), "Batch element 1"),
        (corefw.bernoulli, corefw.tensor([0.5, 2.0]), "0 && p_in <= 1"),
        (lambda w: corefw.multinomial(w, 1), corefw.tensor([[1.0, 1.0], [0.0, 0.0]]), "sum of probabilities"),
        (corefw.poisson, corefw.tensor([1.0, -1.0]), "non-negative"),
        (lambda v: F.gaussian_nll_loss(v, v, v), corefw.tensor([1.0, -1.0]), "negative"),
        (lambda o: F.embedding_bag(corefw.tensor([0]), corefw.ones(1, 1), o), corefw.tensor([[0], [1]]), "offsets"),
    ],
)
def test_checks_see_all_examples(function, argument, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        func.vmap(function, randomness="same")(argument)


# -- random numbers beside what the examples share --------------------------------------------------------------------
P = corefw.full((40,), 0.5)
DRAWS = {
    "multinomial": lambda: corefw.multinomial(P, 20),
    "bernoulli": lambda: corefw.bernoulli(P),
    "rand_like of a transposed": lambda: corefw.rand_like(P.reshape(5, 8).t()).flatten(),
    "poisson": lambda: corefw.poisson(P * 9),
    "binomial": lambda: corefw.binomial(P * 18, P),
    "dropout": lambda: F.dropout(P),
    "alpha_dropout": lambda: F.alpha_dropout(P, training=True),
    "gumbel_softmax": lambda: F.gumbel_softmax(P),
    "gamma": lambda: corefw.distributions.Gamma(P, P).sample(),
    "dirichlet": lambda: corefw.distributions.Dirichlet(P).sample(),
    "categorical": lambda: corefw.distributions.Categorical(P).sample((20,)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_beside_what_is_shared(name):
    xs = corefw.zeros(3)
    draw = lambda x: DRAWS[name]() + x
    with pytest.raises(RuntimeError, match="randomness error mode"):
        func.vmap(draw)(xs)
    same = func.vmap(draw, randomness="same")(xs)
    assert (same == same[0]).all()
    different = func.vmap(draw, randomness="different")(xs)
    assert len({tuple(row.tolist()) for row in different}) == 3


def test_drawn_positions_follow_the_weights():
    weights = corefw.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for randomness in ("same", "different"):
        found = func.vmap(lambda w: corefw.multinomial(w, 4, replacement=True), randomness=randomness)(weights)
        assert found.tolist() == [[1] * 4, [0] * 4, [2] * 4]


# -- in place ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("add_", lambda y, x, i: y.add_(x)),
        ("index_put_", lambda y, x, i: y.__setitem__(i, x)),
        ("index_add_", lambda y, x, i: y.index_add_(0, corefw.tensor([1]), x.reshape(1))),
        ("masked_fill_", lambda y, x, i: y.masked_fill_(y > 0, x)),
        ("add with out=", lambda y, x, i: corefw.add(x, x, out=y)),
    ],
)
def test_what_is_shared_is_not_written_to(name, write):
    with pytest.raises(BatchingError, match=f"vmap: {name} would write"):
        func.vmap(lambda x, i: (write(corefw.ones(3), x, i), x)[1])(corefw.ones(2), corefw.zeros(2, dtype=corefw.int64))


# -- what is said of it -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("transpose", "arithmetic on strides"),
        ("sum", "by its rule"),
        ("exp", "in one call, aligned"),
        ("gelu", "in one call, aligned"),
        ("conv2d", "by its body"),
        ("masked_scatter", "by a loop"),
        ("nonzero", "refused"),
    ],
)
def test_explain_says_how_all_examples_are_computed(name, said):
    line = next(line for line in corefw.explain(name, corefw.ones(2, 2)).splitlines() if "inside of vmap: " in line)
    assert said in line


def test_explain_inside_names_the_kernels():
    said = []

    def function(x, i):
        said.extend(corefw.explain(*call) for call in (("linear", x, x), ("gather", x, 0, i), ("nonzero", x)))
        return x

    func.vmap(func.vmap(function))(corefw.ones(3, 2, 4, 4), corefw.zeros(3, 2, 4, 4, dtype=corefw.int64))
    assert all("a batch of 3 x 2 examples" in text for text in said)
    linear, gather, nonzero = (text.splitlines() for text in said)
    assert linear[2].startswith("  matmul at cpu/float32: kernel of backend") and linear[-1] == "  -> by its body"
    assert gather[2].startswith("  gather at cpu/float32: kernel of backend")
    assert "depends on the data" in nonzero[2] and nonzero[-1] == "  -> refused"
