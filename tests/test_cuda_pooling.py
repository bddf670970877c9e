"""Pooling and resampling on the emulated device: what rows of the ops are too small for."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.dtypes import float32
from corefw.testing.checks import settle
from corefw_cupy import pooling, resampling
from corefw_numpy import pooling as expected
from corefw_numpy import resampling as expected_samples
from tests.emulation import memory
from tests.emulation.device import cuda

EXPECTED = {**expected.kernels(np), **expected_samples.kernels(np)}


@pytest.fixture(scope="module")
def kernels():
    made = (kernel for family in (pooling, resampling) for kernel in family.kernels(cuda()))
    return {kernel.op: kernel.function for kernel in made if float32 in kernel.dtypes}


@pytest.fixture
def planned_anew():
    """No plan is left from before, and none stays."""
    plans = pooling.plan, resampling.plan
    for plan in plans:
        plan.cache_clear()
    yield
    for plan in plans:
        plan.cache_clear()


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check(kernels, op, array, *arguments):
    found, wanted = kernels[op](memory.device(array), *arguments), EXPECTED[op](array, *arguments)
    for result, value in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True):
        np.testing.assert_allclose(memory.host(result), value, rtol=1e-5, atol=1e-5)


# -- windows ----------------------------------------------------------------------------------------------------------
def test_threads_share_large_windows():
    assert pooling.lanes_of(elements=9, windows=100, stride=2) == 1
    assert pooling.lanes_of(elements=49, windows=2048, stride=7) == 32
    assert pooling.lanes_of(elements=121, windows=1 << 20, stride=1) == 1
    assert pooling.lanes_of(elements=1 << 16, windows=64, stride=256) == pooling.THREADS


@pytest.mark.parametrize("lanes, wide", [(1, False), (32, False), (pooling.THREADS, False), (1, True), (32, True)])
def test_windows_are_pooled_by_any_number_of_threads(kernels, lanes, wide, monkeypatch, planned_anew):
    monkeypatch.setattr(pooling, "lanes_of", lambda *sizes: lanes)
    if wide:
        monkeypatch.setattr(pooling, "MOST", 0)
    array = numbers(2, 3, 19, 21)
    special = array.copy()
    special[..., ::3, ::5], special[..., 1::4, 2::7] = np.nan, -np.inf
    windows = (5, 4), (2, 3), (2, 1)
    for values in (array, special):
        check(kernels, "max_pool", values, *windows, (2, 1), True)
        check(kernels, "adaptive_max_pool", values, (3, 1))
    check(kernels, "avg_pool", array, *windows, True, False, None)
    check(kernels, "adaptive_avg_pool", array, (1, 4))
    grad = EXPECTED["avg_pool"](array, *windows, True, True, None)
    check(kernels, "avg_pool_backward", grad, array.shape, *windows, True, True, None)
    check(kernels, "adaptive_avg_pool_backward", numbers(2, 3, 4, 30), array.shape)


def test_a_window_of_many_elements(kernels):
    check(kernels, "adaptive_avg_pool", numbers(1, 2, 70, 80), (1, 1))
    check(kernels, "adaptive_max_pool", numbers(1, 2, 70, 80), (1, 1))


# -- the gradient of maxima -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("planes, plane", [(3, 49), (5000, 16), (2, 4096), (2, 4097), (1, 100000)])
def test_every_element_has_its_block(planes, plane):
    grid, parts, shares = pooling.shares(planes, plane, 1)
    _, _, _, of_block, parts, part = shares.memory[0].item()
    assert grid * of_block >= parts * planes > (grid - parts) * of_block
    assert part <= pooling.ELEMENTS
    assert part * parts >= plane > part * (parts - 1) or (parts == 1 and part == of_block * plane)


@pytest.mark.parametrize(
    "sizes, windows", [((9,), (300,)), ((7000,), (900,)), ((150, 150), (40, 30)), ((3, 3), (1, 1))]
)
@pytest.mark.parametrize("spread", ["all", "one", "sorted"])
def test_gradients_of_maxima_are_added_in_order(kernels, sizes, windows, spread):
    rng, plane = np.random.default_rng(0), int(np.prod(sizes))
    indices = rng.integers(0, 1 if spread == "one" else plane, (2, 3, *windows))
    if spread == "sorted":
        indices = np.sort(indices.reshape(2, 3, -1)).reshape(indices.shape)
    grad, wanted = numbers(*indices.shape), np.zeros((6, plane), np.float32)
    np.add.at(wanted, (np.arange(6)[:, None], indices.reshape(6, -1)), grad.reshape(6, -1))
    found = kernels["max_pool_backward"](memory.device(grad), memory.device(indices), (2, 3, *sizes))
    np.testing.assert_array_equal(memory.host(found).reshape(6, plane), wanted)


def test_sums_of_gradients_depend_on_the_order_of_windows(kernels):
    """Of numbers that are rounded away beside others, only the order of the windows gives these sums."""
    indices = np.random.default_rng(0).integers(0, 300, (2, 3, 1000))
    grad, wanted = numbers(*indices.shape).astype(np.float64), np.zeros((6, 300))
    grad[:, :, ::3] *= 1e17
    np.add.at(wanted, (np.arange(6)[:, None], indices.reshape(6, -1)), grad.reshape(6, -1))
    found = kernels["max_pool_backward"](memory.device(grad), memory.device(indices), (2, 3, 300))
    np.testing.assert_array_equal(memory.host(found).reshape(6, 300), wanted)


@pytest.mark.parametrize("plane", [9, 30000])
@pytest.mark.parametrize("index", [-1, 30000])
def test_an_index_outside_of_the_plane_is_reported(kernels, plane, index):
    indices = memory.device(np.array([[[0, index]]]))
    with pytest.raises(IndexError, match=f"max_pool_backward: index {index} is out of bounds"):
        kernels["max_pool_backward"](memory.device(numbers(1, 1, 2)), indices, (1, 1, plane))
        settle()


# -- resampling -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("filter", ["nearest", "nearest-exact", "linear", "cubic"])
def test_places_are_read_as_the_reference_reads(kernels, filter, wide, monkeypatch, planned_anew):
    if wide:
        monkeypatch.setattr(resampling, "MOST", 0)
    for sizes, count in (((5, 7), (13, 3)), ((1, 40), (4, 9)), ((6, 6), (6, 1))):
        for antialias in (False, True):
            for scales in ((None, None), (2.6, 0.4)):
                options = filter, False, scales, antialias
                check(kernels, "resample", numbers(2, 2, *sizes), count, *options)
                check(kernels, "resample_backward", numbers(2, 2, *count), sizes, *options)
