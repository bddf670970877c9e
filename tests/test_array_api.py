"""The array API namespace against array-api-strict: names, signatures, types, shapes, values, special values."""

import inspect

import numpy as np
import pytest

import corefw as torch

xp = torch.ones(1).__array_namespace__()
strict = pytest.importorskip("array_api_strict")
strict.set_array_api_strict_flags(api_version="2024.12")

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
KINDS = {
    "bool": ("bool",),
    "integer": INTEGERS,
    "integer or bool": ("bool", *INTEGERS),
    "real": (*INTEGERS, *FLOATS),
    "floating": FLOATS,
    "complex": COMPLEX,
    "inexact": (*FLOATS, *COMPLEX),
    "numeric": (*INTEGERS, *FLOATS, *COMPLEX),
    "all": ("bool", *INTEGERS, *FLOATS, *COMPLEX),
}
#: names of array-api-strict that are its own, or of a later standard
OTHERS = {"Device", "ArrayAPIStrictFlags", "isin", "broadcast_shapes", "__version__"}


def public(module):
    return [n for n in module.__all__ if n not in OTHERS and not n.endswith("_strict_flags")]


@pytest.mark.parametrize("extension", ["", "linalg", "fft"])
def test_names_and_signatures(extension):
    theirs, ours = (getattr(m, extension) if extension else m for m in (strict, xp))
    assert set(public(theirs)) <= set(ours.__all__) | {"linalg", "fft"}
    differing = {"from_dlpack", "astype", "expand_dims"}  # a sentinel for None; a default more
    for name in set(public(theirs)) - differing:
        function = getattr(theirs, name)
        if inspect.isfunction(function):
            expected, found = (
                [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()]
                for f in (function, getattr(ours, name))
            )
            assert found == expected, name


def data(dtype, shape, seed=0):
    """Elements that every function of numbers takes: none is zero, floats lie in (0.1, 0.9)."""
    draw = np.random.default_rng(seed)
    if dtype == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return draw.integers(1, 6, shape).astype(dtype)
    values = draw.uniform(0.1, 0.9, shape)
    return (values + 1j * draw.uniform(0.1, 0.9, shape) if dtype.startswith("complex") else values).astype(dtype)


def flattened(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def check(call, arrays, **tolerance):
    """A call on tensors gives what it gives on array-api-strict's arrays."""
    expected = flattened(call(strict, *(strict.asarray(a) for a in arrays)))
    found = flattened(call(xp, *(xp.asarray(a) for a in arrays)))
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        assert str(f.dtype).removeprefix("torch.") == str(e.dtype).rpartition(".")[2]
        assert tuple(f.shape) == e.shape
        e = np.asarray(e)
        single = e.dtype in (np.float32, np.complex64)
        options = {"rtol": 2e-5 if single else 1e-10, "atol": 2e-6 if single else 1e-12, **tolerance}
        np.testing.assert_allclose(f.numpy(), e, **options)


UNARY = {
    "abs": "numeric",
    "acos": "inexact",
    "acosh": "complex",
    "asin": "inexact",
    "asinh": "inexact",
    "atan": "inexact",
    "atanh": "inexact",
    "bitwise_invert": "integer or bool",
    "ceil": "real",
    "conj": "complex",
    "cos": "inexact",
    "cosh": "inexact",
    "exp": "inexact",
    "expm1": "inexact",
    "floor": "real",
    "imag": "complex",
    "isfinite": "numeric",
    "isinf": "numeric",
    "isnan": "numeric",
    "log": "inexact",
    "log1p": "inexact",
    "log2": "inexact",
    "log10": "inexact",
    "logical_not": "bool",
    "negative": "numeric",
    "positive": "numeric",
    "real": "complex",
    "reciprocal": "inexact",
    "round": "numeric",
    "sign": "numeric",
    "signbit": "floating",
    "sin": "inexact",
    "sinh": "inexact",
    "sqrt": "inexact",
    "square": "numeric",
    "tan": "inexact",
    "tanh": "inexact",
    "trunc": "real",
}
BINARY = {
    "add": "numeric",
    "atan2": "floating",
    "bitwise_and": "integer or bool",
    "bitwise_left_shift": "integer",
    "bitwise_or": "integer or bool",
    "bitwise_right_shift": "integer",
    "bitwise_xor": "integer or bool",
    "copysign": "floating",
    "divide": "inexact",
    "equal": "all",
    "floor_divide": "real",
    "greater": "real",
    "greater_equal": "real",
    "hypot": "floating",
    "less": "real",
    "less_equal": "real",
    "logaddexp": "floating",
    "logical_and": "bool",
    "logical_or": "bool",
    "logical_xor": "bool",
    "maximum": "real",
    "minimum": "real",
    "multiply": "numeric",
    "nextafter": "floating",
    "not_equal": "all",
    "pow": "numeric",
    "remainder": "real",
    "subtract": "numeric",
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for dtype in KINDS[UNARY[name]]:
        check(lambda m, x: getattr(m, name)(x), [data(dtype, (2, 3))])
        check(lambda m, x: getattr(m, name)(x), [data(dtype, ())])
        check(lambda m, x: getattr(m, name)(x), [data(dtype, (0, 2))])


def mixed(kind):
    """Pairs of types whose promotion the standard defines."""
    for a in KINDS[kind]:
        for b in KINDS[kind]:
            try:
                strict.result_type(getattr(strict, a), getattr(strict, b))
            except TypeError:
                continue
            yield a, b


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    for a, b in mixed(BINARY[name]):
        check(lambda m, x, y: getattr(m, name)(x, y), [data(a, (2, 1)), data(b, (3,), 1)])
        check(lambda m, x, y: getattr(m, name)(x, y), [data(a, (3,)), data(b, (), 1)])  # no weak scalars
    for dtype in KINDS[BINARY[name]]:
        number = True if dtype == "bool" else 2 if "int" in dtype else 0.5
        check(lambda m, x: getattr(m, name)(x, number), [data(dtype, (3,))])  # noqa: B023
        check(lambda m, x: getattr(m, name)(number, x), [data(dtype, (3,))])  # noqa: B023


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3.0])


@pytest.mark.parametrize("name", [n for n in (*UNARY, *BINARY) if "float64" in KINDS[(UNARY | BINARY)[n]]])
def test_special_values(name):
    with np.errstate(all="ignore"):
        if name in UNARY:
            check(lambda m, x: getattr(m, name)(x), [SPECIAL])
        else:
            values = (
                SPECIAL[~np.isinf(SPECIAL)] if name == "floor_divide" else SPECIAL
            )  # NumPy is not the standard there
            pairs = [a.flatten() for a in np.meshgrid(values, values)]
            check(lambda m, x, y: getattr(m, name)(x, y), pairs)


def test_floor_divide_of_infinity():
    inf, nan = float("inf"), float("nan")
    table = {(inf, 2): inf, (inf, -2): -inf, (-inf, 2): -inf, (-inf, -2): inf, (inf, -inf): nan, (nan, inf): nan}
    table |= {(3, inf): 0.0, (3, -inf): -0.0, (-3, inf): -0.0, (-3, -inf): 0.0, (inf, 0.0): inf, (-0.0, inf): -0.0}
    a, b = (torch.tensor(column, dtype=torch.float64) for column in zip(*table, strict=True))
    found, wanted = xp.floor_divide(a, b).numpy(), np.array([*table.values()])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted) | (np.isnan(wanted) & np.signbit(found)))


def test_expm1_of_complex_numbers_that_are_not_finite():
    inf, nan = float("inf"), float("nan")
    given = [complex(inf, 0.0), complex(inf, inf), complex(-inf, inf), complex(-inf, nan), complex(nan, 0.0), -0.0 + 0j]
    wanted = [complex(inf, 0.0), complex(inf, nan), -1 + 0j, -1 + 0j, complex(nan, 0.0), 0j]
    for dtype in (torch.complex64, torch.complex128):
        found = xp.expm1(torch.tensor(given, dtype=dtype)).numpy()
        np.testing.assert_array_equal(
            found.view(found.real.dtype), np.array(wanted, found.dtype).view(found.real.dtype)
        )
        assert not np.signbit(found[-1].real)


def test_nan_stays_nan_without_axes():
    for function in (xp.var, xp.std):
        assert function(torch.tensor(float("nan"))).isnan() and function(torch.tensor(3.0)) == 0


REDUCTIONS = {"sum": "numeric", "prod": "numeric", "mean": "floating", "var": "floating", "std": "floating"} | {
    "max": "real",
    "min": "real",
    "all": "all",
    "any": "all",
    "count_nonzero": "all",
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2), (-3,), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    for dtype in KINDS[REDUCTIONS[name]]:
        check(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims), [data(dtype, (2, 3, 2))])


A, B = data("float64", (3, 4)), data("float64", (3, 4), 1)
SQUARE = data("float64", (2, 3, 3)) + 2 * np.eye(3)
HERMITIAN = SQUARE + SQUARE.swapaxes(1, 2) + 4 * np.eye(3)
REPEATED = np.array([[3, 1, 3], [0, 1, 7]])
LAYOUT = {
    "arange": lambda m: m.arange(1, 7, 2),
    "arange empty": lambda m: m.arange(3, 1),
    "arange down": lambda m: m.arange(3.0, 0.0, -0.5, dtype=m.float64),
    "linspace": lambda m: m.linspace(0, 1, 5, endpoint=False, dtype=m.float64),
    "eye": lambda m: m.eye(3, 4, k=-1, dtype=m.float64),
    "full": lambda m: m.full(3, True),
    "zeros": lambda m: m.zeros((2, 1), dtype=m.int16),
    "ones": lambda m: m.ones(2, dtype=m.complex64),
    "meshgrid": lambda m: m.meshgrid(m.arange(3), m.arange(2)),
    "meshgrid ij": lambda m: m.meshgrid(m.arange(3), m.arange(2), indexing="ij"),
    "like": lambda m, a: (m.zeros_like(a), m.ones_like(a, dtype=m.int8), m.full_like(a, 2)),
    "tril": lambda m, a: (m.tril(a, k=1), m.triu(a, k=-1)),
    "concat": lambda m, a: m.concat([a, m.astype(a, m.float32)], axis=1),
    "concat flat": lambda m, a: m.concat([a, a[:1, :2]], axis=None),
    "stack": lambda m, a: (m.stack([a, a], axis=-1), *m.unstack(a, axis=1)),
    "expand_dims": lambda m, a: (m.expand_dims(a, axis=-1), m.squeeze(m.expand_dims(a, axis=1), 1)),
    "flip": lambda m, a: (m.flip(a), m.flip(a, axis=0), m.flip(a, axis=(-1,))),
    "moveaxis": lambda m, a: (m.moveaxis(a, 0, -1), m.permute_dims(a, (1, 0)), m.matrix_transpose(a)),
    "repeat": lambda m, a: (m.repeat(a, 2), m.repeat(a, m.asarray([1, 0, 2]), axis=0)),
    "reshape": lambda m, a: (m.reshape(a, (4, -1)), m.reshape(a, (2, 6), copy=True)),
    "roll": lambda m, a: (m.roll(a, 2), m.roll(a, 1, axis=(0, 1)), m.roll(a, (1, -1), axis=(0, 1))),
    "tile": lambda m, a: (m.tile(a, (2,)), m.tile(a, (2, 1, 1))),
    "broadcast": lambda m, a: (m.broadcast_to(a, (2, 3, 4)), *m.broadcast_arrays(a, a[:, :1])),
    "argmax": lambda m, a: (m.argmax(a), m.argmin(a, axis=1, keepdims=True), m.argmax(a, keepdims=True)),
    "nonzero": lambda m, a: m.nonzero(a > 0.5),
    "searchsorted": lambda m, a: m.searchsorted(m.sort(a[0, :]), a, side="right"),
    "searchsorted sorter": lambda m, a: m.searchsorted(a[0, :], a[1, :], sorter=m.argsort(a[0, :])),
    "where": lambda m, a: (m.where(a > 0.5, a, m.asarray(1.0, dtype=m.float32)), m.where(a > 0.5, a, 2.0)),
    "sort": lambda m, a: (m.sort(a, axis=0, descending=True), m.argsort(a, descending=True)),
    "take": lambda m, a: m.take(a, m.asarray([2, 0, -1]), axis=1),
    "take_along_axis": lambda m, a: m.take_along_axis(a, m.asarray([[0, -1], [1, 2], [3, 3]])),
    "cumulative": lambda m, a: (m.cumulative_sum(a, axis=0, include_initial=True), m.cumulative_prod(a, axis=1)),
    "diff": lambda m, a: (m.diff(a), m.diff(a, axis=0, n=2, prepend=a[:1, :])),
    "clip": lambda m, a: (m.clip(a, 0.3, 0.6), m.clip(a, max=a[:1, :]), m.clip(m.astype(a * 9, m.uint8), 3, 5)),
    "matmul": lambda m, a: (m.matmul(a, a.T), m.tensordot(a, a.T, axes=1), m.vecdot(a, a, axis=-2)),
    "tensordot axes": lambda m, a: m.tensordot(a, a, axes=((0,), (0,))),
    "cross": lambda m, a: (m.linalg.cross(a, a + 1, axis=-2), m.linalg.outer(a[0, :], a[1, :])),
    "vector_norm": lambda m, a: [m.linalg.vector_norm(a, axis=x, ord=o) for x in (None, 1, (0, 1)) for o in (1, 2, 3)],
    "matrix_norm": lambda m, a: [m.linalg.matrix_norm(a, ord=o, keepdims=True) for o in ("fro", "nuc", 1, 2, np.inf)],
    "svdvals": lambda m, a: (m.linalg.svdvals(a), m.linalg.pinv(a), m.linalg.matrix_rank(a)),
    "fft": lambda m, a: (m.fft.rfft(a, n=5, axis=0), m.fft.irfft(m.fft.rfft(a)), m.fft.fftn(m.astype(a, m.complex64))),
    "fftfreq": lambda m, a: (m.fft.fftfreq(5, dtype=m.float64), m.fft.fftshift(a, axes=1), m.fft.ifftshift(a)),
}
LINALG = {
    "trace": lambda m, a: (m.linalg.trace(a), m.linalg.diagonal(a, offset=1)),
    "det": lambda m, a: (m.linalg.det(a), m.linalg.inv(a), m.linalg.matrix_power(a, -2), *m.linalg.slogdet(a)),
    "cholesky": lambda m, a: (m.linalg.cholesky(a), m.linalg.cholesky(a, upper=True)),
    "eigh": lambda m, a: (m.linalg.eigvalsh(a), m.linalg.eigh(a).eigenvalues),
    "solve": lambda m, a: (m.linalg.solve(a, a[0, :, 0]), m.linalg.solve(a, a[0, :, :])),
    "qr": lambda m, a: (m.abs(m.linalg.qr(a).R), m.linalg.svd(a, full_matrices=False).S),
}


@pytest.mark.parametrize("name", LAYOUT)
def test_layout(name):
    call = LAYOUT[name]
    check(call, [A] * (call.__code__.co_argcount - 1))


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name):
    check(LINALG[name], [HERMITIAN])


@pytest.mark.parametrize("function", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
def test_unique(function):
    check(lambda m, x: getattr(m, function)(x), [REPEATED])
    check(lambda m, x: getattr(m, function)(x), [np.array([np.nan, 1.0, np.nan, 0.0, -0.0])])
    check(lambda m, x: getattr(m, function)(x), [np.empty((0, 2))])


def test_unique_complex_numbers():
    x = torch.tensor([1 + 2j, 1 - 2j, 0j, 1 + 2j, complex("nan+1j"), complex("nan+1j")])
    found = xp.unique_all(x)
    assert found.values[:3].tolist() == [0j, 1 - 2j, 1 + 2j] and found.values[3:].isnan().tolist() == [True, True]
    assert found.counts.tolist() == [1, 1, 2, 1, 1] and found.indices.tolist() == [2, 1, 0, 4, 5]
    assert found.inverse_indices.tolist() == [2, 1, 0, 2, 3, 4]


def test_types():
    assert xp.isdtype(torch.float16, "real floating")
    for a, b in mixed("all"):
        found = xp.result_type(getattr(xp, a), getattr(xp, b))
        assert found.name == str(strict.result_type(getattr(strict, a), getattr(strict, b))).rpartition(".")[2]
        assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == strict.can_cast(getattr(strict, a), getattr(strict, b))
    info = xp.__array_namespace_info__()
    assert set(info.dtypes()) == set(strict.__array_namespace_info__().dtypes())
    assert info.default_device() in info.devices()
    assert isinstance(xp.finfo(xp.float32).eps, float) and xp.iinfo(xp.int8).min == -128


def test_operators_promote_unsigned_integers():
    """Those of tensors do, as the functions do, where PyTorch refuses."""
    for a, b in mixed("integer"):
        x, y = (torch.tensor([3, 1], dtype=getattr(torch, name)) for name in (a, b))
        total = x + y
        assert total.dtype is xp.result_type(x, y) and total.tolist() == [6, 2], (a, b)
        assert (x == y).tolist() == [True, True]
    with pytest.raises(TypeError, match="no integer type holds the values of both"):
        torch.ones(1, dtype=torch.uint64) + torch.ones(1, dtype=torch.int8)


def test_to_device():
    x = torch.ones(2)
    assert x.to_device("cpu") is x and x.to_device(torch.device("meta")).device.type == "meta"
    with pytest.raises(ValueError, match="stream=None"):
        x.to_device("cpu", stream=3)


def test_refusals():
    with pytest.raises(ValueError, match="2030"):
        torch.ones(1).__array_namespace__(api_version="2030.12")
    with pytest.raises(ValueError, match="axis 1 has size 3"):
        xp.squeeze(torch.ones(1, 3), 1)
    with pytest.raises(TypeError, match="imaginary"):
        xp.astype(torch.ones(1, dtype=torch.complex64), xp.float32)
    with pytest.raises(ValueError, match="needs a copy"):
        xp.reshape(torch.ones(2, 3).T, (6,), copy=False)
    with pytest.raises(ValueError, match="no kind"):
        xp.isdtype(xp.int8, "integer")
    for limits in (torch.finfo, torch.iinfo):
        with pytest.raises(TypeError, match=r"argument 'type' \(position 1\) must be torch.dtype, not Tensor"):
            limits(torch.ones(1))
    with pytest.raises(ValueError, match="needs an axis"):
        xp.cumulative_sum(torch.ones(2, 2))
    with pytest.raises(ValueError, match="needs an axis"):
        xp.take(torch.ones(2, 2), torch.tensor([0]))
    with pytest.raises(ValueError, match="dimension"):
        xp.nonzero(torch.tensor(1))


def test_gradients_pass():
    x = torch.ones(2, 3, requires_grad=True)
    xp.sum(xp.multiply(xp.asarray(x), 3.0), axis=(0, 1)).backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2
