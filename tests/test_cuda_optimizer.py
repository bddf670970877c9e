"""Optimizer steps of the CuPy backend against the NumPy backend's: many tensors, any memory order, every dtype."""

import gc

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.dispatch.records import Layout, record
from corefw.testing.cases.optimizer import SHAPES, STEPS, arguments
from corefw_cupy import optimizer
from corefw_cupy.launch import argument
from corefw_cupy.layouts import memory_order
from corefw_cupy.parameter_lists import CHUNK, tables
from corefw_numpy.optimizer import data_movement
from tests.emulation import compiler, memory
from tests.emulation.device import cuda

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="there is no C++ compiler")

TOLERANCES = {"f4": 3e-6, "f8": 1e-13, "f2": 2e-2, "c8": 5e-6, ml_dtypes.bfloat16: 0.15}
RATES = ("f4", "f8", None)  # dtypes of a learning rate on the device, None for a number
CALLS = [(name, numbers) for name, (_, calls) in STEPS.items() for numbers in calls]
ADAM = next(numbers for name, numbers in CALLS if name == "adam_step")


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


def compare(kernels, name, numbers, dtype, shapes, places):
    """Make three steps with both backends; `places` puts parameters, gradients and states on the device."""
    spec = record(name)
    host = spec.named(*arguments(name, numbers, np.random.default_rng(0), np.dtype(dtype), shapes))
    columns = {key: [place(a) for a in getattr(host, key)] for place, key in zip(places, spec.arrays)}
    counts = {key: [count.copy() for count in getattr(host, key)] for key in spec.counts}
    device = host._replace(**columns, **counts)
    for _ in range(3):
        data_movement(np)[name](*host)
        kernels[name](*device)
    for key, column in columns.items():
        for wanted, made in zip(getattr(host, key), column):
            computed = "c16" if wanted.dtype.kind == "c" else "f8"
            made = memory.host(made).astype(computed)
            np.testing.assert_allclose(made, wanted.astype(computed), TOLERANCES[dtype], TOLERANCES[dtype])
    assert all(getattr(host, key) == counts[key] for key in spec.counts)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda dtype: np.dtype(dtype).name)
def test_steps(kernels, call, dtype):
    compare(kernels, *call, dtype, SHAPES, [memory.device] * 5)


@pytest.mark.parametrize("places", [(0, 1, 0, 0), (1, 1, 1, 1), (0, 0, 1, 0), (2, 0, 0, 0), (0, 2, 2, 1)])
def test_memory_orders(kernels, places):
    ways = (memory.device, transposed, spread)
    compare(kernels, "adam_step", ADAM, "f4", SHAPES, [*(ways[way] for way in places), memory.device])


def test_more_tensors_than_a_table_holds_and_more_elements_than_a_block_takes(kernels):
    compare(kernels, "adam_step", ADAM, "f4", [(3,)] * 70 + [(2 * CHUNK + 5,)], [memory.device] * 5)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
@pytest.mark.parametrize(("dtype", "rate"), [*(("f4", rate) for rate in RATES), ("c8", "f8")])
def test_rates_from_the_device(kernels, call, dtype, rate):
    """Counts of steps and learning rates that lie on the device give the bits that numbers give."""
    (name, numbers), shapes = call, [*SHAPES, *[(2,)] * 500]
    spec, made = record(name), []
    for on_device in (False, True):
        given = arguments(name, numbers | {"lr": 0.03125}, np.random.default_rng(0), np.dtype(dtype), shapes)
        step = spec.named(*given)
        moved = [*spec.arrays, *(spec.counts if on_device else ())]
        step = step._replace(**{key: [memory.device(a) for a in getattr(step, key)] for key in moved})
        if on_device and rate:
            step = step._replace(lr=memory.device(np.array(step.lr, rate)))
        for _ in range(2):
            kernels[name](*step)
        lists = [a for key in spec.lists for a in getattr(step, key)]
        made.append([(a if isinstance(a, np.ndarray) else memory.host(a)).tobytes() for a in lists])
    assert made[0] == made[1]


def test_counts_of_steps_at_two_places_are_refused(kernels):
    spec = record("adam_step")
    step = spec.named(*arguments("adam_step", ADAM, np.random.default_rng(0), np.dtype("f4"), [(2,), (2,)]))
    step = step._replace(**{key: [memory.device(a) for a in getattr(step, key)] for key in spec.arrays})
    with pytest.raises(ValueError, match="on the host and on the device"):
        kernels["adam_step"](*step._replace(steps=[memory.device(step.steps[0]), step.steps[1]]))


def test_plans_are_forgotten_with_their_arrays(kernels):
    step = optimizer.Step(cuda(), "optimizer/sgd.cu", "sgd_step", (2, 3), 1)
    lists = [[memory.device(np.ones(3, "f4"))] for _ in range(2)]
    numbers = Layout("numbers").packer("sgd_step")(0.0, 0.0, 0.0, False, False, False)
    for _ in range(2):
        step(*lists, [], [], lambda: [(0.5,)], argument(np.frombuffer(numbers, np.uint8)))
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
