"""Optimizer steps of the CuPy backend against the NumPy backend's: many tensors, any memory order, every dtype."""

import gc

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy import optimizer
from corefw_cupy.layouts import memory_order
from corefw_cupy.parameter_lists import CHUNK, tables
from corefw_numpy.optimizer import data_movement
from tests.emulation import compiler, memory
from tests.emulation.device import cuda

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="there is no C++ compiler")

SHAPES = [(5,), (3, 4), (), (0, 2), (70, 6), (1,)]
TOLERANCES = {"f4": 3e-6, "f8": 1e-13, "f2": 2e-2, "c8": 5e-6, ml_dtypes.bfloat16: 0.15}
RATES = ("f4", "f8", None)  # dtypes of a learning rate on the device, None for a number
# (name, lists of states, host numbers before the first step, options)
STEPS = [
    ("sgd_step", 0, (), (0.1, 0, 0, 0.1, False, True)),
    ("sgd_step", 1, (), (0.1, 0.9, 0.3, 0.01, False, False)),
    ("sgd_step", 1, (), (0.1, 0.9, 0, 0.1, True, False)),
    ("adam_step", 2, (2,), (0.05, 0.9, 0.999, 1e-8, 0, False, False, False)),
    ("adam_step", 3, (0,), (0.05, 0.8, 0.9, 1e-3, 0.1, True, True, True)),
    ("adadelta_step", 2, (0,), (0.5, 0.7, 1e-3, 0.1, True)),
    ("adagrad_step", 1, (0,), (0.1, 0.2, 1e-3, 0.1, True)),
    ("adamax_step", 2, (0,), (0.05, 0.8, 0.9, 1e-3, 0.1, True)),
    ("nadam_step", 2, (0.9, 2), (0.05, 0.8, 0.9, 1e-3, 0.1, 0.05, True, True)),
    ("radam_step", 2, (2,), (0.05, 0.8, 0.9, 1e-3, 0.1, True, True)),
    ("rmsprop_step", 3, (0,), (0.05, 0.8, 1e-2, 0.1, 0.9, False, True)),
    ("rmsprop_step", 3, (0,), (0.05, 0.8, 1e-2, 0.1, 0, True, True)),
    ("rmsprop_step", 3, (0,), (0.05, 0.8, 1e-2, 0.1, 0.9, True, False)),
]


@pytest.fixture(scope="module")
def kernels():
    return {kernel.op: kernel.function for kernel in optimizer.kernels(cuda())}


def numbers(shape, dtype):
    values = np.random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * np.random.standard_normal(shape)
    return np.asarray(values, dtype)


def transposed(array):
    """The same elements on the device, in the memory order of the transposed array."""
    return memory.device(array.T).T


def spread(array):
    """The same elements on the device, with gaps."""
    return memory.device(np.repeat(array, 2, -1))[..., ::2] if array.ndim else memory.device(array)


def compare(kernels, name, states, counts, options, dtype, shapes, places):
    """Make three steps with both backends; `places` puts parameters, gradients and states on the device."""
    hosts = [[numbers(shape, dtype) for shape in shapes] for _ in range(2)]
    for offset in (2, 0, 0)[:states]:  # mean squares above the squared means
        low = numbers([], dtype) * 0 + (offset + (offset * 1j if np.dtype(dtype).kind == "c" else 0))
        hosts.append([np.asarray(abs(numbers(shape, "f4")) * 0.1 + low, dtype) for shape in shapes])
    devices = [[place(a) for a in column] for place, column in zip(places, hosts)]
    own, others = ([[np.array(n, "f4") for _ in shapes] for n in counts] for _ in range(2))
    if counts:  # one parameter has been stepped more often
        own[-1][0][...] = others[-1][0][...] = 7
    if name == "adam_step" and states == 2:
        hosts, devices = [*hosts, []], [*devices, []]
    for turn in range(3):
        first = [[i % 2 == 0 and turn == 0 for i in range(len(shapes))]] if name == "sgd_step" else []
        buffers = [[]] if name == "sgd_step" and not states else []
        data_movement(np)[name](*hosts, *buffers, *own, *first, *options)
        kernels[name](*devices, *buffers, *others, *first, *options)
    for wanted, made in zip(hosts, devices):
        for w, m in zip(wanted, made):
            computed = "c16" if w.dtype.kind == "c" else "f8"
            m = memory.host(m).astype(computed)
            np.testing.assert_allclose(m, w.astype(computed), TOLERANCES[dtype], TOLERANCES[dtype])
    assert own == others


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0]}-{step[1]}")
@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda dtype: np.dtype(dtype).name)
def test_steps(kernels, step, dtype):
    compare(kernels, *step, dtype, SHAPES, [memory.device] * 5)


@pytest.mark.parametrize("places", [(0, 1, 0, 0), (1, 1, 1, 1), (0, 0, 1, 0), (2, 0, 0, 0), (0, 2, 2, 1)])
def test_memory_orders(kernels, places):
    ways = (memory.device, transposed, spread)
    compare(kernels, *STEPS[3], "f4", SHAPES, [ways[way] for way in places])


def test_more_tensors_than_a_table_holds_and_more_elements_than_a_block_takes(kernels):
    compare(kernels, *STEPS[3], "f4", [(3,)] * 70 + [(2 * CHUNK + 5,)], [memory.device] * 4)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("sgd_step", "f4"),
        ("sgd_step of pairs", "f8"),
        *((f"adam_step{p}", r) for p in ("", " of pairs") for r in RATES),
    ],
)
def test_rates_from_the_device(kernels, name, rate):
    """Counts of steps and learning rates that lie on the device give the bits that numbers give."""
    name, _, pairs = name.partition(" of ")
    dtype, shapes, lr = "c8" if pairs else "f4", [*SHAPES, *[(2,)] * 500], 0.03125
    columns = 3 if name == "sgd_step" else 5
    hosts = [[abs(numbers(shape, dtype)).astype(dtype) for shape in shapes] for _ in range(columns)]
    made = []
    for on_device in (False, True):
        *lists, last = [[memory.device(a) for a in column] for column in hosts]
        counts = [np.array(i % 3, "f4") for i in range(len(shapes))]
        counts = [memory.device(count) for count in counts] if on_device else counts
        given = memory.device(np.array(lr, rate)) if on_device and rate else lr
        for turn in range(2):
            if name == "sgd_step":
                first = [i % 2 == 0 and turn == 0 for i in range(len(shapes))]
                kernels[name](*lists, last, first, given, 0.9, 0.1, 0.01, False, False)
            else:
                kernels[name](*lists, last, counts, given, 0.75, 0.875, 1e-3, 0.25, turn == 0, True, False)
        counts = counts if name == "adam_step" else []
        counts = [memory.host(count).tolist() if on_device else count.tolist() for count in counts]
        made.append(([memory.host(a).tobytes() for column in (*lists, last) for a in column], counts))
    assert made[0] == made[1]


def test_counts_of_steps_at_two_places_are_refused(kernels):
    lists = [[memory.device(np.ones(2, "f4")) for _ in range(2)] for _ in range(4)]
    counts = [memory.device(np.zeros((), "f4")), np.zeros((), "f4")]
    with pytest.raises(ValueError, match="on the host and on the device"):
        kernels["adam_step"](*lists, [], counts, 0.1, 0.9, 0.9, 1e-3, 0.0, False, False, False)


def test_plans_are_forgotten_with_their_arrays(kernels):
    step = optimizer.Step(cuda(), "optimizer/sgd.cu", "sgd_step", (2, 3), 2)
    lists = [[memory.device(np.ones(3, "f4"))] for _ in range(2)]
    for _ in range(2):
        step(*lists, [], [], lambda: [(0.5, 0.0)], (0.0, 0.0, 0.0, False, False))
    assert len(step.plans) == 1 and (memory.host(lists[0][0]) == 0).all()
    del lists
    gc.collect()
    assert not step.plans


@pytest.mark.parametrize("order", [2.0, 1.0, np.inf, -np.inf, 0.0, 3.0, -1.0])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ml_dtypes.bfloat16])
def test_total_norm(kernels, order, dtype):
    hosts = [
        numbers(shape, dtype)
        for shape in [*SHAPES[:3], *SHAPES[4:], (CHUNK + 3,), *[(2,)] * (3 if order == 0 else 200)]
    ]
    hosts[0][...] = 1 if order < 0 else 0
    devices = [memory.device(a) for a in hosts[:-2]] + [spread(a) for a in hosts[-2:]]
    wanted = np.linalg.norm([np.linalg.norm(a.astype("f8").ravel(), order) for a in hosts], order)
    made = memory.host(kernels["total_norm"](devices, order))
    assert made.dtype == dtype and made.shape == ()
    np.testing.assert_allclose(float(made), wanted, max(TOLERANCES[dtype], 1e-12) / 3)


@pytest.mark.parametrize("order", [2.0, np.inf, -np.inf])
def test_the_norm_of_nan(kernels, order):
    assert np.isnan(memory.host(kernels["total_norm"]([memory.device(np.array([1, np.nan, 3], "f4"))], order)))


@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("factor", [1, 0.25])
def test_scaling(kernels, dtype, factor):
    hosts = [numbers(shape, dtype) for shape in [*SHAPES, *[(2,)] * 200]]
    devices = [memory.device(a) for a in hosts[:-2]] + [spread(a) for a in hosts[-2:]]
    kernels["scale_step"](devices, memory.device(np.array(factor, dtype)))
    for host, device in zip(hosts, devices):
        assert (memory.host(device) == host * np.array(factor, dtype)).all()


def test_tables():
    (first, second) = tables(2, 1, [CHUNK, 0, CHUNK + 1] + [1] * 200)
    assert (first.begin, first.end) == (0, second.begin) and second.end == 203
    assert first.blocks + second.blocks == 203
    assert first.struct.memory["first_blocks"][0, :5].tolist() == [0, 1, 1, 3, 4]
    assert first.struct.memory.nbytes <= 3840
    assert tables(1, 0, [0, 0]) == []


def test_gapless():
    def gapless(*layout):
        return memory_order(*layout) is not None

    assert gapless((2, 3), (12, 4), 4) and gapless((2, 3), (4, 8), 4) and gapless((1, 3), (99, 4), 4)
    assert not gapless((2, 3), (24, 8), 4) and not gapless((3, 3), (8, 8), 4) and gapless((0, 3), (7, 7), 4)
