"""Normalisations on the CUDA backend: how arrays are seen, and groups in and beyond registers."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy.groups import channel_groups, channels, layers, standing
from corefw_numpy import normalization
from tests.cuda_kernels import DTYPES, TOLERANCES, compare, kernels, rounded
from tests.emulation import memory

REFERENCE = normalization.kernels(np)
# NumPy's kernels are called directly here, and NumPy tells of their floating-point flags.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(0)


def numbers(view):
    return view.outer, view.groups, view.inner, view.period, view.channels, view.run


def test_views():
    assert numbers(layers((2, 3, 4), (3, 4))[0]) == (1, 2, 12, 1, 1, 1)
    assert numbers(channel_groups((2, 6, 5, 5), 3)) == (1, 6, 50, 3, 2, 25)
    assert numbers(channels((2, 6, 5, 5))) == (2, 6, 25, 6, 1, 50)
    assert channels((8, 6)).in_columns and not channels((1, 6)).in_columns
    with pytest.raises(ValueError):
        layers((2, 3), (2,))


@pytest.mark.parametrize("dims", [(0,), (1,), (3,), (0, 2), (1, 3), (2, 3), (1, 2), (0, 1, 2, 3), (0, 3)])
@pytest.mark.parametrize("weight", [(5,), (4, 5), (4, 1), (3, 4, 5), (3, 1, 1), (2, 3, 1, 1), (1,), (2, 1, 1, 5)])
def test_every_weight_beside_all_dims(dims, weight):
    """Each element's number, as views have it, is the one that broadcasting has."""
    shape = (2, 3, 4, 5)
    seen = standing(shape, dims, weight)
    if seen.weighted:
        view = seen.view
        wanted = np.broadcast_to(np.arange(np.prod(weight)).reshape(weight), shape)
        wanted = wanted.reshape(view.outer, view.groups, view.inner).transpose(1, 0, 2).reshape(view.groups, -1)
        at = np.arange(view.size)
        found = [g % view.period * view.channels + at // view.run for g in range(view.groups)]
        assert (np.array(found) == wanted).all()
    gradient, input = RNG.normal(size=(2, *shape))
    mean, scale = input.mean(dims, keepdims=True), 1 / np.sqrt(input.var(dims, keepdims=True) + 1e-5)
    arguments = gradient, input, RNG.normal(size=weight), scale, dims, mean
    compare(kernels()["standardized_gradients"], arguments, REFERENCE["standardized_gradients"](*arguments))


@pytest.mark.parametrize("shape", [(3, 33), (1100, 64), (3, 1000), (2, 5000), (2, 9001), (1, 20000), (0, 4)])
@pytest.mark.parametrize("affine", [True, False])
def test_layers(shape, affine):
    n = shape[1:]
    input, gradient = RNG.normal(size=(2, *shape)) + 3
    weight, bias = RNG.normal(size=(2, *n)) if affine else (None, None)
    expected = REFERENCE["layer_normalization"](input, n, weight, bias, 1e-5)
    compare(kernels()["layer_normalization"], (input, n, weight, bias, 1e-5), expected)
    root = REFERENCE["rms_normalization"](input, n, weight, 1e-5)
    compare(kernels()["rms_normalization"], (input, n, weight, 1e-5), root)
    _, mean, scale = expected
    for arguments in ((gradient, input, weight, scale, (1,), mean), (gradient, input, weight, root[1], (1,), None)):
        gradient, input, weight, scale, dims, mean = arguments
        plain = gradient, input, scale, dims, mean, weight
        compare(kernels()["standardized_backward"], plain, REFERENCE["standardized_backward"](*plain))
        if affine and input.size:
            compare(kernels()["standardized_gradients"], arguments, REFERENCE["standardized_gradients"](*arguments))


@pytest.mark.parametrize("shape", [(2, 4), (3, 8, 16), (2, 4, 101, 90), (2, 4, 0)])
def test_groups(shape):
    samples, count, size = *shape[:2], int(np.prod(shape[2:]))
    input, gradient = RNG.normal(size=(2, *shape))
    weight, bias = RNG.normal(size=(2, count))
    expected = REFERENCE["group_normalization"](input, 2, weight, bias, 1e-5)
    compare(kernels()["group_normalization"], (input, 2, weight, bias, 1e-5), expected)
    if size:
        grouped, weight = (samples, 2, count // 2, size), weight.reshape(1, 2, count // 2, 1)
        mean, scale = (a.reshape(samples, 2, 1, 1) for a in expected[1:])
        arguments = gradient.reshape(grouped), input.reshape(grouped), weight, scale, (2, 3), mean
        compare(kernels()["standardized_gradients"], arguments, REFERENCE["standardized_gradients"](*arguments))


@pytest.mark.parametrize("shape", [(300, 70), (3000, 5), (5, 3, 7, 7), (3, 2, 90, 91), (1, 6, 5, 5), (4, 1, 5), (0, 3)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_batches(shape):
    beside, dims = (1, shape[1], *(1 for _ in shape[2:])), (0, *range(2, len(shape)))
    input, gradient = RNG.normal(size=(2, *shape))
    weight, bias = RNG.normal(size=(2, shape[1]))
    expected = REFERENCE["batch_normalization"](input, weight, bias, 1e-5)
    compare(kernels()["batch_normalization"], (input, weight, bias, 1e-5), expected)
    compare(kernels()["channel_affine"], (input, weight, bias), REFERENCE["channel_affine"](input, weight, bias))
    if input.size:
        mean, scale = expected[1].reshape(beside), 1 / np.sqrt(expected[2] + 1e-5).reshape(beside)
        arguments = gradient, input, weight.reshape(beside), scale, dims, mean
        compare(kernels()["standardized_gradients"], arguments, REFERENCE["standardized_gradients"](*arguments))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(64, 100), (2, 20000)])
def test_rounded_once_beside_statistics_of_float32(dtype, shape):
    input, (weight, bias) = rounded(RNG.normal(size=shape), dtype), rounded(RNG.normal(size=(2, *shape[1:])), dtype)
    wide = [a.astype("f8") for a in (input, weight, bias)]
    expected = REFERENCE["layer_normalization"](wide[0], shape[1:], *wide[1:], 1e-5)
    arguments = input, shape[1:], weight, bias, 1e-5
    compare(kernels()["layer_normalization"], arguments, expected, TOLERANCES[dtype] / 2)
    compare(lambda *given: kernels()["layer_normalization"](*given)[1:], arguments, expected[1:], 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(64, 100), (2, 20000), (3, 8, 16), (2, 4, 101, 90), (1100, 64)])
def test_weights_of_float32_beside_half_types(dtype, shape):
    """Rows with a weight per element, and channels: the weights are not rounded, and nor are their gradients."""
    rows = len(shape) == 2
    dims, count = ((1,), shape[1:]) if rows else ((0, *range(2, len(shape))), shape[1:2])
    beside = count if rows else (1, *count, *(1 for _ in shape[2:]))
    input, gradient = (rounded(a, dtype) for a in RNG.normal(size=(2, *shape)))
    weight, bias = RNG.normal(size=(2, *count)).astype(np.float32)
    op, given = ("layer_normalization", (count,)) if rows else ("batch_normalization", ())
    expected = REFERENCE[op](input.astype("f8"), *given, weight.astype("f8"), bias.astype("f8"), 1e-5)
    compare(kernels()[op], (input, *given, weight, bias, 1e-5), expected, TOLERANCES[dtype] / 2)
    mean = expected[1] if rows else expected[1].reshape(beside)
    scale = expected[2] if rows else 1 / np.sqrt(expected[2] + 1e-5).reshape(beside)
    arguments = gradient, input, weight.reshape(beside), scale.astype("f4"), dims, mean.astype("f4")
    wide = [a.astype("f8") if isinstance(a, np.ndarray) else a for a in arguments]
    expected = REFERENCE["standardized_gradients"](*wide)
    compare(kernels()["standardized_gradients"], arguments, expected, TOLERANCES[dtype])
    of_vectors = lambda *given: kernels()["standardized_gradients"](*given)[1:]
    compare(of_vectors, arguments, expected[1:], 1e-4 * max(1, np.abs(expected[1]).max()))


@pytest.mark.parametrize("shape", [(4, 500), (2, 20000), (3000, 4)])
def test_a_great_mean_costs_no_precision(shape):
    input = (RNG.normal(size=shape) + 1000).astype(np.float32)
    op, wide = ("layer_normalization", input.astype("f8")) if shape[0] < 5 else ("batch_normalization", input)
    arguments = (shape[1:], None, None, 1e-5) if shape[0] < 5 else (None, None, 1e-5)
    expected = REFERENCE[op](wide.astype("f8"), *arguments)
    compare(lambda *given: kernels()[op](*given)[2], (input, *arguments), expected[2], 1e-4)


@pytest.mark.parametrize(("dtype", "value"), [("f4", 0.1), ("f4", 12345.678), ("f4", -3.4e38), ("f8", 1e200)])
@pytest.mark.parametrize("shape", [(3, 33), (4, 700), (2, 20000), (1, 60000), (3000, 4)])
def test_equal_elements_do_not_vary(shape, dtype, value):
    rows = shape[0] < 5
    op, arguments = ("layer_normalization", (shape[1:], None, None)) if rows else ("batch_normalization", (None, None))
    output, mean, spread = kernels()[op](memory.device(np.full(shape, value, dtype)), *arguments, 1e-5)
    assert not memory.host(output).any()
    assert (memory.host(mean) == np.dtype(dtype).type(value)).all()
    assert np.allclose(memory.host(spread), 1e-5**-0.5 if rows else 0, rtol=1e-6, atol=0)
