"""Properties over random input: dtype promotion, broadcasting, views and indexing against tables, NumPy and PyTorch."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import corefw
from corefw import dtypes, shapes
from corefw.dispatch.promotion import result_type
from corefw.testing import oracle_available
from corefw.testing.comparison import host
from corefw.testing.samples import to_tensor

settings.register_profile("corefw", deadline=None, max_examples=150, derandomize=True)
settings.load_profile("corefw")


def needs_oracle(test):
    """Marks a test that compares with PyTorch."""
    return pytest.mark.oracle(pytest.mark.skipif(not oracle_available(), reason="PyTorch is not installed")(test))


# -- promotion --------------------------------------------------------------------------------------------------------
#: PyTorch's torch.promote_types; with a star where it refuses and the array API has a rule, -- where no one has
PROMOTED = """
    b1  u1  i1  i2  i4  i8  u2  u4  u8  f2 bf f4 f8 c8  cx
b1  b1  u1  i1  i2  i4  i8  u2* u4* u8* f2 bf f4 f8 c8  cx
u1  u1  u1  i2  i2  i4  i8  u2* u4* u8* f2 bf f4 f8 c8  cx
i1  i1  i2  i1  i2  i4  i8  i4* i8* --  f2 bf f4 f8 c8  cx
i2  i2  i2  i2  i2  i4  i8  i4* i8* --  f2 bf f4 f8 c8  cx
i4  i4  i4  i4  i4  i4  i8  i4* i8* --  f2 bf f4 f8 c8  cx
i8  i8  i8  i8  i8  i8  i8  i8* i8* --  f2 bf f4 f8 c8  cx
u2  u2* u2* i4* i4* i4* i8* u2  u4* u8* f2 bf f4 f8 c8* cx*
u4  u4* u4* i8* i8* i8* i8* u4* u4  u8* f2 bf f4 f8 c8* cx*
u8  u8* u8* --  --  --  --  u8* u8* u8  f2 bf f4 f8 c8* cx*
f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f2 f4 f4 f8 c8  cx
bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  f4 bf f4 f8 c8  cx
f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4 f4 f4 f8 c8  cx
f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8 f8 f8 f8 cx  cx
c8  c8  c8  c8  c8  c8  c8  c8* c8* c8* c8 c8 c8 cx c8  cx
cx  cx  cx  cx  cx  cx  cx  cx* cx* cx* cx cx cx cx cx  cx
"""
_SHORT = {
    **{"b1": "bool", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64"},
    **{"i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64"},
    **{"f2": "float16", "bf": "bfloat16", "f4": "float32", "f8": "float64", "c8": "complex64", "cx": "complex128"},
}


def _table():
    header, *rows = (line.split() for line in PROMOTED.strip().splitlines())
    return {(row[0], column): result for row in rows for column, result in zip(header, row[1:], strict=True)}


@pytest.mark.parametrize(("pair", "result"), _table().items(), ids="-".join)
def test_promotion_table(pair, result):
    first, second = (dtypes.of_name(_SHORT[name]) for name in pair)
    if result == "--":
        with pytest.raises(RuntimeError, match="Promotion"):
            dtypes.promote_types(first, second)
    else:
        assert dtypes.promote_types(first, second) is dtypes.of_name(_SHORT[result.removesuffix("*")])


@needs_oracle
def test_promotion_table_is_pytorchs():
    torch = pytest.importorskip("torch")
    for (a, b), result in _table().items():
        try:
            said = str(torch.promote_types(getattr(torch, _SHORT[a]), getattr(torch, _SHORT[b])))
        except RuntimeError:
            said = "torch.--"
        assert said == f"torch.{'--' if '*' in result else _SHORT.get(result, result)}"


_KINDS = ("dimensions", "zero-dimensional", "number")
_OPERANDS = [
    (d, kind)
    for d, kind in product(_SHORT.values(), _KINDS)
    if d not in ("uint16", "uint32", "uint64") and (kind != "number" or d in ("bool", "int64", "float32", "complex64"))
]
_NUMBERS = {"bool": True, "int64": 2, "float32": 2.5, "complex64": 1j}


@needs_oracle
def test_result_type_is_pytorchs():
    torch = pytest.importorskip("torch")

    def operands(name, kind):
        if kind == "number":
            return _NUMBERS[name], _NUMBERS[name]
        shape = (1,) if kind == "dimensions" else ()
        return to_tensor(np.ones(shape, dtypes.of_name(name).numpy)), torch.ones(shape, dtype=getattr(torch, name))

    for first, second in product(_OPERANDS, _OPERANDS):
        pairs = operands(*first), operands(*second)
        ours, theirs = result_type(*(p[0] for p in pairs)), torch.result_type(*(p[1] for p in pairs))
        if theirs is torch.complex32:
            continue  # which corefw does not have
        assert repr(ours) == repr(theirs), f"{first} with {second}: {ours}, PyTorch says {theirs}"


@given(st.lists(st.sampled_from([d for d in dtypes.ALL if d is not dtypes.uint64]), min_size=3, max_size=3))
def test_promotion_is_a_join_up_to_half_types(three):
    """Promotion does not depend on the order of two, nor (except between the two half types) on grouping."""
    a, b, c = three
    assert dtypes.promote_types(a, b) is dtypes.promote_types(b, a)
    assert dtypes.promote_types(a, a) is a
    join = dtypes.promote_types
    assert join(join(a, b), c) is join(a, join(b, c))


# -- broadcasting -----------------------------------------------------------------------------------------------------
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)


@given(st.lists(SHAPES, min_size=1, max_size=4))
def test_broadcast_shapes(several):
    try:
        expected = np.broadcast_shapes(*several)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match"):
            shapes.broadcast(*several)
    else:
        assert shapes.broadcast(*several) == expected


@given(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3))
def test_arithmetic_broadcasts_and_gradients_sum(broadcastable):
    first, second = broadcastable.input_shapes
    a, b = (corefw.ones(shape, dtype=corefw.float64).requires_grad_() for shape in (first, second))
    result = a + b * 2
    assert tuple(result.shape) == broadcastable.result_shape
    result.sum().backward()
    count = int(np.prod(broadcastable.result_shape))
    for leaf, factor in ((a, 1), (b, 2)):
        assert leaf.grad.shape == leaf.shape
        if leaf.numel():
            np.testing.assert_array_equal(host(leaf.grad), np.full(leaf.shape, factor * count / leaf.numel()))


# -- geometry ---------------------------------------------------------------------------------------------------------
@given(SHAPES)
def test_contiguous_strides(shape):
    assume(0 not in shape)
    array = np.empty(shape, np.int8)
    assert shapes.contiguous_strides(shape) == array.strides


@given(st.data(), SHAPES)
def test_view_strides_are_numpys(data, shape):
    """A view exists exactly where NumPy reshapes without a copy, and shows the same elements."""
    assume(0 not in shape)
    order = data.draw(st.permutations(range(len(shape))))
    array = np.arange(int(np.prod(shape)), dtype=np.int8).reshape(shape).transpose(order)
    sizes = data.draw(st.sampled_from(sorted(_factorisations(array.size))))
    strides = shapes.view_strides(array.shape, array.strides, sizes)
    reshaped = array.reshape(sizes)
    if strides is None:
        assert not np.shares_memory(reshaped, array)
    else:
        np.testing.assert_array_equal(np.lib.stride_tricks.as_strided(array, sizes, strides), reshaped)


def _factorisations(size: int, longest: int = 4) -> set[tuple[int, ...]]:
    """The shapes of up to `longest` dimensions with `size` elements."""
    found = {(size,), (1, size), (size, 1)}
    if longest > 1:
        found |= {
            (n, *rest) for n in range(1, size + 1) if size % n == 0 for rest in _factorisations(size // n, longest - 1)
        }
    return {shape for shape in found if len(shape) <= 4}


@given(SHAPES, st.lists(st.integers(-1, 6), max_size=3))
def test_infer_size(shape, sizes):
    array = np.empty(shape, np.int8)
    try:
        expected = array.reshape(sizes).shape
    except ValueError:
        with pytest.raises(RuntimeError):
            shapes.infer_size(tuple(sizes), array.size)
    else:
        assert shapes.infer_size(tuple(sizes), array.size) == expected


# -- views of tensors -------------------------------------------------------------------------------------------------
VIEWS = ("transpose", "permute", "unsqueeze", "expand", "slice", "select", "flatten", "squeeze")


def _views(draw, ndim: int, shape):
    """One random view op: its function on a tensor and on an array."""
    dims = st.integers(0, max(ndim - 1, 0))
    choice = draw(
        st.sampled_from(("transpose", "permute", "unsqueeze", "expand", "slice", "select", "flatten", "squeeze"))
    )
    if choice == "unsqueeze" or ndim == 0:
        at = draw(st.integers(0, ndim))
        return lambda t: t.unsqueeze(at), lambda a: np.expand_dims(a, at)
    if choice == "transpose":
        i, j = draw(dims), draw(dims)
        return lambda t: t.transpose(i, j), lambda a: a.swapaxes(i, j)
    if choice == "permute":
        order = draw(st.permutations(range(ndim)))
        return lambda t: t.permute(order), lambda a: a.transpose(order)
    if choice == "expand":
        wider = (2, *(3 if n == 1 else n for n in shape))
        return lambda t: t.expand(wider), lambda a: np.broadcast_to(a, wider)
    if choice == "slice":
        start, stop, step = draw(st.integers(-3, 3)), draw(st.integers(-3, 4)), draw(st.integers(1, 2))
        return lambda t: t[start:stop:step], lambda a: a[start:stop:step]
    if choice == "select" and shape[-1]:
        at = draw(st.integers(-shape[-1], shape[-1] - 1))
        return lambda t: t[..., at], lambda a: a[..., at]
    if choice == "squeeze":
        return lambda t: t.squeeze(), lambda a: a.squeeze()
    return lambda t: t.reshape(-1), lambda a: a.reshape(-1)


@given(st.data(), arrays.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=3))
def test_chains_of_views(data, shape):
    """Any chain of views shows what NumPy's shows; a tensor that shares the base's memory sees a change of it; the
    gradient of the base counts how often each element is shown."""
    array = np.arange(float(np.prod(shape))).reshape(shape)
    base = corefw.tensor(array, dtype=corefw.float64)
    leaf = base.clone().requires_grad_()
    tensor, shown, viewed = base, leaf, array
    for _ in range(data.draw(st.integers(1, 4))):
        of_tensor, of_array = _views(data.draw, viewed.ndim, viewed.shape)
        tensor, shown, viewed = of_tensor(tensor), of_tensor(shown), of_array(viewed)
        assert tuple(tensor.shape) == viewed.shape
        np.testing.assert_array_equal(host(tensor), viewed)
    if viewed.size:
        shown.sum().backward()
        counts = np.bincount(viewed.ravel().astype(int), minlength=array.size).reshape(shape)
        np.testing.assert_array_equal(host(leaf.grad), counts)
    if np.shares_memory(host(tensor), host(base)):
        base.mul_(-1)
        np.testing.assert_array_equal(host(tensor), -viewed)


@given(st.data(), arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
def test_indexing(data, shape):
    """Basic and advanced indices, mixed, read and write as NumPy's."""
    array = np.arange(float(np.prod(shape))).reshape(shape)
    index = data.draw(
        arrays.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True).filter(_has_positive_steps)
        | arrays.integer_array_indices(shape, result_shape=arrays.array_shapes(max_dims=2, max_side=3))
    )
    tensor = corefw.tensor(array)
    index_of_tensor = _translated(index)
    np.testing.assert_array_equal(host(tensor[index_of_tensor]), array[index])
    written, expected = corefw.tensor(array), array.copy()
    written[index_of_tensor] = -1.0
    expected[index] = -1.0
    np.testing.assert_array_equal(host(written), expected)


def _has_positive_steps(index) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(not isinstance(i, slice) or i.step is None or i.step > 0 for i in items)


def _translated(index):
    """NumPy's index with tensors for its arrays."""
    if isinstance(index, tuple):
        return tuple(corefw.tensor(i) if isinstance(i, np.ndarray) else i for i in index)
    return corefw.tensor(index) if isinstance(index, np.ndarray) else index


@given(st.data(), arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
def test_boolean_masks(data, shape):
    array = np.arange(float(np.prod(shape))).reshape(shape)
    mask = data.draw(arrays.arrays(np.bool_, shape))
    np.testing.assert_array_equal(host(corefw.tensor(array)[corefw.tensor(mask)]), array[mask])


@given(st.data(), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3), st.booleans())
def test_reductions_over_any_dimensions(data, shape, keepdim):
    array = np.arange(float(np.prod(shape))).reshape(shape)
    dims = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1)) if shape else []
    expected = array.sum(axis=tuple(dims) if dims else None, keepdims=keepdim)
    result = corefw.sum(corefw.tensor(array), dim=dims, keepdim=keepdim) if dims else corefw.tensor(array).sum()
    np.testing.assert_allclose(host(result), expected)
