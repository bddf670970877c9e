"""Softmax on the CUDA backend: how rows are shared among threads, and rows, columns and values beyond what the rows of
corefw/testing/cases reach."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw_cupy.rows import ITEMS, MOST_THREADS, columns, distribute, split
from corefw_numpy import activation
from tests.cuda_kernels import compare, kernels
from tests.emulation import memory

REFERENCE = activation.kernels(np)
FORWARD = ("softmax", "log_softmax")


@pytest.mark.parametrize("rows", [1, 7, 100_000])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 256, 257, 1000, 1025, 4097, 16384])
def test_threads_hold_whole_rows(n, rows):
    held = distribute(n, rows)
    assert held.items in ITEMS
    assert held.items * held.lanes >= n
    (threads,), (blocks,) = held.block, held.grid
    assert threads % 32 == 0 and threads <= MOST_THREADS
    assert threads % held.lanes == 0 and blocks * (threads // held.lanes) >= rows
    assert held.lanes == threads if held.lanes > 32 else held.lanes & (held.lanes - 1) == 0


def test_rows_too_long_for_registers_are_split_if_they_are_few():
    assert distribute(16385, 4) is None and distribute(8193, 4, most=16) is None
    assert split(50_000, 1000)[0] == 1
    for n, rows in ((16385, 1), (1_000_003, 3), (50_257, 100)):
        parts, length = split(n, rows)
        assert 1 < parts <= MOST_THREADS and length % 16 == 0
        assert (parts - 1) * length < n <= parts * length


@pytest.mark.parametrize(("outer", "n", "inner"), [(1, 1, 2), (3, 5, 7), (2, 1000, 33), (1, 10_000, 1_000_000)])
def test_columns_are_covered(outer, n, inner):
    width, tiles, (blocks,), (threads,) = columns(outer, n, inner)
    assert width * tiles >= inner and blocks == outer * tiles
    assert threads % width == 0 and threads % 32 == 0 and threads <= MOST_THREADS


@pytest.mark.parametrize("op", FORWARD)
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((3, 33), 1), ((1100, 40), 1), ((2, 1000), 1), ((2, 9001), 1), ((2, 16400), 1), ((300, 5, 3), 1), ((70, 33), 0)],
)
def test_long_and_many_rows(op, shape, dim):
    rng = np.random.default_rng(0)
    x, gradient = rng.normal(size=(2, *shape)) * 3
    output = REFERENCE[op](x, dim)
    compare(kernels()[op], (x, dim), output)
    compare(kernels()[f"{op}_backward"], (gradient, output, dim), REFERENCE[f"{op}_backward"](gradient, output, dim))


@pytest.mark.parametrize("op", FORWARD)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("repeats", [1, 6000])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(op, value, repeats):
    for row in ([value, 1.0, 2.0], [value] * 3):
        x = np.array([row * repeats], np.float32)
        expected = REFERENCE[op](x.astype("f8"), 1)
        compare(kernels()[op], (x, 1), expected, 1e-5)
        pairs = np.ascontiguousarray(np.repeat(x.T, 2, 1))
        compare(kernels()[op], (pairs, 0), np.repeat(expected.T, 2, 1), 1e-5)


@pytest.mark.parametrize("n", [64, 2048, 20000])
def test_rows_that_begin_between_packs(n):
    shifted = memory.device(np.random.default_rng(0).normal(size=2 * n + 1).astype(np.float32))[1:].reshape(2, n)
    expected = REFERENCE["softmax"](memory.host(shifted).astype("f8"), 1)
    compare(lambda: kernels()["softmax"](shifted, 1), (), expected)
