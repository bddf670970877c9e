"""Tensor beside its ops: attributes, conversions, Python protocols, NumPy, DLPack, pickle, memory, older names."""

import copy
import multiprocessing
import operator
import pickle
from enum import IntEnum

import numpy as np
import pytest

import corefw as torch

pytorch = pytest.importorskip("torch")


@pytest.fixture
def x():
    return torch.arange(6.0).reshape(2, 3)


# -- attributes -------------------------------------------------------------------------------------------------------
ATTRIBUTES = """
x.shape
x.size()
x.size(0)
x.size(-1)
x.size(dim=1)
x.stride()
x.stride(0)
x.ndim
x.dim()
x.ndimension()
x.numel()
x.nelement()
x.element_size()
x.itemsize
x.nbytes
x.storage_offset()
x[1].storage_offset()
x.is_cuda
x.is_cpu
x.is_meta
x.is_sparse
x.is_quantized
x.output_nr
x._version
x.is_leaf
x.get_device()
x.is_inference()
x.is_shared()
x.is_pinned()
x.dim_order()
x.t().dim_order()
x.type()
x.half().type()
x.long().type()
x.bool().type()
x.cfloat().type()
x.bfloat16().type()
x.requires_grad
x.grad
x.grad_fn
x[0]._base.shape
len(x)
x.is_set_to(x)
x.is_set_to(x.clone())
x.untyped_storage().nbytes()
x[1].untyped_storage().data_ptr() == x.data_ptr()
x[1].data_ptr() - x.data_ptr()
""".strip().splitlines()


@pytest.mark.parametrize("text", ATTRIBUTES)
def test_attributes_as_pytorch(text, x):
    assert eval(text, {"x": x}) == eval(text, {"x": pytorch.arange(6.0).reshape(2, 3)})


def test_requires_grad_and_leaves():
    x = torch.zeros(4)
    view = x[1:]
    assert x.requires_grad_() is x and x.is_leaf and x.grad_fn is None
    assert not view.requires_grad  # taken before
    y = x * 2
    assert y.requires_grad and not y.is_leaf and type(y.grad_fn).__name__ == "MulBackward0"
    with pytest.raises(RuntimeError, match="leaf variables"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="floating point"):
        torch.arange(3).requires_grad_()
    with pytest.raises(RuntimeError, match="must be a bool"):
        x.requires_grad = 1
    assert view.requires_grad_().is_leaf
    assert type(torch.ones(3, requires_grad=True).max(0).values.grad_fn).__name__ == "MaxBackward0"
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (torch.ones(2), RuntimeError, "gradient of size"),
        (torch.ones(2, 3).double(), RuntimeError, "dtype"),
        (torch.ones(2, 3, device="meta"), RuntimeError, "device"),
        (1, TypeError, "Tensor or None"),
    ],
)
def test_assigning_wrong_gradients(value, error, text, x):
    with pytest.raises(error, match=text):
        x.grad = value
    x.grad = torch.ones(2, 3)
    assert x.grad.sum().item() == 6
    del x.grad
    assert x.grad is None


def test_data_shares_memory_without_history():
    w = torch.ones(2, requires_grad=True)
    w.data[0] = 5
    assert w.tolist() == [5, 1] and w._version == 0 and not w.data.requires_grad
    w.data = torch.zeros(3)
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        w.data = 5


# -- conversions ------------------------------------------------------------------------------------------------------
CONVERSIONS = """
x.to(t.float64)
x.to(t.float64, True, True)
x.to("cpu", t.int64)
x.to(t.zeros(1, dtype=t.int8))
x.to(device="cpu", dtype=t.int8, non_blocking=True, copy=True)
x.to(None, t.float64)
x.to(float)
x.t().to(t.float64)
x.t().to(t.float64, memory_format=t.contiguous_format)
(x - 5).byte()
x.char()
x.bool()
x.short()
x.int()
x.long()
x.half()
x.bfloat16()
x.double()
x.cfloat()
x.cdouble()
x.type("torch.IntTensor")
x.type(t.LongTensor)
x.type(t.float64)
x.type(dtype=t.int32)
x.type_as(t.zeros(1, dtype=t.int64))
t.tensor([1e6]).half()
t.tensor([1.5, -2.5]).int()
""".strip().splitlines()


@pytest.mark.parametrize("text", CONVERSIONS)
def test_conversions_as_pytorch(text, x):
    made = eval(text, {"t": torch, "x": x})
    wanted = eval(text, {"t": pytorch, "x": pytorch.arange(6.0).reshape(2, 3)})
    assert (
        made.tolist() == wanted.tolist() and str(made.dtype) == str(wanted.dtype) and made.stride() == wanted.stride()
    )


def test_conversions_that_change_nothing_give_the_tensor_itself(x):
    assert all(y is x for y in (x.to(), x.to(torch.float32), x.to("cpu"), x.to(x), x.float(), x.cpu(), x.to(None)))
    assert x.to(torch.float32, copy=True) is not x and x.to("cpu:0").device == x.device


@pytest.mark.parametrize("arguments", [(np.float32,), (1.5,), (torch.float32, 1, 2, 3)])
def test_wrong_forms_of_to(arguments, x):
    with pytest.raises(TypeError, match="invalid combination"):
        x.to(*arguments)
    with pytest.raises(TypeError, match="invalid combination"):
        x.to(torch.float64, foo=1)


def test_conversions_are_differentiable():
    x = torch.ones(3, requires_grad=True)
    y = x.double()
    assert type(y.grad_fn).__name__ == "ToCopyBackward0" and not x.long().requires_grad
    (y * 3).sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [3, 3, 3]
    (g,) = torch.autograd.grad((x.double() ** 3).sum(), x, create_graph=True)
    (g2,) = torch.autograd.grad(g.sum(), x)
    assert g2.tolist() == [6, 6, 6]


def test_complex_to_real_warns():
    with pytest.warns(UserWarning, match="imaginary"):
        assert torch.tensor([1 + 2j]).float().tolist() == [1]


def test_meta_has_no_data(x):
    there = x.to("meta")
    assert there.is_meta and there.shape == (2, 3)
    for call in (lambda: there.cpu(), lambda: there.tolist(), lambda: there[0, 0].item()):
        with pytest.raises((NotImplementedError, RuntimeError)):
            call()
    with pytest.raises(TypeError, match="meta"):
        there.numpy()


# -- Python's protocols -----------------------------------------------------------------------------------------------
def test_numbers():
    assert bool(torch.tensor(0.0)) is False and bool(torch.tensor([[2]])) is True
    assert (float(torch.tensor([2])), int(torch.tensor(2.7)), complex(torch.tensor(2.0))) == (2.0, 2, 2 + 0j)
    assert [1, 2, 3][torch.tensor(1)] == 2 and operator.index(torch.tensor([True])) == 1
    assert torch.tensor(3.0, dtype=torch.bfloat16).item() == 3.0 and torch.tensor(True).item() is True
    assert (
        f"{torch.tensor(3.14159):.2f}" == "3.14"
        and f"{torch.tensor(3):5}" == "    3"
        and f"{torch.tensor(3.5)}" == "3.5"
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: bool(x), RuntimeError),
        (lambda x: bool(torch.tensor([])), RuntimeError),
        (lambda x: float(x), ValueError),
        (lambda x: float(torch.tensor(2j)), RuntimeError),
        (lambda x: int(torch.tensor(float("nan"))), ValueError),
        (lambda x: x.item(), RuntimeError),
        (lambda x: operator.index(torch.tensor(1.0)), TypeError),
        (lambda x: operator.index(torch.tensor([1, 2])), TypeError),
        (lambda x: len(torch.tensor(1)), TypeError),
        (lambda x: x.__delitem__(0), TypeError),
        (lambda x: iter(torch.tensor(1)), TypeError),
        (lambda x: f"{x:.2f}", TypeError),
        (lambda x: "a" in x, RuntimeError),
        (lambda x: x.size(5), IndexError),
        (lambda x: x.size("a"), TypeError),
        (lambda x: torch.tensor(1.0).size(0), IndexError),
        (lambda x: x.type("torch.foo"), ValueError),
        (lambda x: x.missing, AttributeError),
    ],
)
def test_refusals(call, error, x):
    with pytest.raises(error):
        call(x)


def test_containers(x):
    assert [row.tolist() for row in x] == x.tolist() and [r.tolist() for r in reversed(x)] == x.tolist()[::-1]
    assert 2.0 in x and 7 not in x and torch.tensor(2.0) in x
    assert {x: 1}[x] == 1 and "shape" in dir(x)


def test_numbers_of_subclasses(x):
    class Size(IntEnum):
        TWO = 2

    class Part(float):
        pass

    assert torch.equal(x * Size.TWO, x * 2) and torch.equal(Part(0.5) * x, x * 0.5)
    assert (torch.ones(1, dtype=torch.int64) + Size.TWO).dtype is torch.int64


# -- NumPy and DLPack -------------------------------------------------------------------------------------------------
def test_numpy_shares_memory(x):
    array = x.numpy()
    array[0, 0] = 9
    assert x[0, 0].item() == 9 and np.asarray(x).base is array.base
    assert np.array(x, dtype=np.int32).dtype == np.int32 and np.array(x, copy=False) is not None
    for result in (np.sin(x), np.add(x, np.ones(3)), np.ones(3) + x, x + np.ones(3), np.float64(2) * x):
        assert isinstance(result, torch.Tensor)
    assert (np.float64(2) * x).dtype is torch.float32
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype="f8", copy=False)


def test_numpy_refusals():
    with pytest.raises(RuntimeError, match="detach"):
        torch.ones(1, requires_grad=True).numpy()
    assert torch.ones(1, requires_grad=True).numpy(force=True).tolist() == [1]
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(1).bfloat16().numpy()


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int64", "uint8", "bool", "complex64", "float16", "bfloat16"]
)
def test_dlpack_both_ways_with_pytorch(dtype):
    ours = torch.tensor([[1, 0], [1, 1]]).to(getattr(torch, dtype)).t()
    theirs = pytorch.from_dlpack(ours)
    assert (
        str(theirs.dtype) == str(ours.dtype)
        and theirs.data_ptr() == ours.data_ptr()
        and theirs.stride() == ours.stride()
    )
    back = torch.from_dlpack(theirs)
    assert back.dtype is ours.dtype and back.data_ptr() == ours.data_ptr() and back.tolist() == ours.tolist()
    assert torch.from_dlpack(pytorch.utils.dlpack.to_dlpack(theirs)).tolist() == ours.tolist()
    assert torch.from_dlpack(torch.to_dlpack(ours)).tolist() == ours.tolist()


def test_dlpack_with_numpy_and_refusals(x):
    assert np.from_dlpack(x).ctypes.data == x.data_ptr()
    array = np.ones(2)
    assert torch.from_dlpack(array).data_ptr() == array.ctypes.data
    assert torch.from_dlpack(array, copy=True).data_ptr() != array.ctypes.data
    capsule = x.__dlpack__()
    torch.from_dlpack(capsule)
    for call in (lambda: torch.from_dlpack(capsule), lambda: torch.from_dlpack(5)):
        with pytest.raises(RuntimeError, match="once"):
            call()
    for tensor in (torch.ones(1, requires_grad=True), torch.ones(1, device="meta")):
        with pytest.raises(BufferError):
            tensor.__dlpack__()


# -- copies -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64])
def test_pickle(dtype):
    x = torch.tensor([[1, 2, 3], [4, 5, 6]]).to(dtype).t()
    x.note = "kept"
    back = pickle.loads(pickle.dumps(x))
    assert back.tolist() == x.tolist() and back.dtype is dtype and back.stride() == x.stride() and back.note == "kept"


def test_pickle_keeps_requires_grad_and_meta():
    assert pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True))).requires_grad
    back = pickle.loads(pickle.dumps(torch.empty_strided((2, 3), (1, 2), device="meta")))
    assert back.is_meta and back.stride() == (1, 2)


def test_copy_module():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    deep, shallow = copy.deepcopy([x, x]), copy.copy(x)
    assert deep[0] is deep[1] and deep[0].grad.tolist() == [1, 1] and deep[0].data_ptr() != x.data_ptr()
    assert deep[0].requires_grad and shallow.requires_grad and shallow.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


# -- memory -----------------------------------------------------------------------------------------------------------
def test_set_and_resize(x):
    t = torch.ones(3)
    assert t.set_(x) is t and t.data_ptr() == x.data_ptr() and t.shape == (2, 3)
    assert t.set_(x, 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]]
    assert t.set_(x.untyped_storage(), 2, (2,)).tolist() == [2, 3]
    assert t.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="type"):
        t.set_(x.double())
    assert x.clone().resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    grown = x.clone().resize_(3, 3)
    assert grown[:2].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.clone().resize_as_(torch.ones(6)).tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="require grad"):
        torch.ones(2, requires_grad=True).resize_(1)


def test_elementwise_python_functions():
    assert torch.arange(3).apply_(lambda v: v * 1.9).tolist() == [0, 1, 3]
    assert torch.ones(2, 2).t().map_(torch.arange(2.0), lambda a, b: a + b).tolist() == [[1, 2], [1, 2]]
    with pytest.raises(TypeError, match="LongTensor"):
        torch.ones(3).map_(torch.arange(3), max)
    with pytest.raises(RuntimeError, match="apply_"):
        torch.ones(3, requires_grad=True).apply_(abs)


def _write(tensor):
    tensor[0] = 7


def test_shared_memory_is_seen_by_forked_processes():
    t = torch.zeros(2).share_memory_()
    assert t.is_shared() and not torch.zeros(2).is_shared()
    process = multiprocessing.get_context("fork").Process(target=_write, args=(t,))
    process.start()
    process.join()
    assert t.tolist() == [7, 0]


# -- older names ------------------------------------------------------------------------------------------------------
def test_older_constructors(x):
    assert (
        torch.Tensor([1, 2]).dtype is torch.float32
        and torch.Tensor(2, 3).shape == (2, 3)
        and torch.Tensor().shape == (0,)
    )
    assert torch.Tensor(torch.Size([2])).shape == (2,) and torch.Tensor((1, 2)).tolist() == [1, 2]
    assert torch.Tensor(x).data_ptr() == x.data_ptr() and torch.Tensor(np.ones(2)).dtype is torch.float32
    assert torch.LongTensor([1.5]).tolist() == [1] and torch.LongTensor(2).shape == (2,)
    assert (
        isinstance(x, torch.FloatTensor)
        and not isinstance(x, torch.LongTensor)
        and type(torch.IntTensor([1])) is torch.Tensor
    )
    assert torch.typename(x) == "torch.FloatTensor" and str(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    for call in (
        lambda: torch.Tensor(2.5),
        lambda: torch.Tensor("a"),
        lambda: torch.Tensor(2, 3.0),
        lambda: torch.FloatTensor(torch.arange(2)),
    ):
        with pytest.raises(TypeError):
            call()


def test_subclasses():
    class Named(torch.Tensor):
        pass

    made = Named([1, 2])
    assert type(made) is Named and type(torch.ones(2).as_subclass(Named)) is Named
    assert type(copy.deepcopy(made)) is Named and repr(made) == "Named([1., 2.])"
