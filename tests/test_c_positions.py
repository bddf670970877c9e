"""Reading, writing and adding at positions in C where kernels divide the work or go another way, beside NumPy; and sums
of small integers."""

import numpy as np
import pytest

import corefw as torch
from tests.test_half_products import LEVELS

pytest.importorskip("tests.compiled")

COUNT = 9001  # of positions: so many that memory is divided


def drawn(*shape, most=9):
    """Small whole numbers, whose sums are exact in every type."""
    return np.random.default_rng([*shape]).integers(-most, most, shape)


@pytest.fixture(params=LEVELS, autouse=True)
def level(request):
    with torch.backend(request.param):
        yield


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 40, 130, 300])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_rows_at_many_positions(width, dtype):
    table, rows, at = drawn(700, width), drawn(COUNT, width), np.random.default_rng(1).integers(0, 700, COUNT)
    table, rows = table & 7, rows & 1
    x, y = (torch.from_numpy(a).to(getattr(torch, dtype)) for a in (table, rows))
    index = torch.from_numpy(at)

    def check(found, expected):
        np.testing.assert_array_equal(found.to(torch.int64).numpy(), expected)

    check(x[index], table[at])
    check(torch.index_select(x.flip(0), 0, index), table[::-1][at])
    written, filled, added = table.copy(), table.copy(), table.copy()
    written[at], filled[at] = rows, 3
    np.add.at(added, at, rows)
    check(x.index_put((index,), y), written)
    check(x.index_fill(0, index, 3), filled)
    check(x.index_add(0, index, y), added)
    check(x.index_put((index,), y, accumulate=True), added)
    backwards = torch.flip(x, (0,)).index_add(0, 699 - index, y)
    check(backwards, added[::-1])
    wide = index[:, None].expand(COUNT, width)
    check(x.gather(0, wide), table[at])
    check(x.scatter_add(0, wide, y), added)
    check(x.scatter_add(0, wide, torch.cat((y, y), 1)), added)
    check(x.T.contiguous().scatter_add(1, wide.T, y.T), added.T)
    check(x.T.contiguous().gather(1, wide.T), table[at].T)
    other = x.scatter_reduce(0, wide, y, "sum", include_self=False)
    np.add.at(cleared := np.where(np.isin(np.arange(700), at)[:, None], 0, table), at, rows)
    check(other, cleared)


@pytest.mark.parametrize("wrong", [700, -701, 1 << 62, -(1 << 62)])
def test_positions_that_lie_outside_are_refused(wrong):
    x, y, index = torch.zeros(700, 40), torch.ones(COUNT, 40), torch.arange(COUNT) % 700
    index[COUNT - 3] = wrong
    for call in (
        lambda: torch.nn.functional.embedding(index, x),
        lambda: x[index],
        lambda: x.index_add(0, index, y),
        lambda: x.index_fill(0, index, 1),
        lambda: x.scatter_add(0, index[:, None].expand(-1, 40), y),
    ):
        with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)|index"):
            call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_totals_of_integers(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for n in (*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000):
        drawn_ones = drawn(3, n, 2, most=100).astype(dtype)
        for x in (drawn_ones, np.full((2, n, 3), most, dtype), np.full((n, 2), least, dtype)):
            t = torch.from_numpy(x)
            for dim in range(x.ndim):
                np.testing.assert_array_equal(t.sum(dim).numpy(), x.sum(dim, dtype=np.int64))
                np.testing.assert_array_equal(t.amax(dim).numpy(), x.max(dim))
                np.testing.assert_array_equal(t.amin(dim).numpy(), x.min(dim))
            np.testing.assert_array_equal(t.nansum().numpy(), x.sum(dtype=np.int64))
            np.testing.assert_array_equal(t.mT.amax(-1).numpy(), np.swapaxes(x, -1, -2).max(-1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_sums_without_nan(dtype):
    for n in (*range(1, 20), 63, 64, 65, 500, 5000):
        x = drawn(4, n).astype(np.float64)
        x[x == 1] = np.nan
        t = torch.from_numpy(x).to(getattr(torch, dtype))
        expected = torch.from_numpy(np.nansum(x, 1)).to(t.dtype)
        np.testing.assert_array_equal(t.nansum(1).double().numpy(), expected.double().numpy())


def test_sums_of_half_columns():
    for rows in (1, 7, 8, 9, 33):
        x = drawn(rows, 1100, most=4).astype(np.float32)
        t = torch.from_numpy(x).bfloat16()
        np.testing.assert_array_equal(t.sum(0).float().numpy(), x.sum(0))
        np.testing.assert_array_equal(t.amax(0).float().numpy(), x.max(0))
        np.testing.assert_array_equal(t.argmax(0).numpy(), x.argmax(0))
