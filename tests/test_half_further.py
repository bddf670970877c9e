"""Half types in connectionist classification, sparse and cross products, layers of int8, paddings, linear
recurrences and elementwise functions, at every level of the C backend that this machine has: results are those of
float32, rounded once, and no array is converted as a whole."""

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from tests.halves import HALVES, WHOLE, check, f64, near, random, rounded

pytest.importorskip("tests.compiled")
from tests.scratch import extra

F = torch.nn.functional


def op(name):
    return registry.declared[name].function


def integers(low, high, *shape):
    return torch.tensor(np.random.default_rng(0).integers(low, high, shape))


def rounded_once(function, *halves, level):
    """Check a function that adds up products of its operands: with that of float32, and with that of float64."""
    rounded(function, *halves, level=level)
    with torch.backend(level):
        found = function(*halves)
    with torch.backend("numpy"):
        exact, moduli = (f64(function(*map(of, halves))) for of in (torch.Tensor.double, lambda t: t.double().abs()))
    check(found, exact, moduli, halves[0].dtype.name)


# -- connectionist temporal classification ----------------------------------------------------------------------------
def alignment(dtype, times, samples, classes, labels):
    """Logarithms of probabilities, labels and lengths, some of them 0."""
    scores = random(dtype, times, samples, classes).float().log_softmax(2).to(getattr(torch, dtype))
    lengths, sizes = integers(0, times + 1, samples), integers(0, labels + 1, samples)
    return scores, (integers(0, classes, samples, labels), lengths, sizes)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_alignments(level, dtype):
    for shape in ((20, 3, 7, 4), (70, 5, 300, 50), (9, 2, 3, 0), (1, 1, 1, 1)):
        scores, rest = alignment(dtype, *shape)
        for zero_infinity in (False, True):
            rest_of = (*rest, 0, zero_infinity)
            rounded(lambda x, rest=rest_of: op("ctc_costs")(x, *rest), scores, level=level)
            rounded(
                lambda x, g, rest=rest_of: op("ctc_costs_backward")(g, x, *rest),
                scores,
                random(dtype, shape[1]),
                level=level,
            )


# -- sparse matrices --------------------------------------------------------------------------------------------------
def pattern(rows, columns, entries):
    counts = np.random.default_rng(1).multinomial(entries, [1 / rows] * rows)
    return torch.tensor([0, *np.cumsum(counts)]), integers(0, columns, entries)


@pytest.mark.parametrize("n", [1, 3, 16, 33, 64, 150])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_sparse_products(level, dtype, n):
    for rows, columns, entries in ((7, 5, 30), (90, 130, 900), (3, 400, 5)):
        at, values = pattern(rows, columns, entries), random(dtype, entries)
        left, right = random(dtype, rows, n), random(dtype, columns, n)
        rounded_once(lambda v, x, at=at: op("csr_matmul")(v, x, *at), values, right, level=level)
        transposed = (*at, columns)
        rounded_once(lambda v, x, at=transposed: op("csr_transposed_matmul")(v, x, *at), values, left, level=level)
        rounded_once(lambda a, b, at=at: op("csr_sampled_matmul")(a, b, *at), left, right, level=level)


# -- layers of int8 ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_layers_of_int8(level, dtype):
    for rows, features, width in (((3,), 40, 50), ((2, 30), 33, 700), ((70,), 200, 300), ((1,), 5, 20_000)):
        layer = torch.nn.Sequential(torch.nn.Linear(width, features))
        for settings in (
            torch.ao.quantization.default_dynamic_qconfig,
            torch.ao.quantization.per_channel_dynamic_qconfig,
        ):
            small = torch.ao.quantization.quantize_dynamic(layer, {torch.nn.Linear: settings})
            x = random(dtype, *rows, width)
            rounded(small, x, level=level)
            with torch.backend(level):
                found = small(x)
            with torch.backend("numpy"):
                near(found, small(x.float()), dtype)
            x[..., 0] = float("inf")
            rounded(small, x, level=level)


# -- vectors, paddings, recurrences -----------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_cross_products(level, dtype):
    for shape, dim in (((3,), 0), ((7000, 3), -1), ((4, 3, 50), 1), ((3, 1100), 0), ((2, 3, 5, 600), 1), ((0, 3), 1)):
        a, b = random(dtype, *shape), random(dtype, *shape)
        rounded(lambda a, b, dim=dim: torch.cross(a, b, dim), a, b, level=level)
        if len(shape) > 1:
            one = b.narrow(0 if dim else -1, 0, min(1, shape[0]))
            rounded(lambda a, b, dim=dim: torch.linalg.cross(a, b, dim=dim), a, one, level=level)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_gradients_of_paddings(level, dtype, mode):
    """What an element stands for several times is added up in the order of its places, and rounded once."""
    backward = op("indexed_pad_backward")
    for shape, pad in (
        *(((2, 9), (1, 2)), ((2, 3, 9, 7), (3, 3, 2, 2)), ((2, 3, 9, 7), (-1, 2, 0, -2)), ((2, 5, 6, 7), (1, 0, 0, 0))),
        *(((1, 2, 5, 6, 7), (4, 3, 2, 1, 0, 4)), ((3, 40, 50), (0, 0, 5, 5)), ((2, 3, 4, 5), (0, 0, 0, 0))),
    ):
        padded = F.pad(torch.zeros(shape), pad, mode)
        gradient = random(dtype, *padded.shape)
        rounded_once(lambda g, shape=shape, pad=pad: backward(g, shape, pad, mode), gradient, level=level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_linear_recurrences(level, dtype):
    for shape in ((5,), (7, 9), (3, 5000), (2000, 3), (2, 3, 65, 7), (0, 4), (40, 700)):
        for dim in range(len(shape)):
            factor, x = random(dtype, *shape) / 2, random(dtype, *shape)
            rounded_once(lambda f, x, dim=dim: op("linear_recurrence")(f, x, dim), factor, x, level=level)


# -- elementwise ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_elementwise_functions(level, dtype):
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(getattr(torch, dtype))
    for function in (
        *(torch.angle, torch.conj_physical, torch.special.entr, torch.special.erfcx, torch.special.log_ndtr),
        *(lambda x: op("huber")(x, 0.7, 1.5), lambda x: tuple(torch.frexp(x))),
    ):
        rounded(function, every, level=level)
        rounded(function, every[::3], level=level)
    other = every.flip(0)[:, None] * torch.ones(1, 1, dtype=every.dtype)
    for function in (torch.ldexp, torch.special.xlog1py, lambda x, y: op("huber_backward")(x, y, 0.7, 1.5)):
        rounded(function, every, other[:, 0], level=level)
        rounded(function, every[:300], other[:300:7], level=level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_parts_of_numbers_make_them_again(level, dtype):
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(getattr(torch, dtype))
    finite = every[every.isfinite()]
    with torch.backend(level):
        mantissa, exponent = torch.frexp(finite)
        again = torch.ldexp(mantissa, exponent)
    assert exponent.dtype is torch.int32
    np.testing.assert_array_equal(f64(again), f64(finite))
    np.testing.assert_array_equal(f64(mantissa), np.frexp(f64(finite))[0])


# -- memory -----------------------------------------------------------------------------------------------------------
def calls(dtype):
    """Calls of many halves, and how many they read and write."""
    scores, rest = alignment(dtype, 200, 32, 1000, 20)
    crow, col = pattern(3000, 3000, 9000)
    values, matrix = random(dtype, 9000), random(dtype, 3000, 400)
    layer = torch.nn.Sequential(torch.nn.Linear(400, 400))
    small = torch.ao.quantization.quantize_dynamic(layer, {torch.nn.Linear})
    vectors, images = random(dtype, 400_000, 3), random(dtype, 4, 8, 202, 202)
    square, whole = random(dtype, 1000, 1000), random(dtype, 1_000_000)
    return {
        "ctc_costs": (scores, lambda: op("ctc_costs")(scores, *rest, 0, False)),
        "ctc_costs_backward": (
            scores,
            lambda: op("ctc_costs_backward")(scores[0, :, 0].contiguous(), scores, *rest, 0, False),
        ),
        "csr_matmul": (matrix, lambda: op("csr_matmul")(values, matrix, crow, col)),
        "csr_transposed_matmul": (matrix, lambda: op("csr_transposed_matmul")(values, matrix, crow, col, 3000)),
        "csr_sampled_matmul": (matrix, lambda: op("csr_sampled_matmul")(matrix, matrix, crow, col)),
        "quantized_linear": (matrix, lambda: small(matrix)),
        "cross": (vectors, lambda: torch.cross(vectors, vectors, 1)),
        "indexed_pad_backward": (
            images,
            lambda: op("indexed_pad_backward")(images, (4, 8, 200, 200), (1, 1, 1, 1), "reflect"),
        ),
        "linear_recurrence": (square, lambda: op("linear_recurrence")(square, square, 0)),
        "huber": (whole, lambda: op("huber")(whole, 1.0, 1.0)),
        "huber_backward": (whole, lambda: op("huber_backward")(whole, whole, 1.0, 1.0)),
        "ldexp": (whole, lambda: torch.ldexp(whole, whole)),
        "frexp": (whole, lambda: tuple(torch.frexp(whole))),
        "log_ndtr": (whole, lambda: torch.special.log_ndtr(whole)),
    }


@pytest.mark.parametrize("dtype", HALVES)
def test_no_array_is_converted_as_a_whole(dtype, set_threads):
    """The memory beside the results is about what the halves themselves take at most, half of a copy in float32."""
    set_threads(2)
    with torch.backend("c"):
        for name, (given, call) in calls(dtype).items():
            assert extra(call) < 2.5 * given.numel(), name
