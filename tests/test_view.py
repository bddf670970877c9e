"""Views: geometry against PyTorch's arithmetic on strides, shared memory, overloads and errors."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corefw as torch
from corefw.testing import targets

oracle = importlib.import_module("torch") if importlib.util.find_spec("torch") else None

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@st.composite
def strided_arrays(draw):
    """A NumPy array of any dense, transposed or strided memory order."""
    shape = draw(SHAPES)
    steps = [draw(st.sampled_from((1, 2))) for _ in shape]
    memory = np.arange(np.prod([n * s for n, s in zip(shape, steps)], dtype=int), dtype=np.float32)
    array = memory.reshape([n * s for n, s in zip(shape, steps)])[(*(slice(None, None, s) for s in steps), ...)]
    return array.transpose(draw(st.permutations(range(len(shape)))))


def factorizations(draw, numel):
    """Sizes with this product, perhaps one of them as -1."""
    sizes = []
    while numel > 1 and len(sizes) < 4:
        n = draw(st.sampled_from([d for d in range(1, numel + 1) if numel % d == 0]))
        sizes.append(n)
        numel //= n
    sizes.append(numel)
    sizes.insert(draw(st.integers(0, len(sizes))), 1)
    if draw(st.booleans()) and numel:
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return tuple(sizes)


def meaningful(tensor):
    """The strides of dimensions with more than one element; those of others are arbitrary."""
    if 0 in tensor.shape:
        return []
    return [step for n, step in zip(tensor.shape, tensor.stride()) if n > 1]


@given(strided_arrays(), st.data())
def test_view_and_reshape_share_memory_where_strides_allow_it(array, data):
    sizes = factorizations(data.draw, array.size)
    x = torch.from_numpy(array)
    reshaped = x.reshape(sizes)
    np.testing.assert_array_equal(reshaped.numpy(), array.reshape(sizes))
    try:
        viewed = x.view(sizes)
    except RuntimeError as error:
        assert "view size" in str(error)
        assert not np.shares_memory(reshaped.numpy(), array)
        viewed = None
    else:
        np.testing.assert_array_equal(viewed.numpy(), array.reshape(sizes))
        assert array.size == 0 or np.shares_memory(viewed.numpy(), array)
        assert viewed._base is x or viewed._base is x._base
    if oracle is not None:
        theirs = oracle.from_numpy(array)
        assert meaningful(reshaped) == meaningful(theirs.reshape(sizes))
        if viewed is None:
            with pytest.raises(RuntimeError):
                theirs.view(sizes)
        else:
            assert meaningful(viewed) == meaningful(theirs.view(sizes))


@given(strided_arrays(), st.data())
def test_geometry_of_other_views(array, data):
    x = torch.from_numpy(array)
    ndim = array.ndim
    views = [(lambda t, d=d: t.unsqueeze(d)) for d in range(-ndim - 1, ndim + 1)]
    views += [lambda t: t.squeeze(), lambda t: t.expand(2, *t.shape), lambda t: t.clone(), lambda t: t.flatten()]
    for d in range(ndim):
        views += [lambda t, d=d: t.squeeze(d), lambda t, d=d: t.transpose(d, 0), lambda t, d=d: t.unbind(d)[-1:]]
        views += [lambda t, d=d: t.narrow(d, 0, t.shape[d] // 2), lambda t, d=d: t.split(2, d)]
        if array.shape[d]:
            views += [lambda t, d=d: t.select(d, -1), lambda t, d=d: t.unfold(d, 1, 2)]
    if ndim >= 2:
        views += [lambda t: t.diagonal(), lambda t: t.diagonal(-1, -1, 0), lambda t: t.permute(*range(ndim)[::-1])]
    view = data.draw(st.sampled_from(views))
    mine = view(x)
    if oracle is None:
        return
    theirs = view(oracle.from_numpy(array))
    for m, t in zip(*((r if isinstance(r, tuple) else (r,)) for r in (mine, theirs)), strict=True):
        np.testing.assert_array_equal(m.numpy(), t.numpy())
        assert tuple(m.shape) == tuple(t.shape)
        assert meaningful(m) == meaningful(t)
        assert m.is_contiguous() == t.is_contiguous()


@given(strided_arrays(), st.data())
def test_as_strided(array, data):
    x = torch.from_numpy(np.ascontiguousarray(array))
    size = data.draw(st.lists(st.integers(0, 3), max_size=3))
    stride = [data.draw(st.integers(0, 3)) for _ in size]
    reach = sum((n - 1) * s for n, s in zip(size, stride))
    if 0 in size or reach >= array.size:
        return
    offset = data.draw(st.integers(0, array.size - 1 - reach))
    found = x.as_strided(size, stride, offset)
    positions = np.indices(size).T.dot(np.array(stride, int)).T + offset if size else np.array(offset)
    np.testing.assert_array_equal(found.numpy(), x.numpy().reshape(-1)[positions])
    assert found.storage_offset() == offset


@pytest.mark.parametrize(
    "size, stride, offset, shape",
    [((2, 2), (1, 2), 0, (4,)), ((3, 2), (1, 1), 1, (2, 3)), ((2,), (0,), 2, (3,)), ((2, 2), (2, 1), None, (2, 2))],
)
def test_gradient_of_as_strided(size, stride, offset, shape):
    """Overlapping elements of the result add up; elements of the input that share memory divide the sum."""
    x = torch.arange(float(np.prod(shape))).reshape(shape).to(torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: (x * 1).as_strided(size, stride, offset).pow(2), (x,))
    assert torch.autograd.gradgradcheck(lambda x: (x * 1).as_strided(size, stride, offset).pow(2), (x,))


def test_gradient_of_as_strided_of_an_expanded_input():
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    x.expand(3).as_strided((2,), (0,)).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_parts_share_one_node():
    x = torch.ones(4, requires_grad=True)
    a, b = (x * 2).split(2)
    assert a.grad_fn is b.grad_fn or a.grad_fn.next_functions == b.grad_fn.next_functions
    (a * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 0.0, 0.0]


def test_view_as_another_dtype():
    x = torch.tensor([1.0, 2.0])
    assert x.view(torch.int32).tolist() == [1065353216, 1073741824]
    assert x.view(torch.uint8).shape == (8,)
    assert torch.zeros(2, 4, dtype=torch.int16).view(dtype=torch.float64).shape == (2, 1)
    x.view(torch.int32)[0] = 0
    assert x.tolist() == [0.0, 2.0]
    assert x._version == 1


@pytest.mark.parametrize(
    "error, message, call",
    [
        (RuntimeError, r"shape '\[4\]' is invalid for input of size 6", lambda x: x.view(4)),
        (RuntimeError, "only one dimension can be inferred", lambda x: x.view(-1, -1)),
        (RuntimeError, r"invalid shape dimension -2", lambda x: x.view(-2)),
        (RuntimeError, "Use .reshape", lambda x: x.t().view(6)),
        (RuntimeError, "invalid for input of size 6", lambda x: x.t().reshape(4)),
        (RuntimeError, "must match the existing size", lambda x: x.expand(2, 4)),
        (RuntimeError, "must be greater or equal", lambda x: x.expand(3)),
        (RuntimeError, "isn't allowed in a leading", lambda x: x.expand(-1, 2, 3)),
        (IndexError, "Dimension out of range", lambda x: x.transpose(0, 2)),
        (IndexError, "Dimension out of range", lambda x: x.unsqueeze(3)),
        (RuntimeError, "duplicate dims", lambda x: x.permute(0, 0)),
        (RuntimeError, "number of dimensions", lambda x: x.permute(0)),
        (RuntimeError, "expects a tensor with <= 2 dimensions", lambda x: x[None].t()),
        (IndexError, "index 2 out of range", lambda x: x.select(0, 2)),
        (RuntimeError, "exceeds dimension size", lambda x: x.narrow(1, 2, 2)),
        (RuntimeError, "length must be non-negative", lambda x: x.narrow(1, 2, -1)),
        (RuntimeError, "to sum exactly to 3", lambda x: x.split([1, 1], 1)),
        (RuntimeError, "split_size can only be 0", lambda x: x.split(0)),
        (TypeError, "as an int, or a list of sizes, got 3.0", lambda x: x.split(3.0)),
        (RuntimeError, "`chunks` to be greater than 0", lambda x: x.chunk(0)),
        (RuntimeError, "maximum size for tensor at dimension 0 is 2", lambda x: x.unfold(0, 3, 1)),
        (RuntimeError, "diagonal dimensions cannot be identical", lambda x: x.diagonal(0, 1, 1)),
        (RuntimeError, "expected src to have a size equal", lambda x: x.select_scatter(x, 0, 0)),
        (RuntimeError, "slice step must be positive, got -1", lambda x: x.slice_scatter(x, step=-1)),
        (RuntimeError, "mT is only supported on matrices", lambda x: x[0].mT),
        (RuntimeError, "don't multiply up to the size", lambda x: x.unflatten(1, (2, 2))),
        (RuntimeError, "start_dim cannot come after end_dim", lambda x: x.flatten(1, 0)),
        (RuntimeError, "Negative strides", lambda x: x.as_strided((2,), (-1,))),
        (RuntimeError, "out of bounds for the storage", lambda x: x.as_strided((9,), (1,))),
        (RuntimeError, "must be divisible by 2", lambda x: x.view(torch.float64)),
    ],
)
def test_errors(error, message, call):
    with pytest.raises(error, match=message):
        call(torch.zeros(2, 3))


def test_memory_formats():
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    last = x.contiguous(memory_format=torch.channels_last)
    assert last.stride() == (24, 1, 8, 2)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert not last.is_contiguous()
    assert torch.equal(last, x)
    assert last.clone().stride() == last.stride()
    assert last.clone(memory_format=torch.contiguous_format).is_contiguous()
    assert repr(torch.channels_last) == "torch.channels_last"
    with pytest.raises(RuntimeError, match="required rank 4"):
        torch.zeros(2).contiguous(memory_format=torch.channels_last)


def test_squeezing_no_dimensions():
    x = torch.zeros(1, 3, 1)
    assert x.squeeze(()).shape == x.squeeze([]).shape == torch.squeeze(x, dim=()).shape == (1, 3, 1)
    assert x.squeeze().shape == x.squeeze((0, 2)).shape == (3,)
    assert torch.zeros(()).squeeze(()).shape == torch.zeros(()).squeeze(0).shape == ()
    assert x.clone().squeeze_(()).shape == (1, 3, 1)


LIKE = """
x * 2; x.int() * 2; x.half() * x; x.double(); x.to(x.dtype, copy=True); x.clone(); torch.zeros_like(x); x.exp(); x.erf()
x + x; x * x[:1]; x * x[:, :1]; x > x; torch.where(x > 0, x, x); torch.fill(x, 2); torch.nn.functional.gelu(x); x.relu()
torch.addcmul(x, x, x); torch.complex(x, x).nan_to_num(); x.nan_to_num(); x.clamp(0, 1); x.masked_fill(x > 0, 2); -x
"""


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("shape", [(7, 2), (700, 400)])
@pytest.mark.parametrize("call", [call.strip() for line in LIKE.strip().splitlines() for call in line.split(";")])
def test_results_like_an_expanded_tensor_are_contiguous(call, shape, target):
    """Memory that all rows share has no order that a result could keep."""
    with target.preferred():
        row = torch.ones(1, shape[1], device=target.device)
        result = eval(call, {"torch": torch, "x": row.expand(shape)})
        assert result.is_contiguous(), result.stride()


def test_detach_shares_memory_and_version():
    x = torch.zeros(2, requires_grad=True)
    d = x.detach()
    d[0] = 5
    assert x.tolist() == [5.0, 0.0]
    assert x._version == d._version == 1
    assert not d.requires_grad


def test_a_view_given_other_memory_by_out_is_a_view_no_more():
    base = torch.zeros(3).requires_grad_()
    view = base[::2]
    with torch.no_grad(), pytest.warns(UserWarning, match="resized"):
        torch.add(torch.ones(3), 1, out=view)
        base.fill_(7)
    assert view.tolist() == [2, 2, 2]
    assert not view.requires_grad
    view.mul_(base).sum().backward()
    assert base.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("shape, stride", [((3,), (1,)), ((1, 1), (0, 0)), ((), ())])
def test_as_strided_of_memory_without_elements(shape, stride):
    with pytest.raises(RuntimeError, match="out of bounds for the storage of a tensor of shape"):
        torch.zeros(2, 0).as_strided(shape, stride)
    with pytest.raises(RuntimeError, match="leaves the tensor's memory"):
        torch.zeros(0).set_(torch.zeros(0).untyped_storage(), 0, shape, stride)


def test_every_spelling_of_split():
    x = torch.arange(5)
    wanted = [[0, 1], [2, 3], [4]]
    for parts in (
        x.split(2),
        x.split(split_size=2, dim=0),
        x.split([2, 2, 1]),
        x.split(torch.tensor(2)),
        torch.split(x, split_size_or_sections=2),
        torch.split(tensor=x, split_size_or_sections=(2, 2, 1), dim=-1),
        torch.split_with_sizes(x, split_sizes=[2, 2, 1]),
    ):
        assert [part.tolist() for part in parts] == wanted
