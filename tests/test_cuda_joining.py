"""Joining, moving and repeating on the emulated device: what rows of the ops are too small for."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy import joining, moving, padding
from corefw_cupy.division import MOST, divisors
from corefw_numpy import joining as expected
from tests.emulation import memory
from tests.emulation.device import cuda

EXPECTED = {**expected.kernels(np), **expected.data_movement(np)}


@pytest.fixture(scope="module")
def kernels():
    return {kernel.op: kernel.function for family in (joining, padding) for kernel in family.kernels(cuda())}


@pytest.fixture
def walked_anew():
    """No walk is left from before, and none stays."""
    moving.walk.cache_clear()
    yield
    moving.walk.cache_clear()


def numbers(*shape, dtype="f4"):
    return np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 10, 641, 65535, 65537, (1 << 30) + 1, MOST])
def test_division_by_multiplication(divisor):
    ((_, multiplier, shift),) = divisors([divisor], wide=False)
    near = [k * divisor + d for k in (0, 1, 2, 1000, MOST // divisor) for d in (-1, 0, 1)]
    for n in [n for n in (*near, 12345, MOST) if 0 <= n <= MOST]:
        assert (n * multiplier >> 32) + n >> shift == n // divisor


# -- joining ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bits, unit", [(0, 16), (48, 16), (8 | 16, 8), (64 | 4, 4), (1, 1)])
def test_the_widest_unit_divides_all_numbers(bits, unit):
    assert joining.widest_unit(bits) == unit


def test_every_part_has_its_blocks():
    grid, parts = joining.geometry(((0, 4096), (4096, 16), (4112, 40000)), rows=3, unit=16)
    first, second, third = parts.memory["first_blocks"][0, :3].tolist()
    per_block = joining.UNITS * joining.THREADS
    assert (first, second, third) == (0, 1, 2)
    assert grid == 2 + -(-3 * 2500 // per_block)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("op", ["cat", "stack"])
@pytest.mark.parametrize("count", [3, 32, 33, 70])
def test_many_arrays_are_joined(kernels, op, count, dim):
    arrays = [numbers(3, 4, 6) + k for k in range(count)]
    given = [memory.device(a) if k % 5 else memory.device(a.T.copy()).T for k, a in enumerate(arrays)]
    np.testing.assert_array_equal(memory.host(kernels[op](given, dim)), EXPECTED[op](arrays, dim))


@pytest.mark.parametrize("dtype", ["i1", "f4", "c16"])
def test_parts_of_odd_sizes_and_addresses(kernels, dtype):
    whole = numbers(3000, 7, dtype=dtype)
    given = [memory.device(whole)[1:], memory.device(whole[:999])]
    np.testing.assert_array_equal(memory.host(kernels["cat"](given, 0)), np.concatenate([whole[1:], whole[:999]]))


# -- repeating --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 33, joining.CHUNK, 3 * joining.CHUNK + 1])
def test_positions_are_repeated(kernels, n):
    repeats = np.random.default_rng(n).integers(0, 3, n)
    found = memory.host(kernels["repeated_positions"](memory.device(repeats)))
    np.testing.assert_array_equal(found, np.repeat(np.arange(n), repeats))


def test_negative_repeats_are_refused(kernels):
    with pytest.raises(ValueError, match="repeats can not be negative"):
        kernels["repeated_positions"](memory.device(np.array([2, -1])))


# -- moving -----------------------------------------------------------------------------------------------------------
def test_dimensions_that_are_read_as_a_whole_are_joined():
    dims = [(2, 2, 0, 60), (7, 5, -1, 12), (3, 3, 0, 4), (4, 4, 0, 1)]
    assert moving.joined(dims, kept=0) == [(2, 2, 0, 60), (84, 60, -12, 1)]
    assert moving.joined(dims, kept=2) == [(2, 2, 0, 60), (7, 5, -1, 12), (3, 3, 0, 4), (4, 4, 0, 1)]
    assert moving.joined([(1, 1, 0, 9), (4, 4, 0, 2), (1, 1, 0, 1)], kept=0) == [(4, 4, 0, 2)]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_moves(kernels, wide, transposed, monkeypatch, walked_anew):
    monkeypatch.setattr(moving, "MOST", 0 if wide else MOST)
    array = numbers(5, 6, 7)
    given = memory.device(array).transpose(2, 0, 1) if transposed else memory.device(array)
    array = array.transpose(2, 0, 1) if transposed else array
    for op, arguments in (("roll", ((2, -3), (0, 2))), ("roll", ((4,), (1,))), ("tril", (1,)), ("triu", (-2,))):
        np.testing.assert_array_equal(memory.host(kernels[op](given, *arguments)), EXPECTED[op](array, *arguments))
    padded = memory.host(kernels["constant_pad_nd"](given, (1, 2, -1, 3), 9))
    np.testing.assert_array_equal(padded, np.pad(array[:, 1:], ((0, 0), (0, 3), (1, 2)), constant_values=9))


def test_neighbours_that_move_together_are_moved_as_one_wide_element():
    assert moving.widened([(4, 4, 1, 48), (24, 16, -8, 1)], 4, 16) == ([(4, 4, 1, 12), (6, 4, -2, 1)], 16)
    assert moving.widened([(4, 4, 1, 48), (24, 16, -8, 1)], 2, 4)[1] == 4, "where 4 bytes lie, not 16"
    assert moving.widened([(4, 4, 1, 47), (24, 16, -8, 1)], 4, 16)[1] == 4
    assert moving.widened([(24, 16, -7, 1)], 4, 16)[1] == 4
    assert moving.widened([(24, 16, -8, 2)], 4, 16)[1] == 4


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "c16"])
@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("before, after", [(16, 16), (8, 0), (2, 3), (-4, 4)])
def test_moves_of_wide_elements(kernels, dtype, first, before, after):
    array = numbers(3, 5, 40, dtype=dtype)
    given, array = memory.device(array)[..., first : first + 32], array[..., first : first + 32]
    shift = (before, 1), (2, 1)
    np.testing.assert_array_equal(memory.host(kernels["roll"](given, *shift)), np.roll(array, *shift))
    padded = np.full((3, 6, 32 + before + after), 7, dtype)
    padded[:, 1:, max(before, 0) : max(before, 0) + 32 + min(before, 0)] = array[..., max(-before, 0) :]
    np.testing.assert_array_equal(memory.host(kernels["constant_pad_nd"](given, (before, after, 1, 0), 7)), padded)
