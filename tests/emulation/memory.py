"""Host memory that CuPy takes for a device's: guarded at both ends, and NaN (or -1) until it is written."""

import weakref

import cupy
import numpy as np

from tests.emulation import queue

GUARD = 64
UNIT = 512  # bytes: CuPy's pool gives out multiples, and says so of memory whose array is smaller
MARK = 0xA5
POISON = 0xFF  # what is read before it was written, as with COREFW_POISON
_blocks: "weakref.WeakValueDictionary[int, Block]" = weakref.WeakValueDictionary()  # by the address that CuPy has


class Hook:
    """What CuPy calls when memory is given out and comes back."""

    active: "list[Hook]" = []

    def __enter__(self):
        self.active.append(self)

    def __exit__(self, *exception):
        self.active.remove(self)


class Block:
    """An allocation, whose guard begins right after the bytes that were asked for."""

    def __init__(self, size: int):
        self.bytes = np.full(size + 2 * GUARD + 16, MARK, np.uint8)
        self.start = GUARD + -(self.bytes.ctypes.data + GUARD) % 16
        self.size, self.rounded = size, -(-size // UNIT) * UNIT
        self.address = self.bytes.ctypes.data + self.start
        self.bytes[self.start : self.start + size] = POISON
        for hook in Hook.active:
            hook.malloc_postprocess(device_id=0, size=size, mem_size=self.rounded, mem_ptr=self.address, pmem_id=0)

    def __del__(self, hooks=Hook.active, keep=queue.keep):  # at the end of the process the names may be gone
        keep(self.bytes)
        for hook in hooks:
            hook.free_postprocess(device_id=0, mem_size=self.rounded, mem_ptr=self.address, pmem_id=0)

    def whole(self) -> bool:
        """Whether nothing was written outside."""
        before, after = self.bytes[: self.start], self.bytes[self.start + self.size :]
        return bool((before == MARK).all() and (after == MARK).all())


def allocate(size: int) -> cupy.cuda.MemoryPointer:
    """What CuPy is given for an allocator."""
    block = Block(size)
    _blocks[block.address] = block
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.address, block.rounded, block, 0), 0)


def empty(shape, dtype) -> cupy.ndarray:
    """A new array in such memory, wherever CuPy's other arrays lie."""
    with cupy.cuda.using_allocator(allocate):
        return cupy.empty(shape, dtype)


def used() -> int:
    """Bytes of all arrays that live."""
    return sum(block.rounded for block in _blocks.values())


def check(name: str, arrays: list[cupy.ndarray]) -> None:
    """Raise if a kernel wrote outside of its arrays."""
    for array in arrays:
        block = _blocks.get(array.data.mem.ptr)
        if block is not None and not block.whole():
            block.bytes[: block.start] = MARK
            block.bytes[block.start + block.size :] = MARK
            raise RuntimeError(f"{name} wrote outside of an array of {block.size} bytes")


def host(array: cupy.ndarray) -> np.ndarray:
    """The memory of an array, as NumPy sees it once all work is done."""
    queue.drain()
    if not array.size:
        return np.empty(array.shape, array.dtype)
    block = _blocks[array.data.mem.ptr]
    offset = block.start + array.data.ptr - block.address
    return np.ndarray(array.shape, array.dtype, block.bytes, offset, array.strides)


def device(values) -> cupy.ndarray:
    """A new array with the content of a NumPy array."""
    values = np.asarray(values)
    result = empty(values.shape, values.dtype)
    host(result)[...] = values
    return result
