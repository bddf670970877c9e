"""Reductions, scans and ranks of the CuPy backend where their launches take many forms, beside the NumPy kernels."""

import itertools

import numpy as np
import pytest

pytest.importorskip("cupy")

import corefw_numpy.extremes
import corefw_numpy.norms
import corefw_numpy.reduction
import corefw_numpy.scan
import corefw_numpy.statistics
from corefw_cupy import extremes, norms, reduction, scan, statistics
from corefw_cupy.reducing import BLOCKS, WARP, plan
from corefw_cupy.scan import geometry
from tests.emulation import memory
from tests.emulation.device import cuda

# NumPy's kernels are called directly here, and NumPy tells of their floating-point flags.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FAMILIES = (reduction, extremes, scan, norms, statistics)
REFERENCES = {
    name: kernel
    for family in ("extremes", "norms", "reduction", "scan", "statistics")
    for name, kernel in getattr(corefw_numpy, family).kernels(np).items()
} | corefw_numpy.scan.real_kernels(np)
KERNELS = {kernel.op: kernel.function for family in FAMILIES for kernel in family.kernels(cuda())}


def drawn(shape, dtype=np.float32):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def check(op, array, *arguments, rtol=1e-5, view=lambda a: a):
    """The kernel's results are those of the reference, for a view of the array."""
    expected = REFERENCES[op](view(array), *arguments)
    found = KERNELS[op](view(memory.device(array)), *arguments)
    pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, np.asarray(expected))]
    for result, reference in pairs:
        assert result.shape == reference.shape and result.dtype == reference.dtype
        np.testing.assert_allclose(memory.host(result), reference, rtol, rtol * array.size**0.5)


def planned(array, dims):
    return plan(array.shape, array.strides, array.itemsize, True, dims, False)


# -- geometry ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "order", "dims", "columns", "packed"),
    [
        ((64, 128), (0, 1), (1,), False, True),
        ((64, 128), (0, 1), (0,), True, True),
        ((64, 127), (0, 1), (0,), True, False),
        ((64, 128), (1, 0), (0,), False, True),
        ((8, 16, 4, 4), (0, 1, 2, 3), (0, 2, 3), False, True),
        ((8, 16, 4, 4), (0, 2, 3, 1), (0, 1, 2), False, True),
        ((64, 128), (1, 0), None, False, True),
    ],
)
def test_which_elements_neighbouring_threads_read(shape, order, dims, columns, packed):
    found = planned(np.empty(shape, np.float32).transpose(order), dims)
    assert (found.columns, bool(found.walk.memory["packed"][0])) == (columns, packed)


def test_dimensions_that_cannot_be_joined_are_copied():
    assert planned(np.empty((3, 4, 3, 4, 3), np.float32), (1, 3)).walk is None
    assert planned(np.empty((3, 4, 1, 4, 3), np.float32), (1, 3)).walk is not None


@pytest.mark.parametrize(("shape", "dim"), [((1 << 24,), 0), ((1 << 20, 4), 0), ((8, 1 << 18), 1)])
def test_few_results_share_the_device(shape, dim):
    array = np.broadcast_to(np.float32(0), shape)
    array = np.lib.stride_tricks.as_strided(array, shape, np.cumprod([4, *shape[:0:-1]])[::-1].tolist())
    grid = planned(array, (dim,)).grid
    assert BLOCKS / 4 <= grid[0] * grid[1] <= 2 * BLOCKS
    *_, grid, _ = geometry(shape, dim, 4)
    assert BLOCKS / 4 <= grid[0] * grid[1] <= 2 * BLOCKS


def test_short_rows_share_warps():
    assert planned(np.empty((100, 6), np.float32), (1,)).block[0] < WARP
    assert geometry((100, 6), 1, 4)[3][0] < WARP


# -- reductions -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(3, 9000), (9000, 3), (20, 5, 60), (70000, 1), (1, 50001), (300, 8), (600, 64)])
def test_sums_over_rows_and_columns(shape):
    for dims in itertools.chain([None], itertools.combinations(range(len(shape)), 1)):
        check("sum", drawn(shape), dims, False)


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "any", "logsumexp"])
def test_views(op):
    for dims in (None, (0,), (1,), (0, 2), (1, 2)):
        for view in (lambda a: a.T, lambda a: a[:, ::-2], lambda a: a[1:, :, 1:], lambda a: a[..., :1]):
            check(op, drawn((6, 7, 12)), dims, True, view=view)


def test_dimensions_in_turn():
    for dims in ((0, 2), (1, 3), (0, 2, 4), (1, 3, 4)):
        check("sum", drawn((3, 4, 3, 4, 3)), dims, False)
        check("amax", drawn((3, 4, 3, 4, 3)), dims, False)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.complex64, np.float64])
def test_types_of_sums(dtype):
    for op in ("sum", "any"):
        check(op, (3 * drawn((40, 33))).astype(dtype), (1,), False)


def test_half_precision_rounds_once():
    numbers = drawn((9, 3000)).astype(np.float16)
    found = memory.host(KERNELS["sum"](memory.device(numbers), (1,), False))
    np.testing.assert_allclose(found, numbers.sum(1, dtype=np.float64).astype(np.float16), 2e-3, 1e-2)


@pytest.mark.parametrize("op", ["variance", "deviation"])
def test_moments_far_from_zero(op):
    check(op, 1000 + drawn((5, 700)), (1,), False, 1, rtol=1e-4)
    check(op, 1000 + drawn((700, 5)), (0,), False, 0.5, rtol=1e-4)


@pytest.mark.parametrize(("dtype", "value"), [("f4", 0.1), ("f4", 12345.678), ("f4", -3.4e38), ("f8", 1e200)])
@pytest.mark.parametrize("shape", [(2, 3), (3, 99), (1, 50001)])
@pytest.mark.parametrize("op", ["variance", "deviation"])
def test_equal_elements_do_not_vary(op, shape, dtype, value):
    for sizes, dim in ((shape, 1), (shape[::-1], 0)):
        assert not memory.host(KERNELS[op](memory.device(np.full(sizes, value, dtype)), (dim,), False, 1)).any()


def test_first_of_equal_extremes():
    numbers = np.zeros((3, 50000), np.float32)
    numbers[0, [40000, 777]] = 1
    numbers[1, [33333, 20]] = np.nan
    for op in ("argmax", "argmin"):
        check(op, numbers, 1, False)
        check(op, numbers, None, True, view=lambda a: a.T)
    check("max_dim", numbers, 0, False, view=lambda a: a[:, :500])


# -- scans ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["cumsum", "cummax"])
@pytest.mark.parametrize("shape", [(1, 20000), (40, 5), (3, 700), (9000, 2), (2, 300, 3)])
def test_scans(op, shape):
    for dim in range(len(shape)):
        check(op, drawn(shape), dim)


def test_scans_of_infinities():
    numbers = np.float64([[-np.inf, -np.inf, 1, 2, np.inf, 3], [-np.inf, 3, -np.inf, np.nan, 2, 1]])
    for op in ("logcumsumexp", "cummax", "cummin"):
        check(op, numbers, 1)


# -- ranks ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64])
@pytest.mark.parametrize("op", ["median_dim", "nanmedian_dim", "mode", "kthvalue"])
def test_ranks_of_equal_elements(op, dtype):
    numbers = (3 * drawn((3, 300))).astype(dtype)
    if numbers.dtype.kind == "f":
        numbers[0, ::7] = np.nan
        numbers[2] *= 0  # of both signs
    arguments = (17, 1, False) if op == "kthvalue" else (1, True)
    check(op, numbers, *arguments)
