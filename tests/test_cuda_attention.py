"""Attention of the CuPy backend on the emulated device: several tiles, all dtypes, layouts, masks, great widths."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.dispatch.settings import settings
from corefw_cupy import attention
from corefw_numpy.attention import kernels as numpy_kernels
from tests.cuda_kernels import barriers, without_barrier
from tests.emulation import device, memory
from tests.emulation.device import cuda

REFERENCE = numpy_kernels(np)
# NumPy's kernels are called directly here, and NumPy tells of their floating-point flags.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(0)
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11, np.float16: 4e-3, ml_dtypes.bfloat16: 3e-2}


@pytest.fixture(scope="module")
def kernels():
    return {kernel.op: kernel.function for kernel in attention.kernels(cuda())}


def heads_last(array):
    """The array with its heads next to the columns in memory, as layers split them."""
    return memory.device(np.ascontiguousarray(array.swapaxes(1, 2))).swapaxes(1, 2)


def mask_of(kind, batch, queries, keys):
    if kind == "forbidding":
        mask = np.where(RNG.random((queries, keys)) < 0.5, -np.inf, 0)
        mask[0] = -np.inf
        return mask
    shapes = {"shared": (queries, keys), "of keys": (*batch[:1], 1, 1, keys), "whole": (*batch, queries, keys)}
    return None if kind is None else RNG.normal(size=shapes[kind])


def close(found, expected, dtype):
    found, bound = memory.host(found).astype(np.float64), TOLERANCE[dtype]
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)


def check(kernels, dtype, batch, sizes, causal, bias, upload=memory.device):
    """Results and gradients are those of NumPy's kernels in float64."""
    (queries, keys, width, value_width), scale = sizes, max(sizes[2], 12) ** -0.5
    shapes = (queries, width), (keys, width), (keys, value_width), (queries, value_width)
    *inputs, gradient = (RNG.normal(size=(*batch, *shape)).astype(dtype) for shape in shapes)
    given, given_bias = [upload(x) for x in inputs], None if bias is None else memory.device(bias)
    output, logs = kernels["attention"](*given, given_bias, causal, scale)
    wide, wide_bias = [x.astype(np.float64) for x in inputs], None if bias is None else bias.astype(np.float64)
    expected, expected_logs = REFERENCE["attention"](*wide, wide_bias, causal, scale)
    close(output, expected, dtype)
    close(logs, expected_logs, dtype)
    assert logs.dtype == (np.float64 if dtype is np.float64 else np.float32)
    found = kernels["attention_backward"](memory.device(gradient), *given, output, logs, given_bias, causal, scale)
    wanted = REFERENCE["attention_backward"](
        gradient.astype(np.float64), *wide, expected, expected_logs, wide_bias, causal, scale
    )
    for ours, theirs in zip(found, wanted):
        close(ours, theirs, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("batch", "sizes", "causal", "mask"),
    [
        ((), (3, 5, 4, 2), False, None),
        ((2, 3), (70, 65, 16, 16), True, None),
        ((2, 2), (65, 130, 20, 33), False, "shared"),
        ((1, 2), (5, 130, 32, 32), True, "forbidding"),
        ((2, 2), (130, 70, 16, 24), True, "of keys"),
        ((2, 1), (30, 70, 33, 17), False, "whole"),
        ((1, 2), (130, 140, 128, 72), True, "shared"),
        ((1, 2), (66, 70, 200, 256), False, None),
        ((1, 1), (4, 70, 130, 270), False, None),
        ((1, 1), (3, 2, 0, 3), False, None),
        ((1, 1), (3, 2, 3, 0), False, None),
        ((1, 1), (0, 2, 3, 3), False, None),
        ((1, 1), (3, 0, 3, 3), True, None),
    ],
)
def test_like_numpy(kernels, dtype, batch, sizes, causal, mask):
    bias = mask_of(mask, batch, sizes[0], sizes[1])
    bias = None if bias is None else bias.astype(dtype)
    check(kernels, dtype, batch, sizes, causal, bias, heads_last if batch else memory.device)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("blocks", [1, 4, 264])
def test_deterministic_gradients(kernels, dtype, blocks, monkeypatch):
    """Blocks take turns with the tiles of a head, and no two add to the same sums."""
    monkeypatch.setattr(settings, "deterministic", True)
    monkeypatch.setattr(attention, "FEW_BLOCKS", blocks)
    check(kernels, dtype, (2,), (70, 200, 16, 16), True, None)


@pytest.mark.parametrize(
    ("file", "from_end"), barriers("attention/attention_half.cu", "attention/attention_backward_half.cu")
)
def test_every_barrier_is_needed(file, from_end, monkeypatch):
    monkeypatch.setattr(device, "text", without_barrier(file, from_end))
    monkeypatch.setattr(settings, "deterministic", True)  # blocks have several tiles of keys then
    monkeypatch.setattr(attention, "FEW_BLOCKS", 4)
    made = {kernel.op: kernel.function for kernel in attention.kernels(cuda())}
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(made, np.float16, (2,), (150, 200, 16, 16), True, None)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_infinities_and_nan(kernels, dtype):
    query, key, value = (RNG.normal(size=(70, 8)).astype(dtype) for _ in range(3))
    query[3, 0], key[66, 1] = np.nan, np.inf
    output, logs = kernels["attention"](*map(memory.device, (query, key, value)), None, True, 1.0)
    logs = memory.host(logs)
    assert np.isnan(memory.host(output).astype(np.float64)[3]).all()
    assert np.isnan(logs[3])
    assert np.isfinite(np.delete(logs[:66], 3)).all()


def test_many_heads_share_a_grid(kernels):
    query = np.ones((300, 2, 3, 4), np.float32)
    output, _ = kernels["attention"](*map(memory.device, (query, query, query)), None, False, 1.0)
    assert (memory.host(output) == 1).all()


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 4), (2, 3, 5), (2, 3, 4), None),
        ((2, 3, 4), (1, 3, 4), (2, 3, 4), None),
        ((2, 3, 4), (2, 3, 4), (2, 2, 4), None),
        ((4,), (3, 4), (3, 4), None),
        ((3, 4), (3, 4), (3, 4), (2, 3)),
        ((3, 4), (3, 4), (3, 4), (1, 3, 3)),
    ],
)
def test_refused(kernels, shapes):
    arrays = [None if shape is None else memory.device(np.zeros(shape, np.float32)) for shape in shapes]
    with pytest.raises(ValueError, match="expected"):
        kernels["attention"](*arrays, False, 1.0)


def test_columns_of():
    assert [attention.columns_of(width) for width in (0, 1, 16, 17, 65, 97, 200, 256, 257, 1000)] == [
        16, 16, 16, 32, 96, 128, 256, 256, 256, 256,
    ]  # fmt: skip


def test_geometry_joins_dimensions():
    shape = (2, 3, 5, 4)
    dense = (shape, (240, 80, 16, 4))
    whole = ((2, 3, 5, 5), (300, 100, 20, 4))
    found, heads = attention.geometry(4, dense, dense, dense, whole)
    assert heads == found.memory["heads"] == 6
    assert found.memory["dims"] == 1
    of_heads = ((3, 5, 5), (100, 20, 4))
    found, _ = attention.geometry(4, dense, dense, dense, of_heads)
    assert found.memory["sizes"][0, :2].tolist() == [2, 3]
    assert found.memory["bias"]["batch"][0, :2].tolist() == [0, 25]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_results_lie_in_memory_like_the_operands(kernels, dtype):
    """Heads that were split from the columns of one matrix are joined again without a copy."""
    whole = memory.device(RNG.normal(size=(2, 5, 3, 2, 4)).astype(dtype))  # samples, rows, (q, k, v), heads, columns
    operands = [whole[:, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    output, logs = kernels["attention"](*operands, None, False, 0.5)
    gradients = kernels["attention_backward"](output, *operands, output, logs, None, False, 0.5)
    for result in (output, *gradients):
        assert result.shape == (2, 2, 5, 4) and result.transpose(0, 2, 1, 3).flags.c_contiguous
    dense = [x.copy() for x in map(memory.host, operands)]
    output, logs = kernels["attention"](*map(memory.device, dense), None, False, 0.5)
    assert output.flags.c_contiguous
