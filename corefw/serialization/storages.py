"""The memory of tensors as checkpoints see it: a flat run of elements that several tensors may show."""

from __future__ import annotations

import numpy as np

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import dtype
from corefw.shapes import extent
from corefw.tensor import Tensor, wrap
from corefw.tensor_api.memory import UntypedStorage


class StorageType:
    """PyTorch's class of storages with one element type, e.g. ``torch.FloatStorage``: here only its name and dtype."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: dtype):
        self.name, self.dtype = name, dtype

    def __repr__(self) -> str:
        return f"StorageType({self.name}, dtype={self.dtype})"


#: memory whose element type only the tensors over it know
UNTYPED = StorageType("UntypedStorage", dtypes.uint8)
#: PyTorch has no storage type for these: their tensors are saved over untyped memory
WITHOUT_TYPE = (dtypes.uint16, dtypes.uint32, dtypes.uint64)
STORAGE_TYPES = {d: StorageType(f"{d.title}Storage", d) for d in dtypes.ALL if d not in WITHOUT_TYPE}


class Memory:
    """The whole memory behind a tensor, ready to be saved.

    Attributes: ``flat`` all its elements as a raw array (held, so that the address stays taken); ``key`` equal for
    tensors over the same memory; ``offset, strides`` the tensor's place in it, in elements.
    """

    __slots__ = ("dispatch_key", "dtype", "flat", "key", "offset", "strides")

    def __init__(self, tensor: Tensor):
        dispatch_key, array = tensor.dispatch_key, tensor.array
        runtime, size = dispatch_key.runtime, dispatch_key.dtype.itemsize
        offset, length = runtime.storage_offset(array), runtime.memory_bytes(array)
        start = runtime.address(array) - offset * size
        if length % size or start % size or any(stride % size for stride in array.strides):
            array = runtime.clone(array)  # lies in foreign memory at no whole number of elements from its start
            offset, length = 0, array.nbytes
            start = runtime.address(array)
        if array.nbytes == 0:
            offset = 0
        self.flat = runtime.as_strided(array, (length // size,), (1,), 0)
        self.dispatch_key, self.dtype = dispatch_key, dispatch_key.dtype
        self.offset = offset
        self.strides = tuple(stride // size for stride in array.strides)
        self.key = (dispatch_key.device, start) if length else id(self.flat)

    def content(self) -> np.ndarray:
        """The bytes."""
        host = np.ascontiguousarray(self.dispatch_key.runtime.download(self.flat))
        return host.view(np.uint8)


def host_storage(host: np.ndarray, dtype: dtype, where: device) -> UntypedStorage:
    """A storage on a device with the content of a flat NumPy array of `dtype`; on the CPU the array itself."""
    dispatch_key = dispatch_key_of(where, dtype)
    return UntypedStorage(wrap(dispatch_key.runtime.upload(host, dispatch_key.device.index), dispatch_key))


def tensor_over(
    storage: UntypedStorage, offset: int, shape: tuple, strides: tuple, dtype: dtype | None = None
) -> Tensor:
    """A tensor that shows a part of a storage, of which it trusts no number.

    Raises RuntimeError if the part does not lie inside.
    """
    flat = storage._tensor
    dispatch_key = flat.dispatch_key if dtype is None else flat.dispatch_key.with_dtype(dtype)
    shape, strides = tuple(shape), tuple(strides)
    end = extent(shape, strides, offset)
    if end * dispatch_key.dtype.itemsize > flat.array.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{dispatch_key.dtype.itemsize} requiring a storage size of {end * dispatch_key.dtype.itemsize} are out of "
            f"bounds for storage of size {flat.array.nbytes}"
        )
    made = wrap(dispatch_key.runtime.as_strided(flat.array, shape, strides, offset, dispatch_key.dtype), dispatch_key)
    made.version = flat.version
    return made
