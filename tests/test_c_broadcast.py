"""Elementwise kernels in C on large operands that broadcast or are strided: the same as NumPy's ufuncs compute."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tests.compiled")
from corefw_c import elementwise, library

PAIRS = [
    *[((257, 300), (300,)), ((257, 300), (257, 1)), ((300,), (257, 1)), ((1, 40000), (3, 1)), ((3, 40001), (3, 1))],
    *[((8, 65, 128), (128,)), ((8, 65, 128), (65, 1)), ((8, 65, 128), (8, 1, 1)), ((8, 65, 128), (8, 1, 128))],
    *[((20011, 3), (3,)), ((20011, 3), (20011, 1)), ((9001, 2, 3), (2, 1)), ((4, 1, 33, 300), (5, 1, 300))],
    *[((60, 1030), (60, 1)), ((1030, 60), (1, 60)), ((5, 1030, 40), (1030, 1))],
    *[((1,) * 5, (2, 130, 1, 131)), ((0, 300, 300), (300,)), ((300, 300), (4, 0, 1, 300)), ((), (200, 200))],
]
LAYOUTS = ("dense", "backwards", "strided", "transposed", "inside", "odd")


@pytest.fixture(scope="module", params=library.levels())
def pairs(request):
    """By name (ufunc, the kernel that may take another way, the same without ufuncs)."""
    lib = library.load(request.param)
    made = elementwise.functions(lib)
    return {
        name: (ufunc, made[name][0], alone(lib, ufunc, loops))
        for name, (ufunc, loops) in elementwise.ufuncs(lib).items()
    }


def alone(lib, ufunc, loops):
    """What computes as a ufunc without one, where the operands are as a loop takes them, and otherwise as it does."""
    by_dtypes = {tuple(t.numpy for t in types[:-1]): loop for types, loop in loops}

    def kernel(*operands, out=None):
        expected = np.asarray(ufunc(*operands))
        operands = [*map(np.asarray, operands)]
        result = np.full_like(expected, 77) if out is None else out
        loop = by_dtypes.get(tuple(a.dtype for a in operands))
        if loop is None or lib.elementwise_apply(loop, len(operands), [id(a) for a in operands], id(result)):
            assert loop is None or not all(a.flags.aligned for a in operands) or lies_across(operands, result)
            result[...] = expected
        return result

    return kernel


def lies_across(operands, result):
    """Whether a result shares memory with an operand that lies otherwise."""
    return any(np.may_share_memory(a, result) for a in operands)


def laid_out(x, layout):
    """The same elements in another order of memory."""
    if layout == "backwards":
        return x[tuple(slice(None, None, -1) for _ in x.shape)].copy()[tuple(slice(None, None, -1) for _ in x.shape)]
    if layout == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x
    if layout == "transposed":
        return x.T.copy().T
    if layout == "inside" and x.ndim:
        return np.pad(x, [(1, 2)] * x.ndim)[tuple(slice(1, -2) for _ in x.shape)]
    if layout == "odd":  # at an address that no element of this type has
        memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        memory[...] = x
        return memory
    return x


def drawn(shape, dtype, seed):
    """Elements that are exact in every type."""
    return np.random.default_rng(seed).integers(1, 9, shape).astype(dtype)


def check(pair, *operands):
    """All ways give the same elements, for a new result and for one that is given."""
    ufunc, *kernels = pair
    expected = ufunc(*operands)
    for kernel in kernels:
        result = kernel(*operands)
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)
        target = np.zeros((*expected.shape, 2), expected.dtype)[..., 1]
        assert kernel(*operands, out=target) is target
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shapes", PAIRS, ids=str)
def test_shapes_and_layouts(pairs, shapes, layout):
    x, y = (drawn(shape, np.float32, i) for i, shape in enumerate(shapes))
    check(pairs["sub"], laid_out(x, layout), y)
    check(pairs["sub"], y, laid_out(x, layout))
    check(pairs["lt"], laid_out(x, layout), laid_out(y, layout))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, "f4", "f8", "i1", "u2", "i4", "i8", ">f4"], ids=str)
def test_dtypes(pairs, dtype):
    x, y, row, column = (drawn(shape, dtype, i) for i, shape in enumerate([(300, 301), (301, 300), 301, (300, 1)]))
    for name in ("add", "lt", "maximum"):
        for operands in ((x, row), (column, x), (column, row), (x, y.T), (x[::-1, ::-2], column)):
            check(pairs[name], *operands)


@pytest.mark.parametrize("dtype", [np.float16, "f4", "c8", "c16", "?", "i8"], ids=str)
def test_choice(pairs, dtype):
    condition = np.random.default_rng(0).random((200, 1, 300)) < 0.5
    x, y = drawn((40, 300), dtype, 1), drawn((40, 1), dtype, 2)
    check(pairs["choose"], condition, x, y)
    check(pairs["choose"], condition[:, 0, :40].T, x[:, :200], y)


def test_in_place(pairs):
    x, row = drawn((300, 400), np.float32, 1), drawn(400, np.float32, 2)
    for layout in LAYOUTS[:-1]:
        target = laid_out(x.copy(), layout)
        assert pairs["add"][1](target, row, out=target) is target
        np.testing.assert_array_equal(target, x + row)


def test_targets_that_overlap_an_input_or_do_not_fit(pairs):
    add, x = pairs["add"][1], drawn((300, 300), np.float32, 1)
    for part in (lambda a: a[0], lambda a: a[:, :1], lambda a: a.T, lambda a: a[::-1]):
        target = x.copy()
        np.testing.assert_array_equal(add(target, part(target), out=target), x + part(x))
    fixed = x.copy()
    fixed.flags.writeable = False
    for out in (fixed, np.zeros((1, 300), np.float32), np.zeros((300, 301), np.float32)):
        with pytest.raises(ValueError):
            add(x, x[0], out=out)
    wide = np.zeros((300, 300))
    np.testing.assert_array_equal(add(x, x[0], out=wide), x + x[0])


def test_what_is_no_array_goes_to_the_ufunc(pairs):
    ufunc, add, _ = pairs["add"]
    x = drawn((300, 300), np.float32, 1)
    for other in (2.0, np.float32(3), [1.0] * 300, np.ma.ones(300, dtype=np.float32), drawn(300, np.float64, 2)):
        result, expected = add(x, other), ufunc(x, other)
        assert type(result) is type(expected)
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(add(x, x[0], where=x > 3, out=np.zeros_like(x)), np.where(x > 3, x + x[0], 0))
    for wrong, error in (((x,), TypeError), ((x, None), TypeError), ((x, x[:, :7]), ValueError)):
        with pytest.raises(error):
            add(*wrong)


def test_results_lie_as_the_operand_of_their_shape(pairs):
    x, column = drawn((300, 400), np.float32, 1), drawn((400, 1), np.float32, 2)
    assert pairs["add"][1](x.T, column).T.flags.c_contiguous
    assert pairs["add"][1](x, x[0]).flags.c_contiguous
