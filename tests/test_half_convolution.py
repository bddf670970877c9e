"""Convolutions of half types take their arrays as they are, at every level of the C backend that this machine has, and
by emulated tiles: each way that they may go, compared with float64; the memory that they take."""

from functools import partial

import numpy as np
import pytest

import corefw as torch
from tests.halves import HALVES, LEVELS, check, f64, random

pytest.importorskip("tests.compiled")
from tests.scratch import extra

F = torch.nn.functional

# (input, weight, options of conv1d to conv3d, or of conv_transpose1d to conv_transpose3d)
FORWARD = [
    ((3, 24, 13, 18), (40, 24, 3, 3), {"padding": 1}),  # Winograd's algorithm, but on tiles: few tiles,
    ((17, 300, 4, 4), (40, 300, 3, 3), {"padding": 1}),  # of many channels,
    ((9, 18, 17, 31), (21, 18, 3, 3), {"padding": 1}),  # many tiles
    ((2, 40, 11, 19), (40, 20, 3, 3), {"padding": 2, "groups": 2}),
    ((2, 130, 5, 6), (34, 130, 3, 3), {"padding": 1}),  # more words of weights than are gathered at once
    ((5, 33, 14, 14), (66, 33, 3, 3), {}),
    ((9, 18, 7, 7), (33, 18, 5, 3), {"stride": (2, 1), "padding": (2, 1), "dilation": (1, 2)}),
    ((2, 32, 64, 3), (17, 32, 1, 1), {"stride": 2}),
    ((9, 71, 7, 7), (45, 71, 1, 1), {}),  # matrices as they lie: places of several samples side by side,
    ((3, 80, 30, 31), (42, 40, 1, 1), {"groups": 2}),  # and of one
    ((5, 34, 3, 4), (46, 34, 3, 4), {}),  # one window
    ((3, 1, 28, 28), (32, 1, 3, 3), {}),
    ((2, 3, 37, 41), (20, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((2, 64, 16, 15), (2, 64, 3, 3), {"padding": 1}),  # few channels: directly from rows of places
    ((3, 20, 21, 35), (20, 1, 3, 3), {"groups": 20, "padding": 1}),
    ((2, 7, 24, 19), (14, 1, 5, 5), {"groups": 7, "padding": 2, "stride": 2}),
    ((4, 17, 203), (31, 17, 5), {"padding": 4, "dilation": 2}),
    ((2, 5, 4, 7, 20), (18, 5, 3, 3, 3), {"padding": 1, "stride": (1, 2, 1)}),
]
TRANSPOSED = [
    ((2, 20, 9, 7), (20, 18, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 33, 5, 6), (33, 15, 1, 1), {"stride": 2}),  # some results have no input: the bias alone
    ((3, 12, 6, 8), (12, 1, 4, 4), {"stride": 2, "groups": 12}),
    ((5, 37, 1, 1), (37, 21, 4, 3), {"stride": 2}),
    ((2, 6, 40), (6, 17, 3), {"stride": 3, "dilation": 2, "output_padding": 1}),
]
TILES = 2.0**-19  # what sums lose of their moduli in tiles of 4 x 4 results
PROBLEMS = [*(("conv", *p) for p in FORWARD), *(("conv_transpose", *p) for p in TRANSPOSED)]


def results(name, arrays, options, gradient=None):
    """The result of a convolution, and the gradients of its input, weight and bias."""
    leaves = [t.detach().requires_grad_() for t in arrays]
    y = getattr(F, f"{name}{arrays[0].ndim - 2}d")(*leaves, **options)
    gradient = random(y.dtype.name, *y.shape) if gradient is None else gradient
    return gradient, (y, *torch.autograd.grad(y, leaves[:2], gradient))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_each_way(level, problem, dtype):
    name, input, weight, options = problem
    outside = weight[0] if name == "conv" else weight[1] * options.get("groups", 1)
    arrays = [random(dtype, *shape) for shape in (input, weight, (outside,))]
    with torch.backend(level):
        gradient, found = results(name, arrays, options)
    with torch.backend("numpy"):
        exact = results(name, [t.double() for t in arrays], options, gradient.double())[1]
        moduli = results(name, [t.double().abs() for t in arrays], options, gradient.double().abs())[1]
    for result, expected, terms in zip(found, exact, moduli, strict=True):
        check(result, f64(expected), f64(terms), dtype, TILES if weight[2:] == (3, 3) else 2.0**-21)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("problem", FORWARD[:11:2], ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_bits_do_not_depend_on_the_number_of_threads(level, problem, dtype, same_on_threads):
    input, weight, options = problem
    arrays = [random(dtype, *shape) for shape in (input, weight, weight[:1])]
    with torch.backend(level):
        gradient, _ = results("conv", arrays, options)
        same_on_threads(lambda: results("conv", arrays, options, gradient)[1])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_infinities_and_nan_spoil_only_what_they_meet(level, dtype):
    """Also in gradients of weights, where what lies beside the last place of a row is another window's."""
    x, w, gradient = (random(dtype, *shape).abs() for shape in ((1, 20, 12, 11), (18, 20, 3, 3), (1, 18, 10, 9)))
    x[0, 3, 5, 10], x[0, 4, 11, 0] = float("inf"), float("nan")
    with torch.backend(level):
        y, of_x, of_w = map(f64, results("conv", (x, w), {}, gradient)[1])
    met = np.zeros((10, 9), bool)
    met[3:6, 8] = met[9, 0] = True
    assert (np.isfinite(y[0]) == ~met).all() and np.isfinite(of_x).all()
    spoilt = np.zeros((20, 3, 3), bool)
    spoilt[3, :, 2] = spoilt[4, 2, 0] = True
    assert (np.isfinite(of_w) == ~spoilt).all()
    assert (y[0, :, 3:6, 8] == np.inf).all() and np.isnan(y[0, :, 9, 0]).all()


@pytest.mark.parametrize("value", [100, 10000])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_an_outlier_spoils_nothing_that_does_not_see_it(level, dtype, value):
    """Neither one that tiles of results bear, nor one that they would not."""
    x, w, gradient = (random(dtype, *shape) for shape in ((3, 24, 16, 16), (20, 24, 3, 3), (3, 20, 16, 16)))
    for where in (4, 5, 6, 7):  # in a tile
        outliers = [x.clone(), gradient.clone()]
        outliers[0][1, 7, where, 8], outliers[1][1, 7, 9, where] = value, -value
        exact, moduli, found = [], [], []
        for target, backend, change in (
            (found, level, lambda t: t),
            (exact, "numpy", torch.Tensor.double),
            (moduli, "numpy", lambda t: t.double().abs()),
        ):
            with torch.backend(backend):
                for a, b in ((outliers[0], gradient), (x, outliers[1])):
                    target.extend(results("conv", (change(a), change(w)), {"padding": 1}, change(b))[1])
        for result, expected, terms in zip(found, exact, moduli, strict=True):
            check(result, f64(expected), f64(terms), dtype, 4 * TILES)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("level", [level for level in LEVELS if level != "c-tiles"])
def test_no_array_is_converted_as_a_whole(level, threads, dtype, set_threads):
    """The memory beside the results is less than half a copy of the input, or of the result's gradient, in float32."""
    set_threads(threads)
    for kernel, stride, groups in ((3, 1, 1), (5, 1, 1), (1, 2, 1), (3, 1, 32)):
        x, w = random(dtype, 32, 32, 60, 60), random(dtype, 32, 32 // groups, kernel, kernel)
        convolved = partial(F.conv2d, stride=stride, padding=kernel // 2, groups=groups)
        with torch.backend(level):
            calls = [partial(convolved, x, w)]
            for wanted in (0, 1):
                both = [x, w]
                leaf = both[wanted] = both[wanted].detach().requires_grad_()
                y = convolved(*both)
                calls.append(partial(torch.autograd.grad, y, leaf, random(dtype, *y.shape), retain_graph=True))
            for number, call in enumerate(calls):
                taken = extra(call if number == 0 else lambda call=call: call()[0])
                assert taken < 2 * x.numel(), (kernel, number, taken)
