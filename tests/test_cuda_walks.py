"""How elementwise functions walk over their operands, on the emulated device: which way is chosen, and that every way
gives the same elements at the edges of packs and tiles."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy import elementwise, walks
from corefw_cupy.copying import Copying
from corefw_cupy.division import MOST
from tests.emulation import memory
from tests.emulation.device import cuda

EDGES = (0, 1, 7, 8, 31, 32, 33, 64, 67)


@pytest.fixture(params=[False, True], ids=["", "wide"])
def offsets(request, monkeypatch):
    """Offsets of 32 and of 64 bits; no plan is left from before, and none stays."""
    monkeypatch.setattr(walks, "MOST", 0 if request.param else MOST)
    walks.plan.cache_clear()
    yield
    walks.plan.cache_clear()


@pytest.fixture
def add():
    """By dtype what adds, without memory of shapes that it saw."""
    return elementwise.functions(cuda())["add"]


def numbers(*shape, dtype="f4"):
    """Small integers, which no element type rounds."""
    return np.random.default_rng(0).integers(0, 60, shape).astype(dtype)


def planned(*operands, out=None) -> walks.Plan:
    """The plan for arrays; a new result has the element type of the last one."""
    given = [(a.shape, a.strides) for a in (*operands, *([] if out is None else [out]))]
    sizes = *(a.itemsize for a in operands), (operands[-1] if out is None else out).itemsize
    return walks.plan(sizes, tuple(given[: len(operands)]), None if out is None else given[-1])


def viewed(array, view):
    """The same view of an array on the host and on the device."""
    return view(array), view(memory.device(array))


# -- which way --------------------------------------------------------------------------------------------------------
SQUARE, ODD, ROW, COLUMN = numbers(64, 48), numbers(64, 45), numbers(48), numbers(64, 1)
IMAGES = numbers(2, 16, 12, 20)
WALKS = (
    ("flat", (SQUARE, SQUARE)),
    ("flat", (SQUARE.T, SQUARE.T)),
    ("flat", (SQUARE, numbers(1))),
    ("rows", (SQUARE, ROW)),
    ("rows", (SQUARE, COLUMN)),
    ("rows", (ROW, COLUMN)),
    ("rows", (numbers(64, 96)[:, 8:56], SQUARE)),
    ("rows", (SQUARE[::-2], SQUARE[::2])),
    ("rows", (numbers(5, 3, dtype="c16"), numbers(3, dtype="c16"))),
    ("strided", (ODD, ODD[0])),
    ("strided", (SQUARE[:, ::2], SQUARE[:, 1::2])),
    ("strided", (SQUARE[:, ::-1], SQUARE)),
    ("strided", (numbers(3, 64).T, numbers(64, 3))),
    ("tiled", (SQUARE.T, numbers(48, 64))),
    ("tiled", (ODD.T, numbers(45, 64))),
    ("tiled", (SQUARE.T, numbers(64))),
    ("tiled", (IMAGES.transpose(0, 2, 3, 1), numbers(16))),
    ("tiled", (IMAGES.transpose(3, 1, 0, 2), numbers(16, 1, 1))),
)


@pytest.mark.parametrize(("walk", "operands"), WALKS)
def test_the_walk_over_operands(walk, operands, offsets, add):
    assert planned(*operands).walk == walk
    given = [viewed_as(a) for a in operands]
    found = add[operands[0].dtype](*given)
    np.testing.assert_array_equal(memory.host(found), operands[0] + operands[1])


def viewed_as(array):
    """An array of the device with the strides of one of NumPy, in memory of its own."""
    base = array
    while base.base is not None:
        base = base.base
    on_device = memory.device(base)
    offset = array.ctypes.data - base.ctypes.data
    pointer = on_device.data + offset
    return type(on_device)(array.shape, array.dtype, pointer, array.strides)


def test_dimensions_follow_the_memory_of_the_result():
    out = numbers(48, 64).T
    assert planned(out, ROW, out=out).walk == planned(out, COLUMN, out=out).walk == "rows"
    assert planned(SQUARE, out=out).walk == "tiled"


def test_only_sides_of_packs_are_read_and_written_in_packs():
    assert planned(SQUARE.T, numbers(48, 64)).layout.memory["packed"] == 1
    assert planned(ODD.T, numbers(45, 64)).layout.memory["packed"] == 0
    assert planned(numbers(64, 49)[:, 1:].T, numbers(48, 64)).layout.memory["packed"] == 0


# -- what comes out ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c16"])
def test_transposed_copies(dtype, offsets):
    copying = Copying(cuda())
    for rows, columns, first in product(EDGES, EDGES, (0, 1)):
        array, given = viewed(numbers(2, rows, columns + first, dtype=dtype), lambda a: a[..., first:].swapaxes(1, 2))  # noqa: B023
        np.testing.assert_array_equal(memory.host(copying.dense(given)), array)


@pytest.mark.parametrize("dtype", ["i1", "f2", "f8"])
def test_a_result_in_parts_of_an_array(dtype):
    for rows, columns, first in ((33, 31, 0), (64, 64, 0), (64, 64, 1), (16, 67, 3)):
        source, given = viewed(numbers(columns, rows, dtype=dtype), lambda a: a.T)
        wanted = np.zeros((rows, columns + 4), dtype)
        target = memory.device(wanted)
        wanted[:, first : first + columns] = source
        cuda().copying.copy(target[:, first : first + columns], given)
        np.testing.assert_array_equal(memory.host(target), wanted)


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "c16"])
@pytest.mark.parametrize(
    "view", [lambda a: a, lambda a: a.T, lambda a: a[0], lambda a: a[:, :1], lambda a: a[::-1, ::-1], lambda a: a[2, 2]]
)
def test_operands_of_different_types(dtype, view):
    """A mask of bytes beside wider elements, of which one broadcasts."""
    for size in (31, 32, 64, 67):
        mask, given_mask = viewed(numbers(size, size) > 30, lambda a: a.T)
        x, given_x = viewed(numbers(size, size, dtype=dtype), view)
        y, given_y = viewed(numbers(size, size + 1, dtype=dtype), lambda a: a[:, 1:])
        found = cuda().copying.choose(given_mask, given_x, given_y)
        np.testing.assert_array_equal(memory.host(found), np.where(mask, x, y))


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8"])
def test_packs_of_offset_views(dtype, add):
    """Only what lies where 16 bytes do is read at once."""
    for first, size in product((0, 1, 4), (32, 33, 48)):
        x, given_x = viewed(numbers(5, size + 16, dtype=dtype), lambda a: a[:, first : first + size])  # noqa: B023
        y, given_y = viewed(numbers(size + first, dtype=dtype), lambda a: a[first:])  # noqa: B023
        found = add[x.dtype](given_x, given_y)
        np.testing.assert_array_equal(memory.host(found), x + y)
        add[x.dtype](given_x, given_y, out=given_x)
        np.testing.assert_array_equal(memory.host(given_x), x + y)


def test_conversions_of_transposed_arrays():
    for source, target in product(("i1", "f2", "f4", "f8"), repeat=2):
        array, given = viewed(numbers(33, 40, dtype=source), lambda a: a.T)
        target_array = memory.empty(array.shape, np.dtype(target))
        cuda().copying.copy(target_array, given)
        np.testing.assert_array_equal(memory.host(target_array), array.astype(target))


@pytest.mark.parametrize("dims", [16, 17])
def test_dimensions_that_cannot_be_joined(dims):
    array = np.lib.stride_tricks.as_strided(numbers(1 << 18), (2,) * dims, [4 * 3**k % 1000 * 4 for k in range(dims)])
    out = numbers(*(2,) * dims)
    if dims <= walks.MAX_DIMS:
        assert planned(array, out=out).walk == "strided"
    else:
        with pytest.raises(ValueError, match="17 dimensions"):
            planned(array, out=out)
