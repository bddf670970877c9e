"""Elementwise kernels in C that are not formulas: NumPy's own loops in threads, bits of numbers, and what stands before
the ufuncs."""

import math

import ml_dtypes
import numpy as np
import pytest

import corefw
from corefw.dispatch import promotion

pytest.importorskip("tests.compiled")
from corefw_c import elementwise, library

SPECIAL = np.array([0.0, -0.0, 1, -1, 1.5, -3, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1e-38])


@pytest.fixture(scope="module", params=library.levels())
def functions(request):
    """The functions of one level."""
    return {name: function for name, (function, _) in elementwise.functions(library.load(request.param)).items()}


def operands(dtype, inputs, shape):
    """Arrays of which the last one is a column."""
    rng = np.random.default_rng(0)
    shapes = [shape] * (inputs - 1) + [(shape[0], 1) if inputs > 1 else shape]
    if np.dtype(dtype).kind == "c":
        return [(rng.normal(size=s) + 1j * rng.normal(size=s)).astype(dtype) for s in shapes]
    return [rng.integers(1, 100, s).astype(dtype) for s in shapes]


@pytest.mark.parametrize("shape", [(3, 5), (300, 333)])
def test_numpys_loops_give_numpys_results(functions, shape):
    for kinds, _, named in elementwise._NUMPYS:
        for (name, ufunc), kind in ((item, kind) for item in named.items() for kind in (kinds[0], kinds[-1])):
            arrays = operands(kind, ufunc.nin, shape)
            with np.errstate(all="ignore"):
                expected = ufunc(*arrays)
                turned = ufunc(*(a.T for a in arrays))
            np.testing.assert_array_equal(functions[name](*arrays), expected, name)
            np.testing.assert_array_equal(functions[name](*(a.T for a in arrays)), turned, name)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_signs_of_half_types(functions, dtype):
    with np.errstate(all="ignore"):
        x = np.resize(SPECIAL, 1000).astype(dtype)
    bits = x.view(np.uint16)
    np.testing.assert_array_equal(functions["abs"](x).view(np.uint16), bits & 0x7FFF)
    np.testing.assert_array_equal(functions["neg"](x).view(np.uint16), bits ^ 0x8000)
    expected = (bits & 0x7FFF) | (bits[::-1] & 0x8000)
    np.testing.assert_array_equal(functions["copysign"](x, x[::-1]).view(np.uint16), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours(functions, dtype):
    least = np.finfo(dtype).smallest_subnormal
    with np.errstate(all="ignore"):
        special = SPECIAL.astype(dtype)
    numbers = np.concatenate([special, [least, -least, np.finfo(dtype).max]]).astype(dtype)
    x, y = numbers[:, None], numbers[None, :]
    with np.errstate(all="ignore"):
        result, expected = functions["nextafter"](x, y), np.nextafter(x, y)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def test_log_gamma_of_floats(functions):
    near = [np.nextafter(np.float32(root), np.float32(to)) for root in (1, 2) for to in (0, 3)]
    x = np.concatenate([np.geomspace(1e-38, 1e30, 5000), np.linspace(0.01, 20, 5000), near]).astype(np.float32)
    expected = np.array([math.lgamma(v) for v in x.tolist()])
    units = np.abs(functions["lgamma"](x) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert units.max() < 1
    for v, result in ((1, 0), (2, 0), (0, np.inf), (np.inf, np.inf), (-3, np.inf), (-0.5, math.lgamma(-0.5))):
        assert functions["lgamma"](np.full(3, v, np.float32))[1] == np.float32(result)
    assert np.isnan(functions["lgamma"](np.full(3, np.nan, np.float32))).all()


def test_results_in_place_of_operands_in_another_order(functions):
    x = np.arange(90000.0).reshape(300, 300)
    expected = x + x.T
    functions["add"](x, x.T, out=x)
    np.testing.assert_array_equal(x, expected)
    y = np.arange(2000.0)
    expected = y[1:] + y[:-1]
    functions["add"](y[1:], y[:-1], out=y[1:])
    np.testing.assert_array_equal(y[1:], expected)


def test_results_lie_as_operands_do(functions):
    x = np.zeros((4, 5, 6)).transpose(2, 0, 1)
    assert functions["add"](x, x).strides == np.add(x, x).strides
    assert functions["add"](x, np.zeros(5)).strides == np.add(x, np.zeros(5)).strides
    with pytest.raises(ValueError):
        functions["add"](np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError):
        functions["add"](np.zeros(3), np.zeros(3), out=np.zeros(4))


def test_integer_divisions_refuse_zeros():
    x, zeros = corefw.arange(1, 4), corefw.tensor([1, 0, 2])
    for divide in (corefw.floor_divide, corefw.remainder, corefw.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(x, zeros)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        corefw.div(x, zeros, rounding_mode="trunc")
    least = corefw.tensor([-(2**63), 7, -7])
    assert corefw.div(least, corefw.tensor([-1, -2, 2]), rounding_mode="trunc").tolist() == [-(2**63), -3, -3]


def test_a_number_beside_a_half_type_is_prepared_once(monkeypatch):
    x = corefw.ones(3, dtype=corefw.bfloat16)
    assert (x * 2).tolist() == (2 * x).tolist() == [2, 2, 2]

    def again(op, values):
        raise AssertionError("prepared again")

    monkeypatch.setattr(promotion, "_prepare", again)
    assert (x * 3).tolist() == [3, 3, 3]
    assert (3 * x[:2]).tolist() == [3, 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_values_are_searched_in_groups(dtype, size):
    rng = np.random.default_rng(size)
    row = np.sort(rng.integers(0, 50, size)).astype(dtype)
    x = rng.integers(-2, 53, 100).astype(dtype)
    if dtype != np.int64:
        x[[3, 40, 99]] = np.nan
        row[-1] = np.nan
    for right in (False, True):
        found = corefw.searchsorted(corefw.from_numpy(row), corefw.from_numpy(x), right=right)
        np.testing.assert_array_equal(found.numpy(), np.searchsorted(row, x, "right" if right else "left"))
