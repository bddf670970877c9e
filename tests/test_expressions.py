"""The elementwise functions of the C backend: generated from one table, accurate, right for every layout and dtype."""

import importlib
import warnings
from functools import cache

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import corefw
from corefw.dispatch.expressions import EXPRESSIONS, ULPS
from tests import scripts

elementwise = pytest.importorskip("corefw_c.elementwise", reason="the C backend is not installed")
library = importlib.import_module("corefw_c.library")

#: by name the function in a wider dtype
FUNCTIONS = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfinv": scipy.special.erfinv,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "rint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
PAIRS = {
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "pow": np.power,
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 10, 1000, 1e-45, -1e-45, 1e-38, -1e-38]
SPECIAL += [88.72, 88.73, -87.4, -103.9, -104, 3.4e38, -3.4e38, 709.7, 709.8, -745.1, -745.2, 5e-324, 1e-310, 1e308]


@pytest.fixture(scope="module", params=library.levels())
def ufuncs(request):
    """The functions of one level."""
    loops = elementwise.ufuncs(library.load(request.param))
    return {name: ufunc for name, (ufunc, _) in loops.items()}


def test_the_generated_files_are_current():
    for path, text in scripts.load("make_expressions").files().items():
        assert path.read_text() == text, f"{path.name}: run scripts/make_expressions"


@cache
def numbers(dtype) -> np.ndarray:
    """Special values, all magnitudes of a dtype, and more where functions bend."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        parts = [np.array(SPECIAL).astype(dtype), rng.uniform(-1.1, 1.1, 20000), rng.normal(0, 20, 20000)]
        parts += [rng.uniform(0.5, 2, 10000), rng.uniform(-710, 710, 5000), rng.uniform(-1e5, 1e5, 5000)]
    if dtype == np.float32:
        parts.append(np.arange(0, 2**32, 65521, dtype=np.uint32).view(np.float32))
    else:
        parts.append(np.exp(rng.uniform(-740, 709, 30000)) * rng.choice([-1, 1], 30000))
    return np.concatenate([part.astype(dtype) for part in parts])


def test_every_stated_error_is_measured():
    assert ULPS.keys() == FUNCTIONS.keys() | PAIRS.keys()


def check(result, expected, allowed):
    """Whether a result lies within so many units in the last place; special values must agree."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(result.dtype)
        regular = np.isfinite(rounded) & (expected != 0)
        np.testing.assert_array_equal(result[~regular], rounded[~regular])
        np.testing.assert_array_equal(np.signbit(result[expected == 0]), np.signbit(rounded[expected == 0]))
        units = np.abs(result.astype(expected.dtype) - expected)[regular] / np.spacing(np.abs(rounded[regular]))
    assert units.max() <= allowed, f"{units.max()} units, at position {np.flatnonzero(regular)[units.argmax()]}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(ufuncs, name, dtype):
    function, x = FUNCTIONS[name], numbers(dtype)
    if name == "erfc" and dtype == np.float64:
        pytest.skip("no better reference")
    wide = np.longdouble if dtype == np.float64 and not name.startswith("erf") else np.float64
    with np.errstate(all="ignore"):
        expected = function(x.astype(wide))
        if name == "erfinv":
            expected = np.copysign(expected, x.astype(wide))  # SciPy's gives 0 for -0
    check(ufuncs[name](x), expected, ULPS[name][dtype == np.float64])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", PAIRS)
def test_accuracy_of_pairs(ufuncs, name, dtype):
    function, rng = PAIRS[name], np.random.default_rng(1)
    special = np.array(SPECIAL[:19] + [0.3, 1e17, 2**53 + 1.0]).astype(dtype)
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    x = np.concatenate([x, np.exp(rng.normal(0, 4, 20000)).astype(dtype)])
    y = np.concatenate([y, rng.normal(0, 10, 20000).astype(dtype)])
    with np.errstate(all="ignore"):
        expected = function(x.astype(np.float64 if dtype == np.float32 else np.longdouble), y)
    check(ufuncs[name](x, y), expected, ULPS[name][dtype == np.float64])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_great_angles(ufuncs, name):
    x = np.array([1e6, 1e10, -1e22, 3e38, np.inf, 1.0], np.float32)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype(np.float64))
    check(ufuncs[name](x), expected, 1)


def operands(expression, dtype, n=1500):
    """Operands of an expression, tensors and numbers, in a range where all functions are defined."""
    rng = np.random.default_rng(2)
    kind = np.dtype(dtype).kind
    high = 2 if kind == "b" else 100
    draw = (lambda: rng.integers(0, high, n)) if kind in "biu" else (lambda: rng.uniform(0.1, 0.9, n))
    arrays = [draw().astype(dtype) for _ in range(expression.tensors)]
    return arrays, [np.array(0.5 if kind not in "biu" else 3).astype(dtype)] * expression.numbers


def dtypes_of(ufunc) -> list[np.dtype]:
    """The element types of a ufunc's loops over operands of one type that NumPy itself names."""
    inputs = [types.partition("->")[0] for types in ufunc.types]
    return [np.dtype(types[-1]) for types in inputs if len(set(types)) == 1]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda e: f"{e.name}-{'-'.join(e.formulas)}")
def test_every_layout(ufuncs, expression):
    ufunc = ufuncs[expression.name]
    for dtype in dtypes_of(ufunc):
        tensors, others = operands(expression, dtype)
        expected = ufunc(*tensors, *others)
        for step in (2, -1, -3):
            spread = [np.repeat(x, abs(step))[::-1] if step < 0 else np.repeat(x, step) for x in tensors]
            np.testing.assert_array_equal(ufunc(*(x[::step] for x in spread), *others), expected)
        target = np.zeros(2 * expected.size, expected.dtype)[::2]
        assert ufunc(*tensors, *others, out=target) is target
        np.testing.assert_array_equal(target, expected)
        for i in range(len(tensors)):
            single = [x[7] if i == j else x for j, x in enumerate(tensors)]
            whole = [np.full_like(x, x[7]) if i == j else x for j, x in enumerate(tensors)]
            np.testing.assert_array_equal(ufunc(*single, *others), ufunc(*whole, *others))
            if expected.dtype == dtype:
                into = [x.copy() for x in tensors]
                np.testing.assert_array_equal(ufunc(*into, *others, out=into[i]), expected)
        for n in (0, 1, 2, 3, 15, 16, 17, 63, 64, 65):
            np.testing.assert_array_equal(ufunc(*(x[:n] for x in tensors), *others), expected[:n])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_an_element_is_the_same_wherever_it_lies(ufuncs, dtype):
    """In a vector, or behind the last whole one: no compiler joins a product and a sum in only one of these."""
    rng = np.random.default_rng(5)
    for expression in (e for e in EXPRESSIONS if "floating" in e.formulas and e.cost < 60):
        tensors = [np.concatenate([rng.normal(0, 2, 250), rng.uniform(0, 1, 250)]).astype(dtype) for _ in "xyz"]
        tensors = tensors[: expression.tensors]
        numbers = [np.array(number, dtype) for number in (0.5, 1.5, 2.0)[: expression.numbers]]
        ufunc = ufuncs[expression.name]
        alone = [ufunc(*(x[i : i + 1] for x in tensors), *numbers) for i in range(500)]
        np.testing.assert_array_equal(np.concatenate(alone), ufunc(*tensors, *numbers), err_msg=expression.name)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=lambda t: t.__name__)
def test_half_types_are_rounded_once(ufuncs, dtype):
    every = np.arange(2**16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        for name, inputs in (("exp", 1), ("neg", 1), ("mul", 2)):
            x = [every, every[::-1]][:inputs]
            wide = ufuncs[name](*(a.astype(np.float32) for a in x))
            np.testing.assert_array_equal(ufuncs[name](*x).astype(np.float32), wide.astype(dtype).astype(np.float32))


def test_choice_moves_all_dtypes(ufuncs):
    condition = np.arange(1000) % 3 == 0
    for dtype in corefw.dtypes.ALL:
        x, y = (np.arange(first, first + 1000).astype(dtype.numpy) for first in (0, 7))
        np.testing.assert_array_equal(ufuncs["choose"](condition, x, y), np.where(condition, x, y))
        np.testing.assert_array_equal(ufuncs["choose"](condition, y[3], x), np.where(condition, y[3], x))


def test_large_arrays_are_shared_between_threads(ufuncs):
    x = np.random.default_rng(3).normal(size=1_000_003).astype(np.float32)
    np.testing.assert_array_equal(ufuncs["exp"](x)[-1000:], ufuncs["exp"](x[-1000:]))
    np.testing.assert_array_equal(ufuncs["add"](x, x[::-1]), x + x[::-1])


def test_nothing_warns(ufuncs):
    x = np.array([0, -1, np.inf, np.nan, 1e38], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("log", "exp", "sqrt", "reciprocal", "asin"):
            ufuncs[name](x)
        ufuncs["div"](x, np.zeros_like(x))
        ufuncs["mul"](x, x)


@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_division_rounded_down(ufuncs, name):
    rng = np.random.default_rng(4)
    numpy = {"remainder": np.remainder, "floor_divide": np.floor_divide}[name]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 3, -3, 0.1, 1e-30, 1e30])
    for dtype in (np.float32, np.float64):
        x, y = (part.ravel().astype(dtype) for part in np.meshgrid(special, special))
        x = np.concatenate([x, rng.normal(0, 100, 5000).astype(dtype), rng.integers(-99, 99, 5000).astype(dtype)])
        y = np.concatenate([y, rng.normal(0, 3, 5000).astype(dtype), rng.integers(1, 20, 5000).astype(dtype)])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(ufuncs[name](x, y), numpy(x, y))
