"""Tensors from what is not ours: other libraries' arrays, sequences of them, and sequences that make no sense."""

import ctypes
import warnings
from array import array

import numpy as np
import pytest

import corefw as torch


class Offers:
    """Another library's array, which shows NumPy's `array` by some of the protocols."""

    def __init__(self, array, unversioned=False):
        self.array = array
        self.unversioned = unversioned


class Packed(Offers):
    """By DLPack, as libraries of before version 1.0 do or newer ones."""

    def __dlpack__(self, **options):
        if self.unversioned and options:
            raise TypeError("unexpected keyword arguments")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Converted(Offers):
    def __array__(self, dtype=None, copy=None):
        return self.array


class Described(Offers):
    @property
    def __array_interface__(self):
        return self.array.__array_interface__


KINDS = [Packed, lambda array: Packed(array, unversioned=True), Converted, Described]
IDS = ["dlpack", "unversioned", "array", "interface"]
foreign = pytest.mark.parametrize("kind", KINDS, ids=IDS)


def values(dtype=np.float32) -> np.ndarray:
    return np.arange(6).reshape(2, 3).astype(dtype)


@foreign
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex128"])
def test_arrays_of_other_libraries(kind, dtype):
    array = values(dtype)[:, ::2]
    for make in (torch.as_tensor, torch.asarray):
        shared = make(kind(array))
        assert shared.data_ptr() == array.ctypes.data and shared.stride() == (3, 2)
        assert shared.dtype is getattr(torch, dtype) and np.array_equal(shared.numpy(), array)
    made = torch.tensor(kind(array))
    assert made.data_ptr() != array.ctypes.data and np.array_equal(made.numpy(), array)
    assert torch.tensor(kind(array), dtype=torch.complex64).tolist() == array.tolist()


@foreign
def test_shared_memory_is_written_both_ways(kind):
    array = values()
    shared = torch.as_tensor(kind(array))
    shared[0, 1] = 50.0
    shared.mul_(2)
    shared[1:].view(-1)[2] = -1.0
    array[0, 0] = 7
    assert array.tolist() == [[7, 100, 4], [6, 8, -1]] == shared.tolist()
    copied = torch.tensor(kind(array))
    copied.zero_()
    assert array.any()


@foreign
@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_shapes_of_other_libraries_arrays(kind, shape):
    array = np.ones(shape, np.float32)
    for make in (torch.tensor, torch.as_tensor, torch.asarray, torch.ones(1).new_tensor):
        assert make(kind(array)).shape == shape


def test_memory_that_its_owner_protects_stays_protected():
    array = values()
    array.flags.writeable = False
    for make in (torch.from_dlpack, torch.as_tensor, torch.asarray):
        assert not make(Packed(array)).array.flags.writeable
    with pytest.warns(UserWarning, match="not writable"):
        assert not torch.as_tensor(Converted(array)).array.flags.writeable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.tensor(Converted(array)).add_(1).tolist() == (values() + 1).tolist()


def test_an_owner_lives_as_long_as_its_memory():
    shared = torch.from_dlpack(Packed(np.full(1 << 16, 7.0), unversioned=True))[10:20]
    other = [np.zeros(1 << 16) for _ in range(8)]
    assert (shared == 7).all() and len(other) == 8


@foreign
def test_sequences_of_other_libraries_arrays(kind):
    numbers = [kind(np.array(1, np.int32)), kind(np.array(2.5, np.float32)), 3]
    made = torch.tensor(numbers[:2])
    assert made.dtype is torch.float32 and made.tolist() == [1, 2.5]
    assert torch.tensor([numbers, numbers]).tolist() == [[1, 2.5, 3], [1, 2.5, 3]]
    assert torch.as_tensor([kind(values()), values().tolist()]).tolist() == [values().tolist()] * 2
    with pytest.raises(ValueError, match="expected sequence of length 2"):
        torch.tensor([[1, 2], kind(np.ones(3))])


@pytest.mark.parametrize("make", [lambda values: array("f", values), lambda values: (ctypes.c_float * 2)(*values)])
def test_buffers_are_shown_and_copied(make):
    buffer = make([1.0, 2.0])
    shown, copied = torch.asarray(buffer, copy=False), torch.asarray(buffer, copy=True)
    buffer[0] = 5.0
    assert shown.tolist() == torch.asarray(buffer).tolist() == [5, 2] and copied.tolist() == [1, 2]


def test_numbers_are_no_buffers():
    for number in (1.5, np.float64(1.5)):
        assert torch.asarray(number, dtype=torch.float64).tolist() == 1.5
        with pytest.raises(ValueError, match="alias"):
            torch.asarray(number, copy=False)


def test_arrays_that_no_tensor_can_show():
    for make in (torch.tensor, torch.as_tensor, torch.asarray):
        with pytest.raises(TypeError):
            make(Converted(np.array([None])))
        with pytest.raises(TypeError):
            make(Converted(np.array(["text"])))
    with pytest.raises(RuntimeError, match="infer dtype of type"):
        torch.tensor(np.ndarray)


def test_other_libraries_may_write():
    x = torch.arange(6.0).reshape(2, 3).t()
    array = np.from_dlpack(x)
    array[0, 0] = 9
    assert array.ctypes.data == x.data_ptr() and x[0, 0] == 9


# -- sequences that make no sense -------------------------------------------------------------------------------------
def _ring():
    inner = []
    inner.append(inner)
    return inner


def _deep(levels):
    nested = 1
    for _ in range(levels):
        nested = [nested]
    return nested


def _pair():
    a, b = [], []
    a.append((b,))
    b.append((a,))
    return a


class Endless:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self


MAKERS = [
    torch.tensor,
    torch.as_tensor,
    torch.asarray,
    torch.Tensor,
    torch.FloatTensor,
    torch.ones(1).new_tensor,
    lambda data: torch.tensor(data, dtype=torch.float64),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "data",
    [_ring(), _pair(), _deep(10_000), _deep(65), Endless(), [Endless(), Endless()]],
    ids=lambda data: type(data).__name__,
)
def test_endless_and_deep_sequences(make, data):
    with pytest.raises(ValueError, match=r"too many dimensions '(list|tuple|Endless)'"):
        make(data)


def test_the_deepest_sequence():
    assert torch.tensor(_deep(64)).shape == (1,) * 64


@pytest.mark.parametrize(
    "data",
    [
        [1, _ring()],
        [[1], _ring()],
        [[1, 2], [3]],
        [[1], 2],
        [1, [2]],
        [[[1]], [[1, 2]]],
        [[], [1]],
        [[1], []],
        [[], _ring()],
    ],
    ids=range(9),
)
@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor])
def test_ragged_sequences(make, data):
    with pytest.raises((ValueError, TypeError), match=r"sequence|dimensions"):
        make(data)


# -- with PyTorch -----------------------------------------------------------------------------------------------------
@pytest.mark.oracle
class TestWithPyTorch:
    @pytest.mark.parametrize(
        "dtype", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
    )
    def test_both_ways(self, dtype):
        pytorch = pytest.importorskip("torch", reason="PyTorch is the reference")
        theirs = pytorch.tensor([[0, 1], [1, 0]]).to(getattr(pytorch, dtype)).t()
        for make in (torch.from_dlpack, torch.as_tensor, torch.asarray):
            ours = make(theirs)
            assert ours.data_ptr() == theirs.data_ptr() and str(ours.dtype) == str(theirs.dtype)
            ours[0, 0] = 1
            assert theirs[0, 0] == 1
            theirs[0, 0] = 0
            assert ours[0, 0] == 0
        assert torch.tensor(theirs).data_ptr() != theirs.data_ptr()
        back = pytorch.from_dlpack(torch.tensor(theirs))
        assert back.dtype is theirs.dtype and back.tolist() == theirs.tolist()
        mine = torch.tensor([1, 0]).to(getattr(torch, dtype))
        shared = pytorch.from_dlpack(mine)
        shared[1] = 1
        assert shared.data_ptr() == mine.data_ptr() and mine[1] == 1
        old = torch.from_dlpack(pytorch.utils.dlpack.to_dlpack(theirs))
        old[1, 1] = 1
        assert theirs[1, 1] == 1
        numbers = [theirs[0, 0], theirs[1, 0]]
        assert torch.tensor(numbers).dtype is ours.dtype and torch.tensor(numbers).tolist() == [
            n.item() for n in numbers
        ]

    def test_refusals_are_theirs(self):
        pytorch = pytest.importorskip("torch", reason="PyTorch is the reference")
        for make in (torch.tensor, torch.as_tensor, torch.asarray, torch.from_dlpack):
            with pytest.raises(BufferError, match="require"):
                make(pytorch.ones(1, requires_grad=True))
