"""corefw.vmap: every row of the kit equals a loop; PyTorch's results; nesting, derivatives, random numbers, errors."""

import numpy as np
import pytest

import corefw
from corefw import func
from corefw.dispatch.batching.arrays import BatchingError
from corefw.dispatch.batching.calls import how
from corefw.dispatch.registry import registry
from corefw.testing.checks import flat, representative
from corefw.testing.families import kit_families
from corefw.testing.samples import Sample, samples, to_tensor

F = corefw.nn.functional
rng = np.random.default_rng(0)
#: what has no meaning for a batch of examples, with the reason
UNFIT = {
    **dict.fromkeys(
        ("argwhere", "bincount", "combinations", "masked_select", "nonzero", "nonzero_static", "one_hot",
         "repeat_interleave", "repeated_positions", "unique", "unique_consecutive", "unique_values"),
        "shapes depend on the data",
    ),
    **dict.fromkeys(("histc", "histogram", "histogramdd"), "the edges of the intervals depend on the data"),
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), "the host reads how long packed sequences are"),
    "as_strided_scatter": "means memory by its place",
}  # fmt: skip


def tensor(*shape):
    return corefw.tensor(rng.standard_normal(shape))


def close(actual, expected, rtol=1e-7, atol=1e-9):
    assert tuple(actual.shape) == tuple(expected.shape) and actual.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(actual.detach()), np.asarray(expected.detach()), rtol=rtol, atol=atol)


def looped(function, *batched):
    """The function for one example after the other."""
    return corefw.stack([function(*(x[i] for x in batched)) for i in range(len(batched[0]))])


def two_examples(array):
    """An array and, beside it, itself with the elements in reverse order, if they are numbers with fractions."""
    other = array.reshape(-1)[::-1].reshape(array.shape) if array.dtype.kind in "fc" else array
    return np.stack([array, other])


#: which of a row's tensors differ between the examples, the others being shared
ALL, FIRST, OTHERS = (lambda i: True), (lambda i: i == 0), (lambda i: i > 0)


def check_row(op, sample, differs):
    """One call of an op by vmap and by a loop."""
    batched = sample.map_numbered(lambda i, a: to_tensor(two_examples(a) if differs(i) else a))
    places = tensors_in(batched)
    dims = tuple(0 if differs(i) else None for i in range(len(places)))
    if 0 not in dims:
        return

    def function(*tensors):
        call = replaced(batched, iter(tensors))
        return tuple(flat(op.function(*call.arguments, **call.keywords)))

    expected = [function(*(x if d is None else x[i] for x, d in zip(places, dims))) for i in range(2)]
    if not expected[0] or not all(isinstance(x, corefw.Tensor) for x in expected[0]):
        return
    found = func.vmap(function, dims)(*places)
    tolerance = 1e-3 if any(x.dtype.itemsize < 8 for x in found if x.is_floating_point()) else 1e-7
    for one, first, second in zip(found, *expected, strict=True):
        assert one.dtype == first.dtype and tuple(one.shape[1:]) == tuple(first.shape)
        for actual, wanted in ((one[0], first), (one[1], second)):
            np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), rtol=tolerance, atol=tolerance / 100)


def tensors_in(sample):
    found = []
    for value in (*sample.arguments, *sample.keywords.values()):
        found += [t for t in (value if isinstance(value, list) else [value]) if isinstance(t, corefw.Tensor)]
    return found


def replaced(sample, tensors):
    def one(value):
        if isinstance(value, corefw.Tensor):
            return next(tensors)
        return [one(item) for item in value] if isinstance(value, list) else value

    return Sample(tuple(map(one, sample.arguments)), {k: one(v) for k, v in sample.keywords.items()})


@pytest.mark.parametrize("family", kit_families())
def test_rows_equal_a_loop(family):
    for case in kit_families()[family]:
        op = registry.declared.get(case.op)
        if op is None or op.update or case.op in UNFIT:
            continue
        calls = samples(case, representative(case, op))
        for sample, differs in ((calls[0], ALL), (calls[-1], FIRST), (calls[-1], OTHERS)):
            try:
                check_row(op, sample, differs)
            except BaseException as error:
                error.add_note(f"{case.op}{sample} ({how(op)})")
                raise


# -- derivatives and nesting ------------------------------------------------------------------------------------------
IMAGES, KERNELS, BIAS = tensor(3, 2, 2, 6, 6), tensor(4, 2, 3, 3), tensor(4)


def spread(function):
    """A scalar that tells every element of a function's result apart."""
    return lambda x, w: (function(x, w) ** 2).sum()


LAYERS = {
    "conv": lambda x, w: F.conv2d(x, w, BIAS),
    "conv transposed": lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1), BIAS[:4]),
    "group norm": lambda x, w: F.group_norm(F.conv2d(x, w), 2, BIAS, BIAS),
    "batch norm": lambda x, w: F.batch_norm(x, None, None, training=True) * w.sum(),
    "pools": lambda x, w: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2) * w.mean(),
    "attention": lambda x, w: F.scaled_dot_product_attention(x, x * w.mean(), x),
    "softmax": lambda x, w: x.softmax(-1).flatten(2)[..., :3] @ w[0, 0],
    "views": lambda x, w: x.transpose(0, 1)[1:, :, 2].reshape(2, -1)[:, ::2] * w.max(),
    "in place": lambda x, w: (x * 2).add_(w.sum()).mul_(x)[:, :1].clamp_(0),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("argument", [0, 1])
def test_gradients_per_example_and_of_the_sum(name, argument):
    one = spread(LAYERS[name])
    expected = corefw.stack([func.grad(one, argument)(x, KERNELS) for x in IMAGES])
    close(func.vmap(func.grad(one, argument), (0, None))(IMAGES, KERNELS), expected)
    total = func.grad(lambda x, w: func.vmap(one, (0, None))(x, w).sum(), argument)(IMAGES, KERNELS)
    close(total, expected.sum(0) if argument else expected)


def test_gradients_through_backward_reach_what_the_examples_share():
    weight, xs = tensor(4).requires_grad_(), tensor(3, 4)
    func.vmap(lambda x: (x * weight).sum().sin())(xs).sum().backward()
    close(weight.grad, sum(func.grad(lambda w, x: (x * w).sum().sin())(weight.detach(), x) for x in xs))


def test_an_index_that_differs_reaches_a_table_that_is_shared():
    table = tensor(5, 3)
    positions = corefw.tensor([[0, 1], [4, 4], [2, 0]])
    one = lambda table, i: (F.embedding(i, table) ** 2).sum() + table[i[0]].sum()
    expected = corefw.stack([func.grad(one)(table, i) for i in positions])
    close(func.vmap(func.grad(one), (None, 0))(table, positions), expected)


def test_vmap_nests_in_everything():
    x, y = tensor(3), tensor(4)
    close(func.vmap(func.vmap(corefw.mul, (None, 0)), (0, None))(x, y), x[:, None] * y)
    xs = tensor(2, 3)
    cube = lambda x: (x**3).sum() * x.prod()
    close(func.vmap(func.hessian(cube))(xs), looped(func.hessian(cube), xs))
    close(func.vmap(func.jacrev(corefw.sin))(xs), looped(func.jacrev(corefw.sin), xs))
    close(func.vmap(lambda x: func.jvp(cube, (x,), (x,))[1])(xs), looped(lambda x: func.jvp(cube, (x,), (x,))[1], xs))
    twice = lambda xs: func.vmap(func.grad(cube))(xs).sum()
    close(func.grad(twice)(xs), looped(lambda x: func.grad(lambda x: func.grad(cube)(x).sum())(x), xs))
    _, back = func.vjp(corefw.exp, x)
    close(func.vmap(back)(corefw.eye(3, dtype=x.dtype))[0], corefw.diag(x.exp()))
    inner = lambda x: func.vmap(lambda a, b: a * b + x.sum(), (0, None))(x, x).sum()
    close(func.vmap(func.grad(inner))(xs), looped(func.grad(inner), xs))


def test_ensembles():
    models = [corefw.nn.Sequential(corefw.nn.Linear(4, 3), corefw.nn.Tanh()) for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    x = corefw.ones(5, 4)
    found = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    close(found, corefw.stack([model(x) for model in models]), 1e-5, 1e-6)


# -- arguments --------------------------------------------------------------------------------------------------------
def test_dimensions_of_examples():
    x, y = tensor(2, 5, 3), tensor(5, 3)
    tree = {"a": x, "b": (y, 2.0)}
    one = lambda tree, z: (tree["a"] * tree["b"][0] * tree["b"][1], z)
    product, other = func.vmap(one, ({"a": -2, "b": (0, None)}, None), (1, None))(tree, y)
    close(product, x * y * 2)
    assert other is y
    close(func.vmap(lambda x: x.sum(0), 2, -1)(x), x.sum(0))
    close(func.vmap(lambda x: BIAS)(y), BIAS.expand(5, 4))
    shapes = []
    func.vmap(lambda x: (shapes.append((tuple(x.shape), x.dim(), x.numel())), x)[1], 1)(x)
    assert shapes == [((2, 3), 2, 6)]
    assert func.vmap(lambda x: x.device == corefw.device("cpu") and x)(x).shape == x.shape


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_chunks(size):
    x = tensor(4, 5)
    sizes = []
    found = func.vmap(lambda x: (sizes.append(func.debug_unwrap(x).shape[0]), x * 2)[1], 1, 1, chunk_size=size)(x)
    close(found, x * 2)
    assert max(sizes) == min(size, 5) and sum(sizes) == 5


@pytest.mark.parametrize(
    ("dims", "args", "message"),
    [
        ("0", (1,), "expected `in_dims` to be int"),
        (0, (), "got no inputs"),
        ((0, 0), (1,), "not compatible with the structure"),
        (0, (1.0,), "cannot vmap over non-Tensor"),
        (3, (corefw.ones(2),), "dimensionality 1"),
        (None, (corefw.ones(2),), "expected `in_dims`"),
        ((None,), (corefw.ones(2),), "at least one"),
        (0, (corefw.ones(2), corefw.ones(3)), "same size"),
    ],
)
def test_bad_dimensions(dims, args, message):
    with pytest.raises(ValueError, match=message):
        func.vmap(lambda *x: x[0], dims)(*args)


def test_bad_results_and_options():
    with pytest.raises(ValueError, match="must only return Tensors"):
        func.vmap(lambda x: 1)(BIAS)
    with pytest.raises(ValueError, match="out_dims is not compatible"):
        func.vmap(lambda x: x, out_dims=(0, 0))(BIAS)
    with pytest.raises(ValueError, match="batched tensor when out_dim is None"):
        func.vmap(lambda x: x, out_dims=None)(BIAS)
    with pytest.raises(IndexError, match="out of range"):
        func.vmap(lambda x: x, out_dims=3)(BIAS)
    with pytest.raises(RuntimeError, match="allowed values for randomness"):
        func.vmap(lambda x: x, randomness="none")
    with pytest.raises(ValueError, match="chunk_size"):
        func.vmap(lambda x: x, chunk_size=0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum().item(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: corefw.zeros(3).add_(x),
        lambda x: np.asarray(x),
    ],
)
def test_what_differs_between_examples_is_refused(function):
    with pytest.raises(BatchingError, match="vmap: "):
        func.vmap(function)(corefw.ones(2, 3))
    assert corefw.ones(2).sum().item() == 2  # nothing of it remains


def test_changes_in_place_reach_the_caller():
    x = tensor(2, 3)
    func.vmap(lambda x: x[1:].mul_(0))(x)
    assert not x[:, 1:].any() and x[:, 0].all()


def test_a_batched_tensor_shows_its_examples():
    texts = []
    func.vmap(lambda x: (texts.append(repr(x)), x)[1])(corefw.tensor([1.0, 2.0]))
    assert texts == ["BatchedTensor(depth=1, value=tensor([1., 2.]))"]


# -- random numbers ---------------------------------------------------------------------------------------------------
DRAWS = {
    "rand": lambda x: corefw.rand(4) + 0 * x[:4],
    "rand_like": lambda x: corefw.rand_like(x),
    "normal_": lambda x: x.clone().normal_(),
    "randperm": lambda x: corefw.randperm(9),
    "dropout": lambda x: F.dropout(x),
    "bernoulli": lambda x: corefw.bernoulli(x * 0 + 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers(name):
    xs = corefw.ones(3, 40)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        func.vmap(DRAWS[name])(xs)
    same = func.vmap(DRAWS[name], randomness="same")(xs)
    assert (same == same[0]).all() and same.shape[0] == 3
    different = func.vmap(DRAWS[name], randomness="different")(xs)
    assert not (different[0] == different[1]).all() and not (different[1] == different[2]).all()
    after = corefw.rand(4)
    assert not any((after == row[:4]).all() for row in different)


# -- rearrange --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "pattern", "lengths", "meaning"),
    [
        ((2, 3), "a b -> b a", {}, lambda x: x.T),
        ((2, 6, 4), "b (h w) c -> b c h w", {"h": 2}, lambda x: x.reshape(2, 2, 3, 4).transpose(0, 3, 1, 2)),
        ((2, 3, 4), "a ... -> (...) a", {}, lambda x: x.transpose(1, 2, 0).reshape(12, 2)),
        ((2, 3, 4), "... c -> c ...", {}, lambda x: x.transpose(2, 0, 1)),
        ((2, 1, 3), "a 1 b -> 1 (a b) 1", {}, lambda x: x.reshape(1, 6, 1)),
        ((2,), "a -> a ()", {}, lambda x: x[:, None]),
    ],
)
def test_rearrange(shape, pattern, lengths, meaning):
    x = rng.standard_normal(shape)
    np.testing.assert_array_equal(np.asarray(func.rearrange(corefw.tensor(x), pattern, **lengths)), meaning(x))


@pytest.mark.parametrize(
    ("pattern", "lengths"),
    [("a b", {}), ("a b -> a", {}), ("a a -> a", {}), ("a -> a", {}), ("(a c) b -> a b c", {}),
     ("a b -> b a", {"z": 1}), ("(a c) b -> a b c", {"a": 4}), ("(a b -> a b", {}), ("a-b -> b a", {})],
)  # fmt: skip
def test_bad_patterns(pattern, lengths):
    with pytest.raises(ValueError, match="rearrange: "):
        func.rearrange(corefw.ones(2, 3), pattern, **lengths)


def test_debug_unwrap():
    x = tensor(2, 3)
    shapes = []

    def inner(x):
        shapes.extend(tuple(func.debug_unwrap(x, recurse=r).shape) for r in (False, True))
        return x

    func.vmap(func.vmap(inner))(x)
    assert shapes == [(3,), (2, 3)] and func.debug_unwrap(x) is x


def test_new_tensors_lie_where_the_examples_do():
    x = tensor(4, 3)

    def f(x):
        made = (
            corefw.zeros(3, device=x.device)
            + corefw.arange(3, device=x.device)
            + corefw.as_tensor(2.0, device=x.device)
        )
        return made + corefw.ones(3).to(x.device) + corefw.ones(3).to(x)

    close(func.vmap(f)(x), corefw.stack([f(row) for row in x]))


def test_changes_in_place_of_what_is_made_inside():
    def f(x, at):
        y = corefw.zeros_like(x)
        y[0] = x.sum()
        y[at] += 2
        y.add_(1).mul_(x)
        y[x > 1] = x.max()
        z = x.new_ones(2)
        z[1:] = y[:1]
        return corefw.cat([y, z])

    x, at = tensor(5, 3), corefw.tensor([0, 1, 2, 1, 0])
    close(func.vmap(f)(x, at), looped(f, x, at))


def test_a_recurrent_network_and_its_gradients():
    network, x = corefw.nn.GRU(3, 2, batch_first=True).double(), tensor(3, 2, 5, 3)
    parameters = dict(network.named_parameters())

    def energy(parameters, x):
        return func.functional_call(network, parameters, (x,))[0].square().sum()

    found = func.vmap(func.grad(energy), (None, 0))(parameters, x)
    for name, gradient in found.items():
        close(gradient, corefw.stack([func.grad(energy)(parameters, one)[name] for one in x]))


def test_classes_by_number():
    classes = corefw.tensor([[1, 0], [2, 1]])
    assert func.vmap(lambda c: F.one_hot(c, 3))(classes).tolist() == F.one_hot(classes, 3).tolist()
    with pytest.raises(BatchingError, match="no elements"):
        func.vmap(F.one_hot)(classes)


# -- graphs of one vmap that another one meets ------------------------------------------------------------------------
def test_the_backward_of_a_vmap_in_a_vmap():
    x = corefw.tensor([1.0, 2.0, 3.0], dtype=corefw.float64)
    squares = lambda x: func.vmap(lambda a: a * a)(x)
    _, product = func.vjp(squares, x)
    for vectors in (corefw.eye(3, dtype=corefw.float64), corefw.ones(2, 3, dtype=corefw.float64)):
        close(func.vmap(lambda v: product(v)[0])(vectors), vectors * 2 * x)
    close(func.jacrev(squares)(x), corefw.diag(2 * x))
    close(func.jacrev(squares, chunk_size=2)(x), corefw.diag(2 * x))


def test_nested_jacobians():
    x = corefw.tensor([1.0, 2.0], dtype=corefw.float64)
    cubes = lambda x: (x**3).sum()
    three_times = func.jacrev(func.jacrev(func.jacrev(cubes)))(x)
    assert three_times.tolist() == [[[6.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 6.0]]]
    pair = corefw.stack([x, x + 1])
    twice = func.jacrev(func.jacrev(cubes))
    close(func.vmap(twice)(pair), looped(twice, pair))
    inside = func.jacrev(lambda y: func.vmap(func.jacrev(lambda x: x**3))(y))(pair)
    close(inside.sum((1, 2, 3)), 6 * pair)
    close(func.grad(lambda x: func.jacrev(lambda x: x**3)(x).sum())(x), 6 * x)
