"""The memory of the device `cuda`: CuPy arrays."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.runtime import Runtime
from corefw_cupy.cuda import Cuda


class CupyRuntime(Runtime):
    """`cuda`: an array is a `cupy.ndarray`, on the current stream of its device."""

    device_type = "cuda"

    def __init__(self, cuda: Cuda):
        self.cupy = cuda.xp
        self.array_type = cuda.xp.ndarray
        self.copying = cuda.copying
        self.faults = cuda.faults
        self._peaks: dict[int, dict[str, int]] = {}

    # -- arrays -----------------------------------------------------------------------------------------------------
    def empty(self, shape, dtype, index):
        with self._on(index):
            return self.cupy.empty(shape, dtype.numpy)

    def copy(self, target, source):
        self.copying.copy(target, source)

    def clone(self, array):
        return self.copying.clone(array)

    def cast(self, array, dtype):
        return self.copying.cast(array, dtype.numpy)

    def wrap(self, value):
        return value if isinstance(value, self.array_type) else self.upload(np.asarray(value), None)

    def as_strided(self, array, shape, strides, offset, dtype=None):
        element = array.dtype if dtype is None else dtype.numpy
        memory = array.data.mem
        start = self.cupy.cuda.MemoryPointer(memory, offset * element.itemsize)
        return self.cupy.ndarray(shape, element, start, tuple(step * element.itemsize for step in strides))

    def is_contiguous(self, array):
        return array.flags.c_contiguous

    def storage_offset(self, array):
        return (array.data.ptr - array.data.mem.ptr) // array.dtype.itemsize

    def address(self, array):
        return array.data.ptr

    def memory_bytes(self, array):
        return array.data.mem.size

    # -- between host and device ------------------------------------------------------------------------------------
    def upload(self, host, index):
        with self._on(index):
            array = self.cupy.empty(host.shape, host.dtype)
            array.set(host)
            return array

    def download(self, array):
        host = array.get()
        self.faults.check()
        return host
