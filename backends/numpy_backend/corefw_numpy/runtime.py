"""The memory of the device `cpu`: NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corefw.dispatch.flags import unheard
from corefw.dispatch.runtime import NUMBERS, Runtime
from corefw.errors import leaves_the_memory, read_only
from corefw.shared_memory import SharedMemory
from corefw_numpy.memory import order_like


def _copying(copyto: Callable, read_only: Callable):
    """What writes one array into another; numbers that its dtype does not hold are no news."""

    @unheard
    def copy(self, target, source):
        try:
            copyto(target, source, casting="unsafe")
        except ValueError:
            if target.flags.writeable:
                raise
            raise read_only("copy") from None

    return copy


#: what NumPy's functions give instead of an array: for 0-d operands numbers, of subclasses their own
_RESULTS = (*NUMBERS, np.ndarray)


class NumpyRuntime(Runtime):
    """`cpu`: an array is a `numpy.ndarray`, shared with NumPy in both directions."""

    device_type = "cpu"
    array_type = np.ndarray
    dlpack_type = 1

    def __init__(self, xp=np):
        self._new = xp.empty

    def current_device(self):
        return None

    def empty(self, shape, dtype, index):
        return self._new(shape, dtype.numpy)

    def upload(self, host, index):
        return host

    def download(self, array):
        return array

    copy = _copying(np.copyto, read_only)

    def clone(self, array):
        return array.copy(order_like(array))

    def cast(self, array, dtype):
        if array.dtype.kind == "c" and dtype.numpy.kind not in "cb":
            array = array.real
        # NaN, infinities and numbers out of range have no integer; C leaves what they give open.
        with np.errstate(invalid="ignore", over="ignore"):
            return array.astype(dtype.numpy, order_like(array))

    def wrap(self, value):
        if isinstance(value, _RESULTS):
            return np.asarray(value)
        raise self.refused(value)

    def from_dlpack(self, producer):
        array = np.from_dlpack(producer)
        return array if array.flags.writeable or producer.read_only else np.asarray(_Writable(array))

    def memory_bytes(self, array):
        return _memory(array).nbytes

    def share(self, array):
        shared = np.ndarray(array.shape, array.dtype, SharedMemory.of_size(array.nbytes))
        shared[...] = array
        return shared

    def is_shared(self, array):
        return isinstance(_memory(array).base, SharedMemory)

    def as_strided(self, array, shape, strides, offset, dtype=None):
        memory = _memory(array)
        if not memory.flags.c_contiguous:  # dense in another order of its dimensions
            memory = memory.transpose(np.argsort([-step for step in memory.strides], kind="stable"))
        element = array.dtype if dtype is None else dtype.numpy
        size = element.itemsize
        if 0 in shape:
            return np.ndarray(shape, element)  # NumPy wants even the place of no element inside the memory
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
        if (last + 1) * size > memory.nbytes:  # NumPy asks nothing of memory without elements
            raise leaves_the_memory(shape, strides, offset)
        return np.ndarray(shape, element, memory, offset * size, [s * size for s in strides])

    def is_writable(self, array):
        return array.flags.writeable

    def is_contiguous(self, array):
        return array.flags.c_contiguous

    def storage_offset(self, array):
        memory = _memory(array)
        return 0 if memory is array else (array.ctypes.data - memory.ctypes.data) // array.dtype.itemsize

    def address(self, array):
        return array.__array_interface__["data"][0]  # quicker than `ctypes`


class _Writable:
    """The memory of an array that NumPy lets nobody write, because its capsule could not say who may."""

    def __init__(self, array: np.ndarray):
        self.owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _memory(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory that `array` shows; its first element is the memory's lowest, as no array with
    negative strides becomes a tensor."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # what numpy.lib.stride_tricks.as_strided puts between
        if not isinstance(base, np.ndarray):
            return array
        array = base
