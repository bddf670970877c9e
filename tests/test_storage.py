"""Storages: the memory of tensors as bytes and as numbers."""

import copy
import pickle

import pytest

import corefw as torch
from tests.parity import import_torch


def test_a_storage_shows_the_memory_of_its_tensor():
    x = torch.arange(6, dtype=torch.float32).view(2, 3)
    storage = x[1].storage()
    assert storage.tolist() == [*storage] == [0, 1, 2, 3, 4, 5] and len(storage) == storage.size() == 6
    assert storage.nbytes() == 24 and storage.element_size() == 4 and storage.data_ptr() == x.data_ptr()
    storage[0] = 7
    storage[4:].fill_(9)
    assert x.tolist() == [[7, 1, 2], [3, 9, 9]] and storage[-1] == 9 and not storage.is_cuda
    assert storage.untyped().data_ptr() == x.untyped_storage().data_ptr() and storage.device == torch.device("cpu")
    assert (
        storage.cpu() is storage and storage.type() == "torch.FloatStorage" == f"torch.{storage.pickle_storage_type()}"
    )
    assert (
        repr(torch.ones(1).storage()) == " 1.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 1]"
    )


def test_types_of_storages():
    x = torch.ones(2, dtype=torch.int64)
    assert x.storage_type() is torch.LongStorage and isinstance(x.storage(), torch.LongStorage)
    assert not isinstance(x.storage(), torch.FloatStorage) and not isinstance(x, torch.LongStorage)
    assert torch.LongStorage.dtype is torch.LongStorage().dtype is torch.int64
    assert pickle.loads(pickle.dumps(torch.LongStorage)) is torch.LongStorage
    assert torch.DoubleStorage([1, 2.5]).tolist() == [1, 2.5] and len(torch.HalfStorage(3)) == 3
    halves = x.storage().type(torch.HalfStorage)
    assert (
        halves.dtype is torch.float16 and halves.tolist() == [1, 1] and x.storage().type(torch.int64).dtype is x.dtype
    )
    with pytest.raises(RuntimeError, match="uint16"):
        torch.ones(1, dtype=torch.uint16).storage_type()
    for wrong in (lambda: torch.FloatStorage(1, 2), lambda: torch.storage.TypedStorage(wrap_storage=x.storage())):
        with pytest.raises(TypeError):
            wrong()


def test_tensors_over_storages():
    storage, x = torch.FloatStorage([1, 2, 3, 4]), torch.zeros(1)
    x.set_(storage)
    storage[0] = 5
    assert x.tolist() == [5, 2, 3, 4] and x.set_(storage, 1, (2,)).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="Expected a Storage of type Int"):
        torch.zeros(1, dtype=torch.int32).set_(storage)
    assert torch.is_storage(storage) and torch.is_storage(storage.untyped()) and not torch.is_storage(x)


def test_copies():
    storage = torch.FloatStorage([1, 2])
    for twin in (copy.deepcopy(storage), storage.clone(), torch.FloatStorage(2).copy_(storage)):
        twin[0] = 3
        assert twin.tolist() == [3, 2] and storage.tolist() == [1, 2]
    assert torch.IntStorage(2).copy_(storage).tolist() == [1, 2]
    memo = {}
    assert copy.deepcopy([storage, storage], memo)[0] is copy.deepcopy(storage, memo)


def test_bytes():
    storage = torch.UntypedStorage([1, 2, 3, 255])
    assert storage.tolist() == [1, 2, 3, 255] and len(torch.UntypedStorage(5)) == 5 and storage.element_size() == 1
    storage[0], storage[2:] = 9, 7
    twin = storage.clone()
    assert twin.fill_(4).tolist() == [4] * 4 and copy.deepcopy(storage).tolist() == [9, 2, 7, 7]
    storage[:2] = twin[:2]
    assert storage.tolist() == [4, 4, 7, 7] and storage.copy_(twin).tolist() == [4] * 4
    assert torch.UntypedStorage(2, device="meta").device.type == "meta"
    assert storage.resize_(4) is storage
    with pytest.raises(NotImplementedError, match="4 bytes cannot become 8"):
        storage.resize_(8)
    for order, wanted in (("little", [1, 2]), ("big", [256, 512]), ("native", None)):
        found = torch.ShortStorage.from_buffer(b"\1\0\2\0", byte_order=order).tolist()
        assert found == (wanted or found)
    with pytest.raises(ValueError, match="byte_order 'other'"):
        torch.ShortStorage.from_buffer(b"", "other")


def test_files(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(torch.arange(3, dtype=torch.float64).numpy().tobytes())
    storage = torch.DoubleStorage.from_file(path, shared=True, size=4)
    storage[3] = 1.0
    assert storage.tolist() == [0, 1, 2, 1] and path.stat().st_size == 32


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_names_are_pytorchs():
    theirs = import_torch()
    names = [n for n in dir(theirs) if n.endswith("Storage") and n[:2] not in ("QI", "QU", "St")]
    assert [name for name in names if not hasattr(torch, name)] == []
    a, b = theirs.ones(2).storage(), torch.ones(2).storage()
    private = {"from_file", "filename", "resizable", "resize_", "get_device", "from_buffer", "is_hpu", "is_sparse"}
    conversions = [
        "bool",
        "byte",
        "char",
        "double",
        "float",
        "half",
        "int",
        "long",
        "short",
        "bfloat16",
        "complex_double",
        "complex_float",
        "hpu",
    ]
    asked = (
        {n for n in dir(a) if n[0] != "_" and "float8" not in n} - private - {"pin_memory", "is_pinned", *conversions}
    )
    assert sorted(n for n in asked if not hasattr(b, n)) == []
