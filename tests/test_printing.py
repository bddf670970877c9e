"""Tensor text: literal cases, and character-for-character comparison with PyTorch where it is installed."""

import dataclasses
import threading
import time
import warnings

import ml_dtypes
import numpy as np
import pytest

from corefw import printing
from corefw.printing import format_tensor, get_printoptions, printoptions, set_printoptions, shows_dtype

nan, inf = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def default_options():
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


# ---- literal cases ----

GOLDEN = {
    "scalar": (np.float32(3.14159), {}, "tensor(3.1416)"),
    "scalar whole": (np.float32(3), {}, "tensor(3.)"),
    "scalar int": (np.int64(3), {}, "tensor(3)"),
    "scalar bool": (np.bool_(True), {}, "tensor(True)"),
    "scalar nan": (np.float32(nan), {}, "tensor(nan)"),
    "ints": ([1, -20, 300], {}, "tensor([  1, -20, 300])"),
    "bools": ([True, False], {}, "tensor([ True, False])"),
    "uint64": (
        np.array([2**63 + 5, 1], np.uint64),
        {"dtype_name": "uint64"},
        "tensor([9223372036854775813,                   1], dtype=torch.uint64)",
    ),
    "whole floats": ([1.0, -2.0, 100.0], {}, "tensor([  1.,  -2., 100.])"),
    "fractions": ([1.5, -2.0, 100.0], {}, "tensor([  1.5000,  -2.0000, 100.0000])"),
    "ratio of 1000": ([1000.0, 1.0], {}, "tensor([1000.,    1.])"),
    "ratio above 1000": ([1001.0, 1.0], {}, "tensor([1.0010e+03, 1.0000e+00])"),
    "large": ([1e8 + 1], {}, "tensor([1.0000e+08])"),
    "1e-4 in float64": (np.array([1e-4]), {}, "tensor([0.0001])"),
    "1e-4 in float32, below it": (np.array([1e-4], np.float32), {}, "tensor([1.0000e-04])"),
    "whole with nan": ([0.0, nan, 1.0], {}, "tensor([0., nan, 1.])"),
    "no finite nonzero": ([nan, -inf, -0.0], {}, "tensor([nan, -inf, -0.])"),
    "minus zero": ([1.5, -0.0], {}, "tensor([1.5000, -0.0000])"),
    "scientific with nan": ([nan, 1e-5, 3.0], {}, "tensor([       nan, 1.0000e-05, 3.0000e+00])"),
    "extreme float64": ([5e-324, 1e308], {}, "tensor([4.9407e-324, 1.0000e+308])"),
    "bfloat16": (
        np.array([1.5, 3e38], ml_dtypes.bfloat16),
        {"dtype_name": "corefw.bfloat16"},
        "tensor([1.5000e+00, 3.0041e+38], dtype=torch.bfloat16)",
    ),
    "float16": (
        np.array([1.5, 65504, -0.0], np.float16),
        {"dtype_name": "float16"},
        "tensor([1.5000e+00, 6.5504e+04, -0.0000e+00], dtype=torch.float16)",
    ),
    "complex": ([1 + 2j, 1 + 100j], {}, "tensor([1.+2.j, 1.+100.j])"),
    "complex mixed": ([-1 - 2.5j, complex(1, nan)], {}, "tensor([-1.-2.5000j,  1.+nanj])"),
    "complex scalar": (np.complex64(1e9 + 1.5j), {}, "tensor(1.0000e+09+1.5000j)"),
    "complex on two lines": (
        [1 + 2j, 1e9 - 4.5j, complex(nan, inf), complex(-0.0, -0.0)],
        {},
        "tensor([1.0000e+00+2.0000j, 1.0000e+09-4.5000j,        nan+infj,\n        -0.0000e+00-0.0000j])",
    ),
    "empty": (np.zeros(0), {}, "tensor([])"),
    "empty with shape": (np.zeros((0, 3)), {}, "tensor([], size=(0, 3))"),
    "empty with all suffixes": (
        np.zeros((0, 3)),
        {"dtype_name": "float64", "device": "cuda:0", "requires_grad": True},
        "tensor([], device='cuda:0', size=(0, 3), dtype=torch.float64,\n       requires_grad=True)",
    ),
    "meta": (None, {"size": (2, 3), "device": "meta"}, "tensor(..., device='meta', size=(2, 3))"),
    "meta scalar": (
        None,
        {"size": (), "device": "meta", "dtype_name": "int64"},
        "tensor(..., device='meta', size=(), dtype=torch.int64)",
    ),
    "matrix": ([[1, 2], [30, 4]], {}, "tensor([[ 1,  2],\n        [30,  4]])"),
    "stack of stacks": (
        np.arange(8).reshape(2, 2, 1, 2),
        {},
        "tensor([[[[0, 1]],\n\n         [[2, 3]]],\n\n\n        [[[4, 5]],\n\n         [[6, 7]]]])",
    ),
    "device and gradient": (
        [1.5, 2.5],
        {"device": "cuda:0", "grad_fn": "AddBackward0", "requires_grad": True},
        "tensor([1.5000, 2.5000], device='cuda:0', grad_fn=<AddBackward0>)",
    ),
    "requires_grad": ([1.0], {"requires_grad": True}, "tensor([1.], requires_grad=True)"),
    "prefix": ([[1.0], [2.0]], {"prefix": "MyTensor("}, "MyTensor([[1.],\n          [2.]])"),
    "shortened vector": (np.arange(1001), {}, "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    "shortened matrix": (
        np.zeros((1001, 2)),
        {},
        "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n"
        "        [0., 0.],\n        [0., 0.],\n        [0., 0.]])",
    ),
    "only what is shown sets the notation": (
        np.where(np.arange(2000) == 1000, 1e-9, 1.0),
        {},
        "tensor([1., 1., 1.,  ..., 1., 1., 1.])",
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_literal(case):
    values, metadata, text = GOLDEN[case]
    assert format_tensor(None if values is None else np.asarray(values), **metadata) == text


OPTIONS = [
    ({"precision": 2}, [1.255, 2.0], "tensor([1.25, 2.00])"),
    ({"precision": 0}, [1.5, 2.5], "tensor([2, 2])"),
    ({"sci_mode": True}, [1.0, 2.0], "tensor([1.0000e+00, 2.0000e+00])"),
    ({"sci_mode": True}, [0.0, -0.0], "tensor([0., -0.])"),
    ({"sci_mode": False}, [1.5, 1e9], "tensor([         1.5000, 1000000000.0000])"),
    ({"sci_mode": False}, [nan, 1e-5, 3.0], "tensor([   nan, 0.0000, 3.0000])"),
    ({"threshold": 5}, range(7), "tensor([0, 1, 2,  ..., 4, 5, 6])"),
    (
        {"threshold": 5, "edgeitems": 1},
        np.arange(12).reshape(3, 4),
        "tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])",
    ),
    ({"threshold": 5, "edgeitems": 0}, np.arange(12).reshape(3, 4), "tensor([...], size=(3, 4))"),
    ({"linewidth": 20}, range(7), "tensor([0, 1, 2, 3,\n        4, 5, 6])"),
    ({"linewidth": inf}, range(30), f"tensor([{', '.join(f'{n:2}' for n in range(30))}])"),
    ({"profile": "short"}, np.arange(1001) + 2.5, "tensor([   2.50,    3.50,  ..., 1001.50, 1002.50])"),
    ({"profile": "short", "precision": 1}, [0.25], "tensor([0.2])"),
]


@pytest.mark.parametrize("options, values, text", OPTIONS)
def test_options(options, values, text):
    with printoptions(**options):
        assert format_tensor(np.asarray(values)) == text


def test_full_profile_shows_everything():
    set_printoptions(profile="full")
    assert "..." not in format_tensor(np.zeros(5000))


def test_set_options_keeps_the_others_except_sci_mode():
    set_printoptions(precision=7, sci_mode=True)
    set_printoptions(edgeitems=5)
    assert get_printoptions() == {
        "precision": 7,
        "threshold": 1000,
        "edgeitems": 5,
        "linewidth": 80,
        "sci_mode": None,
    }


def test_printoptions_restores_after_an_error():
    set_printoptions(precision=7, sci_mode=True)
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(profile="short"):
        assert get_printoptions()["precision"] == 2
        raise KeyError
    assert get_printoptions() == before


def test_unknown_profile():
    before = get_printoptions()
    with pytest.raises(ValueError, match=r"'bogus' is unknown; use one of default, short, full"):
        set_printoptions(profile="bogus")
    assert get_printoptions() == before


def test_values_or_size_is_needed():
    with pytest.raises(ValueError, match="size"):
        format_tensor(None)


def test_concurrent_updates_are_not_lost(monkeypatch):
    """Each thread owns one option; were an update lost, a thread would find a stale copy of its own."""
    lost = []

    def slow_replace(*args, **changes):
        changed = dataclasses.replace(*args, **changes)
        time.sleep(1e-4)  # time for another thread to step in between reading the options and storing them
        return changed

    def count(option):
        for n in range(1, 30):
            set_printoptions(**{option: n})
            time.sleep(1e-4)
            if get_printoptions()[option] != n:
                lost.append(option)

    monkeypatch.setattr(printing, "replace", slow_replace)
    threads = [threading.Thread(target=count, args=(option,)) for option in ("precision", "edgeitems", "linewidth")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not lost


@pytest.mark.parametrize(
    "dtype, default, shown, shown_without_values",
    [
        ("float32", "float32", False, False),
        ("float64", "float32", True, True),
        ("float32", "float64", True, True),
        ("torch.float64", "corefw.float64", False, False),
        ("int64", "float32", False, True),
        ("int32", "float32", True, True),
        ("bool", "float32", False, True),
        ("complex64", "float32", False, True),
        ("complex128", "float32", True, True),
        ("complex128", "float64", False, True),
        ("complex64", "float64", True, True),
        ("complex64", "bfloat16", False, True),
    ],
)
def test_shows_dtype(dtype, default, shown, shown_without_values):
    assert shows_dtype(dtype, default) is shown
    assert shows_dtype(dtype, default, has_values=False) is shown_without_values


def test_module_name_is_one_constant(monkeypatch):
    monkeypatch.setattr(printing, "MODULE", "corefw")
    assert format_tensor(np.zeros(1), dtype_name="float64") == "tensor([0.], dtype=corefw.float64)"


def test_byte_order_and_strides_do_not_matter():
    assert format_tensor(np.array([2**63], ">u8")) == "tensor([9223372036854775808])"
    assert (
        format_tensor(np.arange(6.0).reshape(2, 3).T[::-1])
        == "tensor([[2., 5.],\n        [1., 4.],\n        [0., 3.]])"
    )


# ---- comparison with PyTorch ----

FLOATS = ["float16", "bfloat16", "float32", "float64"]
SMALL_FLOATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
COMPLEXES = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = [*FLOATS, *SMALL_FLOATS, *COMPLEXES, *INTEGERS, "bool"]

SETTINGS = [
    {"profile": "default"},
    {"profile": "short"},
    {"profile": "full"},
    {"sci_mode": True},
    {"sci_mode": False},
    {"precision": 0},
    {"precision": 9, "sci_mode": True, "linewidth": 120},
    {"threshold": 0, "edgeitems": 1},
    {"threshold": 10, "edgeitems": 2, "linewidth": 40},
    {"threshold": 10, "edgeitems": 0},
    {"linewidth": 1},
    {"linewidth": 33, "precision": 1},
]

SHAPES = [(), (1,), (7,), (40,), (0,), (3, 0, 2), (1, 1), (5, 4), (2, 3, 4), (9, 1, 8), (2, 1, 3, 2), (2, 2, 1, 2, 2)]
LONG_SHAPES = [(1001,), (40, 30), (3, 400), (500, 3), (8, 7, 20), (7, 2, 100)]

SPECIAL = [
    [0.0],
    [-0.0, 0.0],
    [nan],
    [inf, -inf, nan],
    [0.0, nan],
    [1.0, nan, inf],
    [-1.0, nan, -inf],
    [1.5, nan, -inf, -0.0],
    [1.0, 1000.0],
    [1.0, 1001.0],
    [1e8],
    [1e8 + 8, 2e8],
    [0.0001],
    [0.00011, 0.05],
    [0.00009],
    [0.5, 500.0],
    [0.5, 500.5],
    [99.99995],
    [0.99996, -0.99996],
    [5e-324, 1e308],
    [1e-45, 3.4e38],
    [-65504.0, 6e-8],
    [123456.0],
    [2.0**53],
    [-1.0, 10.0, -100.0],
]


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="PyTorch, the reference, is not installed")
    torch.set_printoptions(profile="default")
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


def to_torch(torch, values, name):
    """The same bits as a torch tensor of dtype `name`; torch.from_numpy knows none of the ml_dtypes."""
    if name == "bfloat16" or name.startswith("float8"):
        bits = np.ascontiguousarray(values).view(f"uint{8 * values.dtype.itemsize}").reshape(values.shape)
        return torch.from_numpy(bits).view(getattr(torch, name))
    return torch.from_numpy(np.array(values))


def as_dtype(values, name):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(values).astype(np.dtype(getattr(ml_dtypes, name, name)))


def random_values(rng, name, shape):
    """Numbers that meet every notation: whole, fractional, of one magnitude or of many, some special."""
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        limits = np.iinfo(name)
        high = min(int(10.0 ** rng.integers(0, 20)), limits.max)
        return rng.integers(max(-high // 9, limits.min), high, shape, endpoint=True, dtype=name)
    if name in COMPLEXES:
        real, imag = (random_values(rng, "float64", shape) for _ in range(2))
        values = np.empty(shape, complex)
        values.real, values.imag = real, imag
        return as_dtype(values, name)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 10)
    if rng.random() < 0.3:
        values = values * 10.0 ** rng.integers(-3, 4, shape)
    if rng.random() < 0.4:
        values = np.round(values)
    if rng.random() < 0.4:
        odd = rng.choice([0.0, -0.0, nan, inf, -inf], shape)
        values = np.where(rng.random(shape) < 0.2, odd, values)
    return as_dtype(values, name)


def assert_same_text(torch, values, name, **metadata):
    tensor = to_torch(torch, values, name)
    default = str(torch.get_default_dtype())
    shown = name if shows_dtype(name, default, has_values=values.size > 0) else None
    expected = repr(tensor.requires_grad_() if metadata.get("requires_grad") else tensor)
    assert format_tensor(values, dtype_name=shown, **metadata) == expected


@pytest.mark.oracle
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_random_like_torch(torch, name, settings):
    torch.set_printoptions(**settings)
    set_printoptions(**settings)
    assert get_printoptions() == torch._tensor_str.get_printoptions()
    rng = np.random.default_rng([DTYPES.index(name), SETTINGS.index(settings)])
    for shape in SHAPES * 3:
        assert_same_text(torch, random_values(rng, name, shape), name)
    if settings.get("profile") in ("default", "short"):
        for shape in LONG_SHAPES:
            assert_same_text(torch, random_values(rng, name, shape), name)


@pytest.mark.oracle
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", [*FLOATS, *SMALL_FLOATS, *COMPLEXES])
def test_special_values_like_torch(torch, name, settings):
    torch.set_printoptions(**settings)
    set_printoptions(**settings)
    for values in SPECIAL:
        assert_same_text(torch, as_dtype(values, name), name)
        if name in COMPLEXES:
            for other in SPECIAL:
                pairs = [complex(re, im) for re, im in zip(values, other)]
                assert_same_text(torch, as_dtype(pairs, name), name)


@pytest.mark.oracle
def test_every_16_bit_number_like_torch(torch):
    for name in ("float16", "bfloat16"):
        every = np.arange(2**16, dtype=np.uint16).view(as_dtype(0, name).dtype)
        for start in range(0, 2**16, 997):
            assert_same_text(torch, every[start : start + 997], name)
        for number in range(0, 2**16, 61):
            assert_same_text(torch, every[number], name)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_complex32_like_torch(torch):
    values = np.array([1 + 2j, -0.5 + 1000j, complex(nan, -0.0), 60000j], np.complex64)
    tensor = torch.from_numpy(values).to(torch.complex32)
    assert format_tensor(values, dtype_name="complex32") == repr(tensor)


@pytest.mark.oracle
@pytest.mark.parametrize("precision", [1, 4, 35])
@pytest.mark.parametrize("linewidth", range(10, 100))
def test_suffixes_wrap_like_torch(torch, linewidth, precision):
    torch.set_printoptions(linewidth=linewidth, precision=precision)
    set_printoptions(linewidth=linewidth, precision=precision)
    for shape in [(), (3,), (2, 5), (0,), (4, 0)]:
        values = np.full(shape, 1.5)
        for name in ("float32", "float64"):
            assert_same_text(torch, as_dtype(values, name), name, requires_grad=True)
        result = torch.from_numpy(values).requires_grad_() + 1
        text = format_tensor(values + 1, dtype_name="float64", grad_fn="AddBackward0", requires_grad=True)
        assert text == repr(result)


@pytest.mark.oracle
@pytest.mark.parametrize("default", FLOATS)
def test_default_dtype_like_torch(torch, default):
    torch.set_default_dtype(getattr(torch, default))
    for name in DTYPES:
        for shape in [(), (2,), (0,), (0, 2)]:
            assert_same_text(torch, as_dtype(np.ones(shape), name), name)
            meta = torch.empty(shape, dtype=getattr(torch, name), device="meta")
            shown = name if shows_dtype(name, default, has_values=False) else None
            assert format_tensor(None, size=shape, device="meta", dtype_name=shown) == repr(meta)


@pytest.mark.oracle
def test_gradients_on_meta_like_torch(torch):
    leaf = torch.empty(2, 3, device="meta", requires_grad=True)
    assert format_tensor(None, size=leaf.shape, device="meta", requires_grad=True) == repr(leaf)
    assert format_tensor(None, size=leaf.shape, device="meta", grad_fn="MulBackward0") == repr(leaf * 2)


@pytest.mark.oracle
def test_prefix_like_torch(torch):
    class Measurement(torch.Tensor):
        pass

    values = np.linspace(0, 1, 60).reshape(3, 20)
    expected = repr(torch.from_numpy(values).as_subclass(Measurement))
    assert format_tensor(values, dtype_name="float64", prefix="Measurement(") == expected
