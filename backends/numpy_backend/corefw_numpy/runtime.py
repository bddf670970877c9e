"""The memory of the device `cpu`: NumPy arrays."""

from __future__ import annotations

import numpy as np

from corefw.dispatch.runtime import Runtime


class NumpyRuntime(Runtime):
    """`cpu`: an array is a `numpy.ndarray`, shared with NumPy in both directions."""

    device_type = "cpu"
    array_type = np.ndarray

    def current_device(self):
        return None

    def empty(self, shape, dtype, index):
        return np.empty(shape, dtype.numpy)

    def upload(self, host, index):
        return host

    def download(self, array):
        return array

    def copy(self, target, source):
        np.copyto(target, source, casting="unsafe")

    def clone(self, array):
        return array.copy("K")

    def cast(self, array, dtype):
        return array.astype(dtype.numpy)

    def wrap(self, value):
        return np.asarray(value)

    def as_strided(self, array, shape, strides, offset):
        memory = _memory(array)
        itemsize = array.dtype.itemsize
        return np.ndarray(
            shape, array.dtype, memory, _lowest(memory, array) + offset * itemsize, [stride * itemsize for stride in strides]
        )

    def storage_offset(self, array):
        return (array.ctypes.data - _memory(array).ctypes.data) // array.dtype.itemsize

    def address(self, array):
        return array.ctypes.data


def _memory(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory that `array` shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _lowest(memory: np.ndarray, array: np.ndarray) -> int:
    """Where the storage begins inside the owner's memory, in bytes: 0, as offsets count from the owner's start."""
    return 0
