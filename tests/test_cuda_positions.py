"""What the rows of indexing and scattering do not reach: many blocks, wide moves, elements smaller than a word, the
deterministic sums, and masks over several blocks."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.settings import settings
from corefw.testing.checks import settle

cupy = pytest.importorskip("cupy")

from corefw_cupy import indexing, scattering  # noqa: E402
from corefw_cupy.combining import combining  # noqa: E402
from corefw_cupy.positions import along_slices, positions, walk  # noqa: E402
from corefw_cupy.selection import selection  # noqa: E402
from tests.emulation import launches, memory  # noqa: E402
from tests.emulation.device import cuda, install  # noqa: E402

device, host = memory.device, memory.host
KERNELS = {kernel.op: kernel.function for family in (indexing, scattering) for kernel in family.kernels(cuda())}
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def emulated():
    """The device, on a machine without a GPU."""
    install()


@pytest.fixture
def deterministic():
    """Algorithms whose results do not depend on an order of execution."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(("columns", "size"), [(8, 16), (6, 8), (5, 4), (1, 4)])
def test_rows_move_as_wide_elements(columns, size):
    table, rows = device(np.zeros((9, columns), np.float32)), device(np.zeros(3, np.int64))
    grid = along_slices(table, 0, rows)
    found = walk(grid, (columns * 4, 4), 4, 8, 4, 16)
    assert found.size == size and found.n * size == 3 * columns * 4 and not found.wide


def test_offsets_beyond_32_bits():
    table = cupy.ndarray((1 << 22, 1 << 12), np.float32, memory.device(np.zeros(1, np.float32)).data)
    grid = along_slices(table, 0, device(np.zeros(3, np.int64)))
    assert walk(grid, (1 << 14, 4), 4, 8, 4, 16).wide


def test_wide_offsets_find_the_same_elements():
    table, rows = rng.normal(size=(50, 7)), rng.integers(0, 50, 30)
    at, x, index = positions(cuda()), device(table), device(rows)
    grid, out = along_slices(x, 0, index), memory.empty((30, 7), np.float64)
    found = walk(grid, out.strides, 8, 8, 8, wide=True)
    at.read_at[8, index.dtype, True]((1,), (256,), (x, index, out, found.struct, cuda().device_asserts.address, 0))
    assert (host(out) == table[rows]).all()


def test_what_is_remembered_of_slices_is_of_the_same_geometry():
    """Arrays that differ in one thing only are read after each other, twice."""
    at, table, rows = positions(cuda()), rng.normal(size=(9, 8)).astype(np.float32), rng.integers(0, 7, 5)
    whole, wide = device(table), device(np.repeat(table, 2, 1))
    arrays = whole[:8], whole[1:], whole[:8, :7], whole.T, whole.view(np.int32), wide[:8, ::2], wide[:8, 1:9]
    indices = device(rows), device(rows.astype(np.int32)), device(np.repeat(rows, 2))[::2], device(rows[:4])
    for array, index, dim in 2 * list(product(arrays, indices, (0, 1))):
        found = at.read_slices(array, dim, index, False, 0)
        np.testing.assert_array_equal(host(found), np.take(host(array), host(index), dim))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16])
def test_threads_meet_in_one_word(dtype):
    x = torch.zeros(70).to(dtype)
    source = torch.tensor(rng.integers(0, 2, 700)).to(dtype)
    index = torch.tensor(rng.integers(0, 70, 700))
    wanted = x.scatter_add(0, index, source)
    found = x.to("emulated").scatter_add(0, index.to("emulated"), source.to("emulated"))
    assert torch.equal(found.cpu(), wanted)


@pytest.mark.parametrize(("columns", "first", "fours"), [(8, 0, 1), (8, 4, 1), (8, 1, 0), (6, 0, 0), (1, 0, 0)])
@pytest.mark.parametrize("capability", [8, 9])
@pytest.mark.parametrize("dtype", ["f4", "f2", "bfloat16"])
def test_sums_of_rows_in_fours(dtype, capability, columns, first, fours, monkeypatch):
    sums = combining(cuda())
    monkeypatch.setattr(sums, "capabilities", {0: capability})
    table = rng.integers(-9, 9, (9, columns + 4)).astype("f4")
    rows, values = rng.integers(0, 9, 40), rng.integers(-9, 9, (40, columns)).astype(getattr(ml_dtypes, dtype, dtype))
    whole, index = device(table), device(rows)
    array = whole[:, first : first + columns]
    with launches.counted() as counts:
        sums.combine(array, along_slices(array, 0, index), index, device(values), kind=0, factor=2)
    assert counts["add_fours_at"] == (fours if capability == 9 else 0) and counts.total() == 1
    np.add.at(table[:, first : first + columns], rows, 2 * values.astype("f4"))
    assert (host(whole) == table).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_sums_in_order(deterministic, dtype, dim):
    shape = [4, 5, 6]
    x = torch.tensor(rng.normal(size=shape)).to(dtype)
    index = torch.tensor(rng.integers(0, shape[dim], 90))
    shape[dim] = 90
    source = torch.tensor(rng.normal(size=shape)).to(dtype)
    on = "emulated"
    rows = torch.tensor(rng.integers(0, x.shape[dim], shape))
    for wanted, found in (
        (x.index_add(dim, index, source), x.to(on).index_add(dim, index.to(on), source.to(on))),
        (x.scatter_add(dim, rows, source), x.to(on).scatter_add(dim, rows.to(on), source.to(on))),
    ):
        assert torch.equal(found.cpu(), wanted)


def test_the_last_value_is_written(deterministic):
    x, index = torch.zeros(50, 3), torch.tensor(rng.integers(-50, 50, 600))
    values = torch.tensor(rng.normal(size=(600, 3))).float()
    found = x.to("emulated").index_put((index.to("emulated"),), values.to("emulated"))
    assert torch.equal(found.cpu(), x.index_put((index,), values))


@pytest.mark.parametrize("n", [1, 255, 2048, 2049, 9000])
def test_masks_over_several_blocks(n):
    mask, values = rng.random(n) < 0.3, rng.normal(size=n).astype(np.float32)
    masks = selection(cuda())
    assert (host(masks.positions(device(mask)))[:, 0] == np.flatnonzero(mask)).all()
    assert (host(masks.read(device(mask), device(values))) == values[mask]).all()
    array = device(np.zeros(n, np.float32))
    masks.write(device(mask), array, device(values))
    wanted = np.zeros(n, np.float32)
    wanted[mask] = values[: mask.sum()]
    assert (host(array) == wanted).all()


def test_a_mask_that_starts_between_words():
    mask = rng.random(5000) < 0.5
    assert (host(selection(cuda()).positions(device(mask)[3:]))[:, 0] == np.flatnonzero(mask[3:])).all()


def test_a_value_at_a_mask_needs_no_positions():
    x = torch.zeros(3, 4, device="emulated")
    x[torch.tensor([True, False, True], device="emulated")] = 2
    assert x.cpu().tolist() == [[2] * 4, [0] * 4, [2] * 4]


def test_errors_name_the_dimension():
    x = torch.zeros(3, 4, 5, device="emulated")
    low, high = torch.tensor([0]).to("emulated"), torch.tensor([9]).to("emulated")
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 2 with size 5"):
        x[low, :, high]
        settle()
    with pytest.raises(RuntimeError, match="source < number of ones in mask"):
        x.masked_scatter(x == 0, torch.zeros(7).to("emulated"))
        settle()


def test_values_may_lie_in_the_array_that_is_written():
    x = torch.arange(3000.0)
    found, order = x.to("emulated"), torch.tensor(rng.permutation(3000))
    found[order.to("emulated")] = found
    wanted = torch.zeros(3000)
    wanted[order] = x
    assert torch.equal(found.cpu(), wanted)


@pytest.mark.parametrize("reversed_dims", [np.s_[::-1], np.s_[::-1, ::-1], np.s_[:, ::-1], np.s_[::-2]])
@pytest.mark.parametrize("deterministic", [False, True])
def test_arrays_that_lie_backwards(monkeypatch, reversed_dims, deterministic):
    """Their steps are negative, as those of arrays from other libraries may be."""
    monkeypatch.setattr(settings, "deterministic", deterministic)
    whole = rng.normal(size=(8, 6)).astype(np.float32)
    rows, first = np.array([1, 0, 3]), np.zeros((1, 6), np.int64)
    for dim, index in ((0, rows), (1, rows % 3)):
        wanted = whole[reversed_dims]
        values = rng.normal(size=np.take(wanted, index, dim).shape).astype(np.float32)
        seen = device(whole)[reversed_dims]
        np.testing.assert_array_equal(
            host(KERNELS["index_select"](seen, dim, device(index))), np.take(wanted, index, dim)
        )
        found = KERNELS["index_add"](seen, dim, device(index), device(values), 1, out=seen)
        added = wanted.copy()
        np.add.at(added, (slice(None),) * dim + (index,), values)
        np.testing.assert_allclose(host(found), added, rtol=1e-6)
    wanted, seen = whole[reversed_dims], device(whole)[reversed_dims]
    np.testing.assert_array_equal(host(KERNELS["index"](seen, [device(rows)])), wanted[rows])
    np.testing.assert_array_equal(host(KERNELS["index"](seen, [device(rows), device(rows)])), wanted[rows, rows])
    np.testing.assert_array_equal(host(KERNELS["gather"](seen, 0, device(first + 1))), wanted[1:2])
