"""Recurrences of the CuPy backend on the emulated device: all ways of following them, packed sequences, many units."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy import recurrent
from corefw_numpy.recurrent import kernels as numpy_kernels
from tests.emulation import memory
from tests.emulation.device import cuda

REFERENCE = numpy_kernels(np)
RNG = np.random.default_rng(0)
KINDS = {"tanh": ("rnn", 1, 1), "relu": ("rnn", 1, 1), "lstm": ("lstm", 4, 2), "gru": ("gru", 3, 1)}  # gates, states


@pytest.fixture(scope="module")
def kernels():
    return {kernel.op: kernel.function for kernel in recurrent.kernels(cuda())}


def draw(dtype, *shape):
    return RNG.uniform(-1, 1, shape).astype(dtype)


def compare(function, reference, arguments):
    uploaded = [memory.device(x) if isinstance(x, np.ndarray) else x for x in arguments]
    expected = reference(*(x.copy() if isinstance(x, np.ndarray) else x for x in arguments))
    for ours, theirs in zip(function(*uploaded), expected, strict=True):
        bound = 3e-5 if theirs.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(memory.host(ours), theirs, rtol=bound, atol=bound * (1 + abs(theirs).max(initial=0)))
    return expected


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("dtype", "hidden", "batch_sizes"),
    [
        (np.float32, 3, (2, 2, 2)),
        (np.float32, 70, (5,) * 3),  # several blocks, units that are no multiple of a warp
        (np.float32, 128, (1, 1)),
        (np.float32, 130, (3, 3)),  # too many units for one launch
        (np.float32, 5, (5, 4, 4, 1, 1)),
        (np.float64, 33, (9, 9, 2, 0)),
        (np.float32, 0, (2, 1)),
        (np.float32, 2, (1030, 1030)),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_like_numpy(kernels, kind, dtype, hidden, batch_sizes, reverse):
    name, gates, states = KINDS[kind]
    rows, batch = sum(batch_sizes), batch_sizes[0]
    firsts = [draw(dtype, batch, hidden) for _ in range(states)]
    weight = draw(dtype, gates * hidden, hidden) / max(1, hidden) ** 0.5
    options = [batch_sizes, reverse, kind] if name == "rnn" else [batch_sizes, reverse]
    arguments = [draw(dtype, rows, gates * hidden), *firsts, weight, *options]
    if name == "gru" and reverse:
        arguments.append(draw(dtype, gates * hidden))
    output, *others = compare(kernels[f"{name}_sequence"], REFERENCE[f"{name}_sequence"], arguments)
    saved = others[states:]
    backward = f"{name}_sequence_backward"
    given = [*firsts, weight, output, *saved, *options]
    gradients = [draw(dtype, *array.shape) for array in (output, *firsts, *saved)]
    for some in (gradients, [None] * len(gradients)):
        compare(kernels[backward], REFERENCE[backward], [*given, *some])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("hidden", "batch_sizes"), [(5, (3, 3, 3)), (130, (2, 2)), (7, (5, 4, 4, 1))])
@pytest.mark.parametrize("kind", ["tanh", "lstm", "gru"])
def test_half_types(kernels, kind, dtype, hidden, batch_sizes):
    name, gates, states = KINDS[kind]
    firsts = [draw(dtype, batch_sizes[0], hidden) for _ in range(states)]
    weight = (draw(np.float32, gates * hidden, hidden) / hidden**0.5).astype(dtype)
    options = [batch_sizes, False, kind] if name == "rnn" else [batch_sizes, False]
    arguments = [draw(dtype, sum(batch_sizes), gates * hidden), *firsts, weight, *options]

    def compare_rounded(op, arguments):
        def convert(function):
            return [function(x) if isinstance(x, np.ndarray) else x for x in arguments]

        expected = REFERENCE[op](*convert(lambda x: x.astype(np.float64)))
        found = [memory.host(x) for x in kernels[op](*convert(memory.device))]
        bound = 8 * float(ml_dtypes.finfo(dtype).eps)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == dtype
            assert abs(ours.astype(np.float64) - theirs).max() <= bound * (1 + abs(theirs).max())
        return found

    output, *others = compare_rounded(f"{name}_sequence", arguments)
    saved = others[states:]
    gradients = [draw(dtype, *array.shape) for array in (output, *firsts, *saved)]
    compare_rounded(f"{name}_sequence_backward", [*firsts, weight, output, *saved, *options, *gradients])


@pytest.mark.parametrize(
    ("rows", "columns", "batch_sizes"), [(4, 3, (2, 2, 2)), (4, 2, (2, 2)), (3, 3, (1, 2)), (4, 3, (4,))]
)
def test_refused(kernels, rows, columns, batch_sizes):
    arrays = (memory.device(np.zeros(shape, np.float32)) for shape in ((rows, columns), (2, 3), (3, 3)))
    with pytest.raises(ValueError):
        kernels["rnn_sequence"](*arrays, batch_sizes, False, "tanh")


def test_other_dtypes_of_states_are_refused(kernels):
    arrays = [memory.device(np.zeros(shape, dtype)) for shape, dtype in (((2, 3), "f"), ((2, 3), "d"), ((3, 3), "f"))]
    with pytest.raises(ValueError):
        kernels["rnn_sequence"](*arrays, (2,), False, "tanh")


def test_steps_of():
    def values(reverse):
        steps = recurrent.steps_of(7, (3, 2, 0), reverse)
        return [(*step.memory.tolist()[0], start, size) for step, start, size in steps]

    assert values(False) == [(7, 0, 3, 0, 0, 0, 3), (7, 3, 2, 0, 2, 3, 2)]
    assert values(True) == [(7, 3, 2, 0, 0, 3, 2), (7, 0, 3, 3, 2, 0, 3)]


def test_fits_whole():
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    assert recurrent.fits_whole(single, 128, (3, 3))
    assert not recurrent.fits_whole(single, 129, (3, 3))
    assert not recurrent.fits_whole(single, 1, (3, 2))
    assert not recurrent.fits_whole(double, 1, (3, 3))
    assert not recurrent.fits_whole(single, 1, (1025,))
