"""The C kernels beside the NumPy kernels on random arguments: sizes around SIMD widths, dtypes, memory layouts."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import corefw as torch
from corefw.dispatch.registry import registry
from corefw.dispatch.resolution import shape_of
from tests.arrays import arrays, integers

pytest.importorskip("tests.compiled")

torch.zeros(1)
BACKENDS = [name for name in registry.backends if name == "c" or name.startswith("c-")]
FUZZ = settings(deadline=None, max_examples=40, derandomize=True, database=None)
SIZES = st.sampled_from((1, 2, 3, 4, 7, 15, 16, 17, 31, 33, 63, 64, 65, 97))
SMALL = st.integers(1, 6)
TOLERANCE = {"f": 3e-5, "d": 1e-11}


def kernel(op, backend):
    """The function that a backend registered for an op."""
    return next(k.function for b, k in registry.kernels[op, "cpu"] if b.name == backend)


REAL = st.sampled_from("fd")
ROWS = {}


def row(*ops):
    """Decorates what draws the arguments of an op: function(draw, dtype) -> arguments."""

    def decorate(function):
        for op in ops:
            ROWS[op] = function
        return function

    return decorate


@st.composite
def shapes(draw, least=1, most=4):
    """A shape of at most some ten thousand elements."""
    ndim = draw(st.integers(least, most))
    shape = tuple(draw(st.lists(SIZES if ndim < 3 else SMALL, min_size=ndim, max_size=ndim)))
    if ndim > 2:
        shape = (*shape[:-1], draw(SIZES))
    return shape


# -- products ---------------------------------------------------------------------------------------------------------
@row("mm")
def _(draw, dtype):
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    return draw(arrays((m, k), dtype)), draw(arrays((k, n), dtype))


@row("bmm")
def _(draw, dtype):
    b, m, n, k = draw(SMALL), draw(SIZES), draw(SIZES), draw(SIZES)
    return draw(arrays((b, m, k), dtype)), draw(arrays((b, k, n), dtype))


@row("matmul")
def _(draw, dtype):
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    left, right = draw(st.sampled_from((((), ()), ((3,), ()), ((), (2,)), ((2, 1), (3,)), ((1, 2), (3, 1)))))
    a, b = (*left, m, k), (*right, k, n)
    vector = draw(st.integers(0, 5))
    return draw(arrays((k,) if vector == 0 else a, dtype)), draw(arrays((k,) if vector == 1 else b, dtype))


@row("linear")
def _(draw, dtype):
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    lead = draw(st.sampled_from(((m,), (), (2, m), (2, 3, m))))
    bias = draw(st.none() | arrays((n,), dtype))
    return draw(arrays((*lead, k), dtype)), draw(arrays((n, k), dtype)), bias


@row("addmm")
def _(draw, dtype):
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    added = draw(st.sampled_from(((m, n), (n,), (1, n), (m, 1))))
    factors = st.sampled_from((0, 1, 0.5))
    parts = draw(arrays(added, dtype)), draw(arrays((m, k), dtype)), draw(arrays((k, n), dtype))
    return *parts, draw(factors), draw(factors)


# -- convolution and windows ------------------------------------------------------------------------------------------
def windowing(draw, dims):
    """(sizes, kernel, stride, padding, dilation) of a convolution or pooling."""

    def each(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims)))

    return each(1, 37 if dims == 1 else 19 if dims == 2 else 6), each(1, 4), each(1, 3), each(0, 3), each(1, 2)


@row("convolution")
def _(draw, dtype):
    dims = draw(st.integers(1, 3))
    sizes, kernel, stride, padding, dilation = windowing(draw, dims)
    groups, inside, outside = (
        draw(st.sampled_from((1, 1, 1, 2, 3))),
        draw(SMALL),
        draw(st.sampled_from((1, 2, 5, 15, 17))),
    )
    transposed = draw(st.booleans())
    more = tuple(draw(st.integers(0, s - 1)) for s in stride) if transposed else (0,) * dims
    weight = (groups * inside, outside, *kernel) if transposed else (groups * outside, inside, *kernel)
    input = draw(arrays((draw(SMALL), groups * inside, *sizes), dtype))
    bias = draw(st.none() | arrays((groups * outside,), dtype))
    return input, draw(arrays(weight, dtype)), bias, stride, padding, dilation, transposed, more, groups


@row("convolution_weight")
def _(draw, dtype):
    sizes, kernel, stride, padding, dilation = windowing(draw, draw(st.integers(1, 3)))
    groups, inside, outside = draw(st.sampled_from((1, 1, 2))), draw(SMALL), draw(st.sampled_from((1, 2, 5, 15, 17)))
    places = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation)]
    assume(min(places) > 0)
    n = draw(SMALL)
    input, gradient = arrays((n, groups * inside, *sizes), dtype), arrays((n, groups * outside, *places), dtype)
    return draw(input), draw(gradient), kernel, stride, padding, dilation, groups


@row("max_pool")
def _(draw, dtype):
    sizes, kernel, stride, padding, dilation = windowing(draw, draw(st.integers(1, 3)))
    padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel))
    return (
        draw(arrays((draw(SMALL), draw(SMALL), *sizes), dtype)),
        kernel,
        stride,
        padding,
        dilation,
        draw(st.booleans()),
    )


@row("avg_pool")
def _(draw, dtype):
    sizes, kernel, stride, padding, _ = windowing(draw, draw(st.integers(1, 3)))
    padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel))
    options = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from((None, 3)))
    return draw(arrays((draw(SMALL), draw(SMALL), *sizes), dtype)), kernel, stride, padding, *options


@row("avg_pool_backward")
def _(draw, dtype):
    input, *options = ROWS["avg_pool"](draw, dtype)
    try:
        shape = shape_of(registry.declared["avg_pool"], (input, *options))
    except (RuntimeError, ValueError):
        assume(False)
    return draw(arrays(shape, dtype)), input.shape, *options


@row("adaptive_max_pool", "adaptive_avg_pool")
def _(draw, dtype):
    sizes, outputs = windowing(draw, draw(st.integers(1, 3)))[:2]
    return draw(arrays((draw(SMALL), draw(SMALL), *sizes), dtype)), outputs


# -- reductions, scans, orders ----------------------------------------------------------------------------------------
def dims_of(draw, shape):
    """None or some dimensions."""
    return draw(st.none() | st.sets(st.integers(0, len(shape) - 1), min_size=1).map(sorted).map(tuple))


@row("sum", "mean", "amax", "amin", "logsumexp", "nansum")
def _(draw, dtype):
    shape = draw(shapes())
    return draw(arrays(shape, dtype)), dims_of(draw, shape), draw(st.booleans())


@row("all", "any")
def _(draw, dtype):
    shape = draw(shapes())
    return draw(arrays(shape, draw(st.sampled_from("?fl")), 0, 3)), dims_of(draw, shape), draw(st.booleans())


@row("variance", "deviation")
def _(draw, dtype):
    shape = draw(shapes())
    return draw(arrays(shape, dtype)), dims_of(draw, shape), draw(st.booleans()), draw(st.sampled_from((0, 1)))


@row("vector_norm")
def _(draw, dtype):
    shape, order = draw(shapes()), draw(st.sampled_from((0.0, 1.0, 2.0, 3.5, float("inf"), float("-inf"))))
    return draw(arrays(shape, dtype)), order, dims_of(draw, shape), draw(st.booleans())


def along(draw, dtype, low=-2.0, high=2.0):
    """An array and one of its dimensions."""
    shape = draw(shapes())
    return draw(arrays(shape, dtype, low, high)), draw(st.integers(0, len(shape) - 1))


@row("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "softmax", "log_softmax")
def _(draw, dtype):
    return along(draw, dtype)


@row("softmax_backward", "log_softmax_backward")
def _(draw, dtype):
    output, dim = along(draw, dtype, 0.0, 1.0)
    return draw(arrays(output.shape, dtype)), output, dim


def with_ties(draw, dtype):
    """As `along`, with many equal elements and now and then NaN."""
    array, dim = along(draw, dtype, 0, 9)
    array[...] = np.floor(array)
    if draw(st.booleans()):
        array[array == 8] = np.nan
    return array, dim


@row("argmax", "argmin", "max_dim", "min_dim")
def _(draw, dtype):
    return *with_ties(draw, dtype), draw(st.booleans())


@row("sort")
def _(draw, dtype):
    return *with_ties(draw, dtype), draw(st.booleans())


@row("median_dim", "nanmedian_dim")
def _(draw, dtype):
    return *with_ties(draw, dtype), draw(st.booleans())


@row("topk")
def _(draw, dtype):
    array, dim = along(draw, dtype)  # of equal elements any may be chosen
    return array, draw(st.integers(0, array.shape[dim])), dim, draw(st.booleans()), True


# -- normalisations and losses ----------------------------------------------------------------------------------------
@row("layer_normalization")
def _(draw, dtype):
    shape = draw(shapes(1, 3))
    last = shape[draw(st.integers(0, len(shape) - 1)) :]
    vector = st.none() | arrays(last, dtype)
    return draw(arrays(shape, dtype)), last, draw(vector), draw(vector), 1e-5


@row("group_normalization")
def _(draw, dtype):
    groups, each = draw(SMALL), draw(SMALL)
    shape = draw(SMALL), groups * each, *draw(st.lists(SMALL, max_size=2))
    vector = st.none() | arrays((groups * each,), dtype)
    return draw(arrays(shape, dtype)), groups, draw(vector), draw(vector), 1e-5


@row("batch_normalization")
def _(draw, dtype):
    shape = draw(SMALL), draw(SIZES), *draw(st.lists(SMALL, max_size=3))
    vector = st.none() | arrays(shape[1:2], dtype)
    return draw(arrays(shape, dtype)), draw(vector), draw(vector), 1e-5


@row("channel_affine")
def _(draw, dtype):
    shape = draw(SMALL), draw(SIZES), *draw(st.lists(SMALL, max_size=3))
    return draw(arrays(shape, dtype)), draw(arrays(shape[1:2], dtype)), draw(arrays(shape[1:2], dtype))


@row("class_cross_entropy")
def _(draw, dtype):
    n, classes, rest = draw(SIZES), draw(SIZES), draw(st.sampled_from(((), (3,), (2, 5))))
    target = integers(draw, (n, *rest), classes)
    reduction, ignored = draw(st.sampled_from(("mean", "sum", "none"))), draw(st.sampled_from((-100, 0)))
    return draw(arrays((n, classes, *rest), dtype)), target, ignored, reduction


# -- sequences --------------------------------------------------------------------------------------------------------
@row("attention")
def _(draw, dtype):
    lead = draw(st.sampled_from(((), (2,), (2, 3))))
    queries, keys, width, values = draw(SIZES), draw(SIZES), draw(SIZES), draw(SIZES)
    bias = draw(st.none() | arrays(draw(st.sampled_from(((keys,), (queries, keys), (*lead[:0], 1, keys)))), dtype))
    parts = (
        arrays((*lead, queries, width), dtype),
        arrays((*lead, keys, width), dtype),
        arrays((*lead, keys, values), dtype),
    )
    return *map(draw, parts), bias, draw(st.booleans()), 0.25


@row("attention_backward")
def _(draw, dtype):
    query, key, value, bias, is_causal, scale = ROWS["attention"](draw, dtype)
    output, logsumexp = kernel("attention", "numpy")(query, key, value, bias, is_causal, scale)
    return draw(arrays(output.shape, dtype)), query, key, value, output, logsumexp, bias, is_causal, scale


@st.composite
def recurrences(draw, dtype, gates, states):
    """(input, first states, weight, batch sizes, reverse) of a recurrence."""
    hidden, batches = draw(SIZES), sorted(draw(st.lists(st.integers(1, 11), min_size=1, max_size=5)), reverse=True)
    first = [draw(arrays((batches[0], hidden), dtype)) for _ in range(states)]
    input, weight = arrays((sum(batches), gates * hidden), dtype), arrays((gates * hidden, hidden), dtype, -0.2, 0.2)
    return draw(input), *first, draw(weight), tuple(batches), draw(st.booleans())


def gradients(draw, dtype, *likes):
    """For each array None or a gradient of it."""
    return [draw(st.none() | arrays(like.shape, dtype)) for like in likes]


@row("rnn_sequence")
def _(draw, dtype):
    return *draw(recurrences(dtype, 1, 1)), draw(st.sampled_from(("tanh", "relu")))


@row("rnn_sequence_backward")
def _(draw, dtype):
    arguments = ROWS["rnn_sequence"](draw, dtype)
    output, state = kernel("rnn_sequence", "numpy")(*arguments)
    _, hx, weight, *rest = arguments
    return hx, weight, output, *rest, *gradients(draw, dtype, output, state)


@row("lstm_sequence")
def _(draw, dtype):
    return draw(recurrences(dtype, 4, 2))


@row("lstm_sequence_backward")
def _(draw, dtype):
    input, hx, cx, weight, batches, reverse = draw(recurrences(dtype, 4, 2))
    found = kernel("lstm_sequence", "numpy")(input, hx, cx, weight, batches, reverse)
    saved = found[0], found[3], found[4]
    return hx, cx, weight, *saved, batches, reverse, *gradients(draw, dtype, *found)


@row("gru_sequence")
def _(draw, dtype):
    arguments = draw(recurrences(dtype, 3, 1))
    return *arguments, draw(st.none() | arrays(arguments[2].shape[:1], dtype))


@row("gru_sequence_backward")
def _(draw, dtype):
    input, hx, weight, batches, reverse, bias = ROWS["gru_sequence"](draw, dtype)
    output, state, gates = kernel("gru_sequence", "numpy")(input, hx, weight, batches, reverse, bias)
    return hx, weight, output, gates, batches, reverse, *gradients(draw, dtype, output, state, gates)


# -- positions and data_movement --------------------------------------------------------------------------------------
ELEMENT = st.sampled_from(("?", "b", "h", "i", "l", "e", "f", "d", "F", "D"))


@row("gather")
def _(draw, dtype, element=ELEMENT):
    shape = draw(shapes())
    dim = draw(st.integers(0, len(shape) - 1))
    wanted = tuple(draw(st.integers(0, n)) if d != dim else draw(SIZES) for d, n in enumerate(shape))
    return draw(arrays(shape, draw(element))), dim, integers(draw, wanted, shape[dim])


@row("scatter_add")
def _(draw, dtype):
    input, dim, index = ROWS["gather"](draw, dtype, st.just(dtype))
    return input, dim, index, draw(arrays(index.shape, dtype))


@row("index_select")
def _(draw, dtype, element=ELEMENT):
    shape = draw(shapes())
    dim = draw(st.integers(0, len(shape) - 1))
    return draw(arrays(shape, draw(element))), dim, integers(draw, (draw(SIZES),), shape[dim])


@row("index_add")
def _(draw, dtype):
    input, dim, index = ROWS["index_select"](draw, dtype, st.just(dtype))
    source = (*input.shape[:dim], index.size, *input.shape[dim + 1 :])
    return input, dim, index, draw(arrays(source, dtype)), draw(st.sampled_from((1, 0.5)))


@row("index")
def _(draw, dtype, element=ELEMENT):
    shape = draw(shapes())
    together = draw(st.sampled_from(((5,), (3, 4), (1,))))
    indices = [integers(draw, together, n, -n) if draw(st.booleans()) else None for n in shape[:-1]]
    indices.append(integers(draw, together, shape[-1], -shape[-1]))  # the frontend drops None at the end
    return draw(arrays(shape, draw(element))), indices


@row("index_put")
def _(draw, dtype):
    input, indices = ROWS["index"](draw, dtype, st.just(dtype))
    return (
        input,
        indices,
        draw(arrays(input[tuple(slice(None) if i is None else i for i in indices)].shape, dtype)),
        True,
    )


@row("masked_select")
def _(draw, dtype):
    shape = draw(shapes())
    return draw(arrays(shape, draw(ELEMENT))), draw(arrays(shape, "?"))


@row("nonzero")
def _(draw, dtype):
    return (draw(arrays(draw(shapes()), draw(ELEMENT), 0, 3)),)


@row("cat")
def _(draw, dtype):
    shape, element = draw(shapes()), draw(ELEMENT)
    dim = draw(st.integers(0, len(shape) - 1))
    sizes = draw(st.lists(SMALL, min_size=1, max_size=4))
    return [draw(arrays((*shape[:dim], n, *shape[dim + 1 :]), element)) for n in sizes], dim


@row("stack")
def _(draw, dtype):
    shape, element = draw(shapes(most=3)), draw(ELEMENT)
    return [draw(arrays(shape, element)) for _ in range(draw(SMALL))], draw(st.integers(0, len(shape)))


@row("flip")
def _(draw, dtype):
    shape = draw(shapes())
    return draw(arrays(shape, draw(ELEMENT))), dims_of(draw, shape) or ()


@row("tril", "triu")
def _(draw, dtype):
    return draw(arrays(draw(shapes(2)), draw(ELEMENT))), draw(st.integers(-5, 5))


@row("clone")
def _(draw, dtype):
    return (draw(arrays(draw(shapes()), draw(ELEMENT))),)


@row("constant_pad_nd")
def _(draw, dtype):
    shape = draw(shapes())
    pad = draw(
        st.lists(st.integers(0, 3), min_size=2, max_size=2 * len(shape)).map(lambda p: tuple(p[: len(p) // 2 * 2]))
    )
    return draw(arrays(shape, dtype)), pad, 1.5


# -- the test ---------------------------------------------------------------------------------------------------------
def compare(actual, expected, dtype):
    """Assert equal dtypes, shapes and (to a tolerance of the largest element) values, of arrays and tuples of them."""
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            compare(a, e, dtype)
    elif expected is not None:
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.dtype == expected.dtype and actual.shape == expected.shape
        if expected.dtype.kind not in "fc" or not expected.size:
            np.testing.assert_array_equal(actual, expected)
            return
        finite = np.abs(expected[np.isfinite(expected)])
        scale = float(finite.max(initial=0)) + 1
        np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


def offering(op):
    """The backends that have a kernel of an op: levels of one module differ in products alone."""
    return [b.name for b, _ in registry.kernels[op, "cpu"] if b.name in BACKENDS]


@pytest.mark.parametrize(("op", "backend"), [(op, backend) for op in ROWS for backend in offering(op)])
def test_kernel(op, backend):
    @FUZZ
    @given(st.data(), REAL)
    def check(data, dtype):
        arguments = ROWS[op](data.draw, dtype)
        before = [a.copy() for a in arguments if isinstance(a, np.ndarray)]
        try:
            expected = kernel(op, "numpy")(*arguments)
        except (ValueError, RuntimeError):
            assume(False)
        compare(kernel(op, backend)(*arguments), expected, dtype)
        for array, copy in zip((a for a in arguments if isinstance(a, np.ndarray)), before):
            np.testing.assert_array_equal(array, copy)

    check()


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 0.1), ("float32", 12345.678), ("float32", -3.4e38), ("float64", 1e200)]
)
@pytest.mark.parametrize("count", [2, 9, 99, 4099])
@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_elements_do_not_vary(backend, count, dtype, value):
    x = torch.full((count,), value, dtype=getattr(torch, dtype))
    with torch.backend(backend):
        for rows, dim in ((x[None], 1), (torch.stack([x, x], 1), 0)):
            assert not rows.var(dim).any() and not rows.std(dim).any()
