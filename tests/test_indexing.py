"""Reading and writing parts of tensors: what keys mean, and what is refused."""

from contextlib import nullcontext
from operator import setitem

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corefw as torch

try:
    import torch as oracle
except ImportError:
    oracle = None

SHAPES = ((), (4,), (2, 3), (3, 1, 2), (2, 0, 3), (2, 3, 2, 2))
BACKENDS = [backend.name for backend in torch.backends() if backend.usable and "cpu" in backend.devices]
quick = settings(max_examples=150, deadline=None)


# -- keys -------------------------------------------------------------------------------------------------------------
@st.composite
def keys(draw, mixed: bool):
    """A shape and a key for it: tuples of ints, slices, None, Ellipsis, bools, index arrays and masks. Unless `mixed`,
    there are no bools, and no ints or index arrays without dimensions beside others, where NumPy and PyTorch differ; if
    `mixed`, no slices with a negative step, which PyTorch refuses."""
    shape = draw(st.sampled_from(SHAPES))
    advanced = draw(st.booleans())
    common = draw(st.sampled_from((*([()] if mixed else []), (1,), (2,), (3,), (2, 3))))
    kinds = [
        "slice",
        "none",
        *(["array", "mask"] if advanced else []),
        *(["int"] if mixed or not advanced else []),
        *(["bool"] if mixed else []),
    ]
    before, after, at = [], [], len(shape)
    for entries, step in ((before, 1), (after, -1)):
        left = at
        for _ in range(draw(st.integers(0, left + 1))):
            kind = draw(st.sampled_from(kinds))
            size = 0 if not at else shape[len(shape) - at] if step == 1 else None
            if kind == "none":
                entries.append(None)
            elif kind == "bool":
                entries.append(draw(st.booleans()))
            elif at == 0 or step == -1:
                break  # only entries that take no dimension follow the Ellipsis
            elif kind == "slice":
                bounds = st.none() | st.integers(-size - 1, size + 1)
                entries.append(
                    slice(
                        draw(bounds), draw(bounds), draw(st.sampled_from((None, 1, 2, 3, *(() if mixed else (-1, -2)))))
                    )
                )
                at -= 1
            elif kind == "mask":
                dims = draw(st.integers(1, at))
                whole = shape[len(shape) - at : len(shape) - at + dims]
                entries.append(
                    np.array(draw(st.lists(st.booleans(), min_size=int(np.prod(whole)), max_size=int(np.prod(whole)))))
                    .astype(bool)
                    .reshape(whole)
                )
                at -= dims
                kinds = [k for k in kinds if k not in ("array", "mask")]  # they would have to broadcast
            elif size == 0:
                break
            elif kind == "int":
                entries.append(draw(st.integers(-size, size - 1)))
                at -= 1
            else:
                of = draw(st.sampled_from((common, common[1:] or (1,))))
                count = int(np.prod(of))
                flat = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
                entries.append(np.array(flat, np.int64).reshape(of))
                at -= 1
                kinds = [k for k in kinds if k != "mask"]
    return shape, (*before, ..., *after) if after or draw(st.booleans()) else tuple(before)


def in_library(key, library):
    """The key with index arrays as tensors of `library`."""
    return tuple(
        library.tensor(item.tolist(), dtype=library.bool if item.dtype == bool else library.int64).reshape(item.shape)
        if isinstance(item, np.ndarray)
        else item
        for item in key
    )


def counted(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


@quick
@given(keys(mixed=False), st.sampled_from(("tensors", "arrays")))
def test_getitem_means_what_numpy_means(shape_and_key, form):
    shape, key = shape_and_key
    array = counted(shape)
    found = torch.from_numpy(array)[in_library(key, torch) if form == "tensors" else key]
    np.testing.assert_array_equal(found.numpy(), array[key])
    basic = all(item is None or item is ... or item.__class__ in (int, slice) for item in key)
    if basic and array[key].size:
        backward = any(item.__class__ is slice and (item.step or 1) < 0 for item in key)
        assert np.shares_memory(found.numpy(), array) is not backward


@quick
@given(keys(mixed=False), st.data())
def test_setitem_means_what_numpy_means(shape_and_key, data):
    shape, key = shape_and_key
    array = counted(shape)
    wanted = array[key].shape
    given_shape = wanted[data.draw(st.integers(0, len(wanted))) :]
    value = np.asarray(-1 - counted(tuple(1 if data.draw(st.booleans()) else n for n in given_shape)))
    changed = torch.tensor(array)
    changed[in_library(key, torch)] = torch.from_numpy(value)
    array[key] = value
    np.testing.assert_array_equal(changed.numpy(), array)


@pytest.mark.skipif(oracle is None, reason="PyTorch is not installed")
@quick
@given(keys(mixed=True), st.booleans())
def test_keys_mean_what_pytorch_means(shape_and_key, assign):
    shape, key = shape_and_key

    def result(library):
        x = library.tensor(counted(shape).tolist()).reshape(shape)
        if assign:
            x[in_library(key, library)] = -1.5
            return x
        return x[in_library(key, library)]

    try:
        expected = result(oracle)
    except IndexError:  # index tensors that do not broadcast
        with pytest.raises(IndexError):
            result(torch)
        return
    assert tuple(result(torch).shape) == tuple(expected.shape)
    np.testing.assert_array_equal(result(torch).numpy(), expected.numpy())


X = counted((2, 3, 4))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ([0, 1], X[[0, 1]]),
        ([[0, 1], [1, 0]], X[[0, 1], [1, 0]]),  # a list of lists is a tuple
        (([[0, 1], [1, 0]],), X[np.array([[0, 1], [1, 0]])]),
        ([None, 0], X[None, 0]),
        ([], X[:0]),
        ([True, False], X[:1]),
        (range(2), X),
        (np.array([1, 0], np.int16), X[[1, 0]]),
        (np.int64(1), X[1]),
        (torch.tensor(1), X[1]),
        (torch.tensor(True), X[None]),
        (slice(torch.tensor(1), None), X[1:]),
        ((0, slice(None), torch.tensor([0, 1])), X[0][:, [0, 1]]),  # the int selects first
        ((slice(None), torch.tensor(0), torch.tensor([0, 1])), X[:, 0, :2]),
        (torch.tensor([1, 0], dtype=torch.int32), X[[1, 0]]),
    ],
)
def test_forms_of_keys(key, expected):
    np.testing.assert_array_equal(torch.tensor(X)[key].numpy(), expected)


def test_slices_with_a_negative_step_have_gradients():
    x = torch.arange(4.0, requires_grad=True)
    (x[::-2] * torch.tensor([10.0, 20.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 0.0, 10.0]
    y = x.detach().clone().requires_grad_()
    z = y * 1
    z[::-2] = z[:2]  # read before it is written
    assert z.tolist() == [0.0, 1.0, 2.0, 0.0]
    (z * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert y.grad.tolist() == [5.0, 2.0, 3.0, 0.0]
    with pytest.raises(RuntimeError, match="leaf"):
        y[::-1] = 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
@pytest.mark.parametrize(("shape", "mask"), [((3,), (0,)), ((3, 2), (3, 0)), ((3000,), (0,)), ((3000, 2), (2999,))])
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_masks_of_another_shape_are_refused(backend, dtype, shape, mask):
    x, mask = torch.zeros(shape), torch.zeros(mask, dtype=dtype)
    with torch.backend(backend):
        for use in (lambda: x[mask], lambda: x.index_put_((mask,), torch.ones(())), lambda: setitem(x, mask, 1)):
            with pytest.raises(IndexError, match="shape of the mask"):
                use()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [5, 3000])
def test_values_for_the_elements_of_a_mask(backend, size):
    x = torch.zeros(size)
    mask = torch.arange(size) > size - 3
    with torch.backend(backend):
        x.index_put_((mask,), torch.tensor([[3.0, 4.0]]))
        for wrong in (torch.ones(2, 2), torch.ones(2, 0), torch.ones(3)):
            with pytest.raises(RuntimeError, match=r"broadcast|cannot assign"):
                x[mask] = wrong
    assert x.tolist() == [0.0] * (size - 2) + [3.0, 4.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_for_no_element_must_fit(backend):
    x, nowhere = torch.zeros(2, 2), torch.zeros(0, dtype=torch.int64)
    with torch.backend(backend):
        x[nowhere, nowhere] = torch.ones(1, 0)
        with pytest.raises(RuntimeError, match=r"shape \[2, 0\] cannot be broadcast to indexing result of shape \[0\]"):
            x[nowhere, nowhere] = torch.ones(2, 0)


def test_uint8_tensors_are_masks():
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.tensor([1, 2, 3])[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [1, 3]


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, 0, -5), IndexError, "index -5 is out of bounds for dimension 2 with size 4"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        ((0, 0, 0, torch.tensor([0])), IndexError, "too many indices for tensor of dimension 3"),
        (1.0, IndexError, "only integers, slices .* are valid indices"),
        ("a", IndexError, "only integers, slices .* are valid indices"),
        (slice(None, None, 0), ValueError, "step"),
        (torch.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (torch.tensor([-3]), IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ([0.5], IndexError, "must be long, int, byte or bool"),
        (torch.tensor([1.0]), IndexError, "must be long, int, byte or bool"),
        (torch.tensor([1], dtype=torch.int8), IndexError, "must be long, int, byte or bool"),
        (
            torch.tensor([True, False, True]),
            IndexError,
            r"The shape of the mask \[3\] at index 0 does not match .* \[2, 3, 4\] at index 0",
        ),
        (
            (torch.tensor([0, 1]), torch.tensor([0, 1, 2])),
            IndexError,
            r"could not be broadcast together with shapes \[2\], \[3\]",
        ),
        ((..., 0, ...), IndexError, "single ellipsis"),
    ],
)
def test_keys_that_are_refused(key, error, text):
    x = torch.tensor(X)
    with pytest.raises(error, match=text):
        x[key]
    with pytest.raises(error, match=text):
        x[key] = 0
    assert (x.numpy() == X).all()


def test_integer_index_of_a_scalar_is_refused():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1.0)[0]


@pytest.mark.parametrize(
    ("key", "value", "error", "text"),
    [
        (0, torch.ones(5), RuntimeError, r"\[5\]"),
        (
            [0, 1],
            torch.ones(5),
            RuntimeError,
            r"value tensor of shape \[5\] cannot be broadcast to indexing result of shape \[2, 3, 4\]",
        ),
        (torch.tensor(X) > 3, torch.ones(19), RuntimeError, "19"),
        (0, "a", TypeError, "can't assign a str to a torch.FloatTensor"),
        (0, [1.0], TypeError, "can't assign a list to a torch.FloatTensor"),
        ([0], torch.ones(1, dtype=torch.int32), RuntimeError, "same dtype"),
        (0, 1j, RuntimeError, "cannot be converted"),
        (torch.tensor(X) > 3, torch.tensor(1j, requires_grad=True), RuntimeError, "cannot be converted"),
    ],
)
def test_values_that_are_refused(key, value, error, text):
    with pytest.raises(error, match=text):
        torch.tensor(X)[key] = value


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: x.gather(1, i - 1), IndexError, "index -1 is out of bounds for dimension 1 with size 3"),
        (lambda x, i: x.gather(1, i + 3), RuntimeError, "index 3 is out of bounds for dimension 1 with size 3"),
        (lambda x, i: x.gather(1, i[0]), RuntimeError, "same number of dimensions as input tensor"),
        (
            lambda x, i: x.gather(1, i.expand(3, 1)),
            RuntimeError,
            r"expected index \[3, 1\] to be no larger than self \[2, 3\] apart from dimension 1",
        ),
        (lambda x, i: x.gather(1, i.float()), RuntimeError, "Expected dtype int32/int64 for index"),
        (lambda x, i: x.gather(5, i), IndexError, "Dimension out of range"),
        (lambda x, i: x.scatter(1, i + 3, 1), RuntimeError, "index 3 is out of bounds"),
        (lambda x, i: x.scatter(1, i, x.double()), RuntimeError, "same dtype"),
        (lambda x, i: x.scatter(1, i, 1, reduce="mul"), RuntimeError, "must be either add or multiply"),
        (lambda x, i: x.scatter(1, i, "a"), TypeError, "must be Tensor or Number"),
        (lambda x, i: x.scatter_add(1, i.expand(1, 2), x[:1, :1]), RuntimeError, r"no larger size than src \[1, 1\]"),
        (
            lambda x, i: x.scatter_reduce(1, i, x, "add"),
            RuntimeError,
            "must be either sum, prod, mean, amax or amin, got add",
        ),
        (lambda x, i: x.index_select(1, i), IndexError, "supposed to be a vector"),
        (lambda x, i: x.index_select(1, i[0] - 1), IndexError, "index -1 is out of bounds"),
        (
            lambda x, i: x.index_add(0, i[0], x),
            RuntimeError,
            r"Number of indices \(1\) should be equal to source.size\(dim\): \(2\)",
        ),
        (
            lambda x, i: x.index_add(0, i[0], x[:1, :2]),
            RuntimeError,
            "source tensor shape must match self tensor shape",
        ),
        (lambda x, i: x.index_reduce(0, i[0], x[:1], "sum"), RuntimeError, "one of prod, mean, amax or amin"),
        (lambda x, i: x.take(i + 6), IndexError, "tried to access index 6 on a tensor of 6 elements"),
        (lambda x, i: x.put(i, x), RuntimeError, "same number of elements"),
        (lambda x, i: x.masked_fill(i > 0, x[0]), RuntimeError, "0-dimensional value tensor"),
        (lambda x, i: x.masked_fill(i, 0), RuntimeError, "boolean mask"),
        (
            lambda x, i: x[0].masked_fill_(x > 0, 0),
            RuntimeError,
            r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]",
        ),
        (
            lambda x, i: x.masked_scatter(x > -1, x[0]),
            RuntimeError,
            "Number of elements of source < number of ones in mask",
        ),
        (lambda x, i: x.fill_(x), RuntimeError, "0-dimension value tensor"),
        (lambda x, i: torch.where(i, x, x), RuntimeError, "boolean"),
        (lambda x, i: torch.where(x > 0, x), TypeError, "condition"),
        (lambda x, i: x.take_along_dim(i[0], 1), RuntimeError, "same number of dimensions"),
        (lambda x, i: torch.tril_indices(-1, 2), RuntimeError, "row must be non-negative"),
    ],
)
def test_arguments_that_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.tensor(X[0, :2, :3]), torch.zeros(1, 1, dtype=torch.int64))


# -- forms of calls ---------------------------------------------------------------------------------------------------
def test_where_takes_numbers():
    condition = torch.tensor([True, False])
    assert torch.where(condition, 1, 2).dtype is torch.int64
    assert torch.where(condition, 1.0, 2).dtype is torch.float32
    assert torch.where(condition, 0.1, torch.zeros(2, dtype=torch.float64)).tolist() == [0.1, 0.0]
    assert torch.where(condition, torch.zeros(2, dtype=torch.float16), 2.0).dtype is torch.float16
    assert torch.where(condition, torch.tensor([1, 2]), 0.5).tolist() == [1.0, 0.5]
    out = torch.zeros(2)
    assert torch.where(condition, torch.ones(2), torch.zeros(2), out=out) is out and out.tolist() == [1, 0]


def test_where_of_a_condition_alone_gives_positions():
    rows, columns = torch.where(torch.tensor([[0, 1], [2, 0]]))
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]
    assert [p.tolist() for p in torch.nonzero(torch.tensor(3.0), as_tuple=True)] == [[0]]


def test_fill_values_take_the_dtype_of_what_they_fill():
    assert torch.arange(3).fill_(2.7).tolist() == [2, 2, 2]
    assert torch.arange(3).masked_fill(torch.tensor([True, False, True]), 2.7).tolist() == [2, 1, 2]
    assert (
        torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, False]), torch.tensor(2.0)).dtype
        is torch.float16
    )
    x = torch.arange(3)
    x[x > 0] = 2.7
    assert x.tolist() == [0, 2, 2]


def test_copy_converts_and_broadcasts():
    x = torch.zeros(2, 2, dtype=torch.int64)
    assert x.copy_(torch.tensor([1.7, 2.9])) is x and x.tolist() == [[1, 2], [1, 2]]
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        torch.zeros(1).copy_(torch.tensor([1j]))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_negative_numbers_wrap_in_unsigned_types(backend, dtype):
    """All of them, however many are converted at once."""
    with torch.backend(backend):
        for source in (torch.float32, torch.float64, torch.int64):
            found = torch.full((19,), -4, dtype=source).to(dtype)
            assert set(found.tolist()) == {2 ** (8 * dtype.itemsize) - 4}, source


def test_scatter_takes_numbers_and_reductions():
    x, index = torch.ones(3), torch.tensor([0, 2, 2])
    assert x.scatter(0, index, 5).tolist() == x.scatter(0, index, value=5).tolist() == [5, 1, 5]
    assert x.scatter(0, index, 5, reduce="add").tolist() == [6, 1, 11]
    assert x.scatter_(0, index, 5, reduce="multiply") is x and x.tolist() == [5, 1, 25]
    assert x.scatter_(0, index, value=0) is x and x.tolist() == [0, 1, 0]


def test_values_may_have_dimensions_of_size_one_in_front():
    x = torch.zeros(2, 3)
    x[0] = torch.ones(1, 1, 3)
    x[torch.tensor([1])] = torch.full((1, 1, 1, 3), 2.0)
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_in_place_forms_write_where_the_memory_is_not_contiguous():
    base = np.zeros((4, 6), np.float16)
    x = torch.from_numpy(base)[::2, ::3]
    x.index_add_(0, torch.tensor([1, 1]), torch.ones(2, 2, dtype=torch.float16))
    x.index_put_((torch.tensor([0]), torch.tensor([1])), torch.tensor(3.0, dtype=torch.float16), accumulate=True)
    x.put_(torch.tensor([0, 0]), torch.ones(2, dtype=torch.float16), accumulate=True)
    x.masked_fill_(x == 3, 4)
    assert base[::2, ::3].tolist() == [[2, 4], [2, 2]] and base.sum() == 10


def test_half_sums_do_not_lose_what_is_small():
    x = torch.zeros(1, dtype=torch.float16)
    x.index_add_(0, torch.zeros(8192, dtype=torch.int64), torch.full((8192,), 0.5, dtype=torch.float16))
    assert x.item() == 4096


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_wide_rows_at_repeated_positions(threads, set_threads):
    """Threads share large rows by where these lie: no term is lost, and the last of equal positions stays."""
    rng = np.random.default_rng(6)
    set_threads(threads)
    table, source = (rng.integers(-9, 9, (n, 700)).astype("float32") for n in (50, 400))
    at = rng.integers(0, 50, 400)
    added, copied = table.copy(), table.copy()
    np.add.at(added, at, source)
    for i, row in zip(at, source):
        copied[i] = row
    inputs = torch.tensor(table), 0, torch.tensor(at), torch.tensor(source)
    np.testing.assert_array_equal(torch.index_add(*inputs).numpy(), added)
    np.testing.assert_array_equal(torch.index_copy(*inputs).numpy(), copied)
    grid = torch.tensor(table).view(5, 10, 700).transpose(0, 1)
    both = torch.tensor(at % 10), torch.tensor(at // 10)
    expected = grid.numpy().copy()
    np.add.at(expected, (at % 10, at // 10), source)
    grid.index_put_(both, torch.tensor(source), accumulate=True)
    np.testing.assert_array_equal(grid.numpy(), expected)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_copy_of_more_dimensions_is_refused(shape, backend):
    """Leading dimensions of size 1 too, in-place forms that end with a copy among them; an assignment drops them."""
    x = torch.zeros(shape)
    with torch.backend(backend) if backend else nullcontext():
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            x.copy_(torch.ones(1, *shape))
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            torch.zeros(()).addr_(torch.ones(1), torch.ones(1))
        x[...] = torch.ones(1, *shape)
    assert x.all()


@pytest.mark.parametrize("shape", [(), (0,), (3,)])
@pytest.mark.parametrize("backend", ["numpy", None])
def test_values_that_are_added_may_have_more_dimensions_of_size_1(shape, backend):
    with torch.backend(backend) if backend else nullcontext():
        added = torch.ones(shape).index_put((), torch.ones((1, *shape)), accumulate=True)
    assert added.tolist() == torch.full(shape, 2.0).tolist()


def test_triangles_have_their_shape_on_meta():
    for function in (torch.tril_indices, torch.triu_indices):
        real, meta = (function(3, 5, 1, dtype=torch.int32, device=device) for device in ("cpu", "meta"))
        assert meta.is_meta and (meta.shape, meta.dtype) == (real.shape, real.dtype)
