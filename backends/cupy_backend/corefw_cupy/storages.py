"""The memory behind arrays with its exact size, which CuPy does not know: its pool gives out multiples of 512 bytes,
and of memory from other libraries it holds another number."""

from __future__ import annotations

from typing import Any


class Storages:
    """Finds the memory of arrays.

    Args:
        cupy: CuPy, or what stands in for it.
    """

    def __init__(self, cupy: Any):
        class Storage(cupy.cuda.UnownedMemory):
            """The bytes that were asked for, at the start of what was given out."""

            __slots__ = ("chunk",)

        self.cupy, self.kind = cupy, Storage

    def of(self, array) -> Any:
        """The memory that an array shows all or a part of, with its size."""
        memory = array.data.mem
        if memory.__class__ is self.kind:
            return memory
        whole = array.base  # the array that was made with this memory
        return self._exact(memory, array.nbytes if whole is None else whole.nbytes)

    def chunk(self, array) -> Any:
        """The memory as it was given out: one object for all arrays over it."""
        memory = array.data.mem
        return memory.chunk if memory.__class__ is self.kind else memory

    def adopted(self, array):
        """An array over memory of another library, which ends with the array's last element."""
        start = array.data.ptr - array.data.mem.ptr
        last = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
        size = 0 if 0 in array.shape else start + last + array.dtype.itemsize
        pointer = self.cupy.cuda.MemoryPointer(self._exact(array.data.mem, size), start)
        return self.cupy.ndarray(array.shape, array.dtype, pointer, array.strides)

    def _exact(self, memory, size: int):
        storage = self.kind(memory.ptr, size, memory, memory.device_id)
        storage.chunk = memory
        return storage
