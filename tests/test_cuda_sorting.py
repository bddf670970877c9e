"""Sorts on the CUDA backend: rows that share a block, fill one, or are sorted digit by digit."""

import ml_dtypes
import numpy as np
import pytest

cupy = pytest.importorskip("cupy")

import corefw as torch  # noqa: E402
from corefw_cupy.ordering import geometry, ordering, selects  # noqa: E402
from corefw_cupy.ranking import ranking  # noqa: E402
from tests.emulation import memory  # noqa: E402
from tests.emulation.device import cuda, install  # noqa: E402

device, host = memory.device, memory.host
rng = np.random.default_rng(0)
DTYPES = (np.float32, np.int64, np.bool_, ml_dtypes.bfloat16)


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("n", [1, 2, 33, 1000, 2048, 4096])
@pytest.mark.parametrize("size", [1, 4, 8])
def test_geometry(rows, n, size):
    found = geometry(rows, n, size)
    if n > (2048 if size == 8 else 4096):
        assert found is None
        return
    width, entries, shared = found
    assert width >= n and width & width - 1 == 0 and entries % width == 0 and entries >= 64 and shared <= 48 << 10


def elements(dtype, shape):
    """Few different numbers, with NaN, infinities and both zeros among floating ones."""
    x = rng.integers(0, 9, shape)
    if np.dtype(dtype).kind in "iub":
        return x.astype(dtype)
    x = x.astype(np.float64) - 4
    flat = x.reshape(-1)
    flat[::7], flat[1::9], flat[2::11], flat[3::13] = np.nan, -0.0, np.inf, -np.inf
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((70, 5), 0), ((70, 5), 1), ((2, 2500), 1), ((4500, 2), 0)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype, shape, dim, descending):
    x = elements(dtype, shape)
    wide = x.astype(np.float64)
    if descending:
        wanted = x.shape[dim] - 1 - np.flip(np.argsort(np.flip(wide, dim), dim, kind="stable"), dim)
    else:
        wanted = np.argsort(wide, dim, kind="stable")
    values, indices = ordering(cuda()).first(device(x), shape[dim], dim, descending)
    assert (host(indices) == wanted).all()
    assert host(values).tobytes() == np.take_along_axis(x, wanted, dim).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "k"), [((100,), 7), ((3, 9000), 7), ((2, 8500), 1500), ((9000,), 9000)])
@pytest.mark.parametrize("descending", [False, True])
def test_the_first_few(dtype, shape, k, descending):
    x = elements(dtype, shape)
    every, order = (host(found) for found in ordering(cuda()).first(device(x), shape[-1], len(shape) - 1, descending))
    values, indices = (host(found) for found in ordering(cuda()).first(device(x), k, len(shape) - 1, descending))
    assert values.tobytes() == np.ascontiguousarray(every[..., :k]).tobytes()
    assert (indices == order[..., :k]).all()


def test_one_huge_row_is_sorted_by_the_whole_device():
    assert selects(1, 1 << 17) and selects(64, 1 << 24) and not selects(1, 1 << 24)


@pytest.mark.parametrize(("rows", "length"), [(300, 1), (5, 64), (3, 65), (2, 2500)])
def test_exclusive_sums(rows, length):
    numbers, totals = rng.integers(0, 9, (rows, length)), device(np.zeros(rows, np.int64))
    found = device(numbers)
    ranking(cuda()).sums(found, rows, length, totals)
    assert (host(found) == np.cumsum(numbers, 1) - numbers).all() and (host(totals) == numbers.sum(1)).all()


def test_keys_of_few_bits():
    keys = rng.integers(0, 1000, (2, 5000)).astype(np.uint64)
    found, order = ordering(cuda()).sort_keys(device(keys), 10)
    assert (host(order) == np.argsort(keys, 1, kind="stable")).all()
    assert (host(found) == np.sort(keys, 1)).all()


@pytest.mark.parametrize("shape", [(9000,), (40, 3), (0,)])
@pytest.mark.parametrize("dtype", ["int64", "float32", "complex64"])
@pytest.mark.parametrize("dim", [None, 0])
@pytest.mark.parametrize("consecutive", [False, True])
def test_distinct_values(shape, dtype, dim, consecutive):
    if not shape[0] and dim == 0:
        return
    install()
    x = torch.tensor(rng.integers(0, 4, shape)).to(getattr(torch, dtype))
    function = torch.unique_consecutive if consecutive else torch.unique
    wanted = function(x, return_inverse=True, return_counts=True, dim=dim)
    found = function(x.to("emulated"), return_inverse=True, return_counts=True, dim=dim)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one.cpu(), other)


def test_nan_in_searches():
    install()
    row = torch.tensor([1.0, 2.0, float("nan"), float("nan")])
    values = torch.tensor([0.0, 2.0, 9.0, float("nan")])
    for right in (False, True):
        found = torch.searchsorted(row.to("emulated"), values.to("emulated"), right=right).cpu()
        assert found.tolist() == np.searchsorted(row.numpy(), values.numpy(), "right" if right else "left").tolist()
    assert torch.isin(values.to("emulated"), row.to("emulated")).cpu().tolist() == [False, True, False, False]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.complex128])
def test_members(dtype):
    install()

    def numbers(n):
        parts = elements(np.float64, (2, n))
        return (parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]).astype(dtype)

    with np.errstate(invalid="ignore"):
        x, tests = numbers(500), numbers(300)[::2]
    found = torch.isin(torch.tensor(x, device="emulated"), torch.tensor(tests, device="emulated"))
    assert (np.asarray(found.cpu()) == (x[:, None] == tests).any(1)).all()
