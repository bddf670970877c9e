"""The memory of a tensor as a sequence of numbers, without its shape: what PyTorch's older programs ask for."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from typing import Any

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError
from corefw.dtypes import dtype, get_default_dtype
from corefw.tensor import Tensor
from corefw.tensor_api.attach import method
from corefw.tensor_api.construction import tensor
from corefw.tensor_api.memory import UntypedStorage

__all__ = ["STORAGES", "TypedStorage"]


class TypedStorage:
    """The memory that a tensor shows all or a part of, as a sequence of numbers.

    Args:
        arguments: how many numbers, of arbitrary value, or a sequence of them.
        wrap_storage: memory to show instead.
        dtype: of the numbers; that of `torch.get_default_dtype` if missing.
        device: where it lies.

    >>> import corefw as torch
    >>> torch.TypedStorage([1, 2], dtype=torch.int64).tolist()
    [1, 2]
    >>> storage = torch.ones(2, 2)[1].storage()
    >>> storage[0] = 7.0
    >>> storage.tolist(), storage.dtype
    ([7.0, 1.0, 1.0, 1.0], torch.float32)
    """

    def __init__(
        self,
        *arguments: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ):
        self.dtype = dtype or get_default_dtype()
        if wrap_storage is not None:
            if arguments or not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"TypedStorage: wrap_storage must be an UntypedStorage alone, got {wrap_storage!r}")
            self._untyped_storage = wrap_storage
            return
        if len(arguments) > 1:
            raise TypeError(f"TypedStorage: expected a number or a sequence, got {len(arguments)} arguments")
        first = arguments[0] if arguments else 0
        if isinstance(first, int):
            self._untyped_storage = UntypedStorage(first * self.dtype.itemsize, device=device)
        else:
            self._untyped_storage = UntypedStorage(tensor(first, dtype=self.dtype, device=device))

    def _numbers(self) -> Tensor:
        """All of them, over the memory."""
        return self._untyped_storage._flat().view(self.dtype)

    def _like(self, storage: UntypedStorage) -> TypedStorage:
        return self if storage is self._untyped_storage else TypedStorage(wrap_storage=storage, dtype=self.dtype)

    def untyped(self) -> UntypedStorage:
        """The memory as bytes."""
        return self._untyped_storage

    def __len__(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    size = __len__

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """The bytes of a number."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    @property
    def device(self):
        """Where the memory lies."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on a GPU."""
        return self.device.type == "cuda"

    def __getitem__(self, index: int | slice) -> Any:
        """A number, or the memory of a part."""
        found = self._numbers()[index]
        if not isinstance(index, slice):
            return found.item()
        return TypedStorage(wrap_storage=UntypedStorage._of_part(found.view(dtypes.uint8)), dtype=self.dtype)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._numbers()[index] = value

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def tolist(self) -> list:
        """The numbers as a list."""
        return self._numbers().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Set all numbers to one; returns itself."""
        self._numbers().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the numbers of a storage with as many, converted; returns itself."""
        self._numbers().copy_(source._numbers())
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return memo.setdefault(id(self), self.clone())

    def to(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """The content on another device; itself if it lies there."""
        return self._like(self._untyped_storage.to(device))

    def cpu(self) -> TypedStorage:
        """The content on the CPU."""
        return self._like(self._untyped_storage.cpu())

    def cuda(self, device: Any = None) -> TypedStorage:
        """The content on a CUDA device."""
        return self._like(self._untyped_storage.cuda(device))

    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory of the tensor whose storage this is to where other processes see it; returns itself."""
        self._untyped_storage.share_memory_()
        return self

    def type(self, dtype: Any = None) -> Any:
        """The name of its type, or the numbers as those of another dtype."""
        if dtype is None:
            return f"{dtypes.MODULE}.{self.dtype.title}Storage"
        wanted = dtype if isinstance(dtype, dtypes.dtype) else dtype.dtype
        return self if wanted is self.dtype else _storage_of(self._numbers().to(wanted))

    def pickle_storage_type(self) -> str:
        """The name of its type in checkpoints."""
        return f"{self.dtype.title}Storage"

    def __repr__(self) -> str:
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return "".join(f" {number}\n" for number in self.tolist()) + f"[{kind} of size {len(self)}]"


class StorageType(type):
    """The class of `FloatStorage` and its like: calling one makes a `TypedStorage`, isinstance asks for its dtype."""

    dtype: dtype

    def __call__(cls, *arguments: Any, wrap_storage: UntypedStorage | None = None, device: Any = None) -> TypedStorage:
        return TypedStorage(*arguments, wrap_storage=wrap_storage, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def from_buffer(cls, buffer: Any, byte_order: str = "native") -> TypedStorage:
        """A storage with the content of a buffer, such as bytes."""
        storage = UntypedStorage.from_buffer(buffer, cls.dtype, byte_order)
        return TypedStorage(wrap_storage=storage, dtype=cls.dtype)

    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` numbers of a file; see `UntypedStorage.from_file`."""
        storage = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=storage, dtype=cls.dtype)


def _named(name: str) -> StorageType:
    return STORAGES[name]


copyreg.pickle(StorageType, lambda kind: (_named, (kind.__name__,)))
_WITHOUT = (dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.complex32)  # PyTorch has no storages of these
#: {"FloatStorage": ..., ...}
STORAGES = {
    f"{d.title}Storage": StorageType(
        f"{d.title}Storage", (), {"dtype": d, "__module__": dtypes.MODULE, "__doc__": f"Makes storages of {d!r}."}
    )
    for d in dtypes.ALL
    if d not in _WITHOUT
}


def _storage_of(made: Tensor) -> TypedStorage:
    return TypedStorage(wrap_storage=UntypedStorage(made), dtype=made.dtype)


@method
def storage(self) -> TypedStorage:
    """The memory that the tensor shows all or a part of, as numbers of its dtype: `untyped_storage` gives the bytes."""
    return _storage_of(self)


@method
def storage_type(self) -> type:
    """The class of its storage, such as `torch.FloatStorage`."""
    found = STORAGES.get(f"{self.dtype.title}Storage")
    if found is None:
        raise ArgumentError(f"storage_type(): there is no type of storages of {self.dtype}")
    return found


@method
def _typed_storage(self) -> TypedStorage:
    return _storage_of(self)
