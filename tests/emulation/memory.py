"""Host memory that CuPy takes for a device's: guarded at both ends, and NaN (or -1) until it is written."""

import weakref
from collections import defaultdict
from contextlib import contextmanager

import cupy
import numpy as np

from corefw_cupy.compiler import allocating
from tests.emulation import queue

GUARD = 64
UNIT = 512  # bytes: CuPy's pool gives out multiples, and says so of memory whose array is smaller
MARK = 0xA5
POISON = 0xFF  # what is read before it was written, as with COREFW_POISON
_new = allocating(cupy.ndarray)
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
        self.size, self.rounded, self.pooled = size, -(-size // UNIT) * UNIT, False
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
    return _pointer(block, block)


def _pointer(block: Block, owner: object) -> cupy.cuda.MemoryPointer:
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.address, block.rounded, owner, 0), 0)


class Lent:
    """A block of a pool as long as an array has it."""

    def __init__(self, pool: "Pool", block: Block):
        self.pool, self.block = pool, block

    def __del__(self):
        self.pool.free[self.block.size].append(self.block)


class Pool:
    """Memory that is given out again to those who ask this pool."""

    def __init__(self):
        self.blocks: list[Block] = []
        self.free: defaultdict[int, list[Block]] = defaultdict(list)  # by size

    def malloc(self, size: int) -> cupy.cuda.MemoryPointer:
        """What is an allocator for CuPy."""
        if self.free[size]:
            block = self.free[size].pop()
        else:
            block = Block(size)
            block.pooled = True
            _blocks[block.address] = block
            self.blocks.append(block)
        return _pointer(block, Lent(self, block))

    def used_bytes(self) -> int:
        """Bytes of arrays that live."""
        return self.total_bytes() - sum(block.rounded for blocks in self.free.values() for block in blocks)

    def total_bytes(self) -> int:
        """Bytes held."""
        return sum(block.rounded for block in self.blocks)


_allocator = allocate


def get_allocator():
    """Where new arrays come from."""
    return _allocator


@contextmanager
def using_allocator(chosen):
    """A with-block in which new arrays come from another place."""
    global _allocator
    before, _allocator = _allocator, chosen
    try:
        yield
    finally:
        _allocator = before


def empty(shape, dtype) -> cupy.ndarray:
    """A new array in such memory, wherever CuPy's other arrays lie."""
    with cupy.cuda.using_allocator(_allocator):
        return _new(shape, dtype)


def used() -> int:
    """Bytes of all arrays that live outside of pools."""
    return sum(block.rounded for block in _blocks.values() if not block.pooled)


def blocks_of(arrays: list[cupy.ndarray]) -> list[Block]:
    """The memory of arrays."""
    return [block for array in arrays if (block := _blocks.get(array.data.mem.ptr)) is not None]


def check(name: str, blocks: list[Block]) -> None:
    """Raise if a kernel wrote outside of its arrays' memory."""
    for block in blocks:
        if not block.whole():
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
