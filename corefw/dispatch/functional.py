"""Devices over libraries whose arrays cannot be changed: memory, strides, views and in-place changes on top of them.

An array of such a device is a `StridedArray`, a window on a `Storage`, which holds an immutable array of the library;
to write means to let the storage hold another one. Kernels see the library's arrays only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from itertools import count
from math import prod
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.registry import registry
from corefw.dispatch.runtime import Runtime
from corefw.dtypes import dtype
from corefw.errors import DeviceError
from corefw.shapes import Shape, contiguous_strides

_PAGE = 1 << 48  # between the addresses that storages are given
_numbers = count(1)


class Storage:
    """A device's memory: `values`, the library's array of all its elements in row-major order, of any shape."""

    __slots__ = ("address", "dtype", "index", "size", "values")

    def __init__(self, values: Any, dtype: np.dtype, index: int | None):
        self.values = values
        self.dtype = dtype
        self.index = index
        self.size = prod(values.shape)
        self.address = next(_numbers) * _PAGE


class StridedArray:
    """Elements of a storage, by shape, strides in bytes and an offset in elements of `dtype`."""

    __slots__ = ("dtype", "offset", "shape", "storage", "strides")

    def __init__(self, storage: Storage, shape: Shape, strides: Shape, offset: int, dtype: np.dtype):
        self.storage = storage
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def steps(self) -> Shape:
        """The strides in elements."""
        return tuple(stride // self.dtype.itemsize for stride in self.strides)


@lru_cache(maxsize=4096)
def dense_order(shape: Shape, steps: Shape) -> tuple[int, ...] | None:
    """The dimensions of several elements from the slowest to the fastest, where these lie without gaps and those that
    are repeated are left out; None where there are gaps.

    >>> dense_order((2, 3), (1, 2)), dense_order((4, 3), (0, 1)), dense_order((2, 2), (4, 1))
    ((1, 0), (1,), None)
    """
    order = sorted((d for d, size in enumerate(shape) if size > 1 and steps[d]), key=lambda d: -steps[d])
    expected = 1
    for d in reversed(order):
        if steps[d] != expected:
            return None
        expected *= shape[d]
    return tuple(order)


def positions(shape: Shape, steps: Shape, offset: int) -> np.ndarray:
    """Where in the memory the elements lie, in row-major order.

    >>> positions((2, 2), (1, 2), 3)
    array([3, 5, 4, 6])
    """
    found = np.array(offset, dtype=np.int64)
    for size, step in zip(shape, steps, strict=True):
        found = found[..., None] + step * np.arange(size)
    return found.reshape(-1)


class FunctionalRuntime(Runtime):
    """The memory of a device over an array namespace that changes nothing in place.

    A subclass sets `device_type`, and may say in the methods of the first part what its library does otherwise. `xp`
    has these functions of the array API standard: ``asarray``, ``astype``, ``broadcast_to``, ``concat``,
    ``permute_dims``, ``real``, ``reshape``, ``take``, ``zeros``.
    """

    array_type = StridedArray

    def __init__(self, xp: Any):
        self.xp = xp

    # -- the library ----------------------------------------------------------------------------------------------
    def from_host(self, host: np.ndarray, index: int | None) -> Any:
        """The library's array with the content of a NumPy array, which may change afterwards."""
        return self.xp.asarray(host, dtype=self.library_dtype(host.dtype), copy=True)

    def to_host(self, values: Any) -> np.ndarray:
        """A NumPy array with the content of the library's."""
        return np.asarray(values)

    def library_dtype(self, dtype: np.dtype) -> Any:
        """What the library calls an element type: NumPy's own name where it has none."""
        return getattr(self.xp, dtype.name, dtype)

    def numpy_dtype(self, dtype: Any) -> np.dtype:
        """What NumPy calls an element type of the library."""
        return dtype if isinstance(dtype, np.dtype) else self._numpy_dtypes[dtype]

    def updated(self, values: Any, where: np.ndarray, new: Any) -> Any:
        """`values` (1-d) with the elements of `new` (1-d) at the positions `where`. A library that can do so in one
        step says how here."""
        chosen = np.arange(values.shape[0])
        chosen[where] = values.shape[0] + np.arange(len(where))
        return self._take(self.xp.concat([values, new]), chosen)

    @cached_property
    def library_type(self) -> type:
        """The class of the library's arrays."""
        return type(self.xp.zeros(()))

    @cached_property
    def _numpy_dtypes(self) -> dict[Any, np.dtype]:
        stored = [d.numpy for d in dtypes.ALL if d.numpy is not None and hasattr(self.xp, d.numpy.name)]
        return {self.library_dtype(element): element for element in stored}

    def _arrived(self, host: np.ndarray, index: int | None) -> Any:
        """`from_host`, of bools whose bytes are 0 and 1; DeviceError where the library makes another type of it."""
        if host.dtype == bool:
            host = host.view(np.uint8) != 0
        return self._kept(self.from_host(host, index), host.dtype)

    def _kept(self, values: Any, element: np.dtype) -> Any:
        """An array of the library that was to have an element type; DeviceError if it has another one."""
        if (found := self.numpy_dtype(values.dtype)) != element:
            raise DeviceError(
                f"device '{self.device_type}': its library made {found.name} of {element.name}; leave {element.name} "
                "out of the runtime's `dtypes`, or tell the library to keep it"
            )
        return values

    def _take(self, values: Any, where: np.ndarray) -> Any:
        return self.xp.take(values, self.xp.asarray(where), axis=0)

    # -- between the two ------------------------------------------------------------------------------------------
    def array(self, values: Any, index: int | None = None) -> StridedArray:
        """An array of the device over one of the library."""
        shape, element = tuple(values.shape), self.numpy_dtype(values.dtype)
        strides = tuple(step * element.itemsize for step in contiguous_strides(shape))
        return StridedArray(Storage(values, element, index), shape, strides, 0, element)

    def read(self, array: StridedArray) -> Any:
        """The elements of an array, as one of the library."""
        storage, shape, steps = array.storage, array.shape, array.steps
        if array.dtype != storage.dtype:
            return self._arrived(self._reinterpreted(array)[positions(shape, steps, array.offset)].reshape(shape), None)
        if storage.values.shape == shape and steps == contiguous_strides(shape):
            return storage.values
        flat = self.xp.reshape(storage.values, (-1,))
        order = dense_order(shape, steps)
        if order is None or 0 in shape:
            return self.xp.reshape(self._take(flat, positions(shape, steps, array.offset)), shape)
        sizes = tuple(shape[d] for d in order)
        dense = self.xp.reshape(flat[array.offset : array.offset + prod(sizes)], sizes)
        dense = self.xp.permute_dims(dense, tuple(order.index(d) for d in sorted(order)))
        dense = self.xp.reshape(dense, tuple(size if d in order else 1 for d, size in enumerate(shape)))
        return self.xp.broadcast_to(dense, shape)

    def write(self, array: StridedArray, values: Any) -> None:
        """Put one of the library's arrays, of the same shape and dtype, in the place of an array's elements."""
        storage, shape, steps = array.storage, array.shape, array.steps
        if 0 in shape:
            return
        if array.dtype != storage.dtype:
            memory = self._reinterpreted(array).copy()
            memory[positions(shape, steps, array.offset)] = self.to_host(values).reshape(-1)
            storage.values = self._arrived(memory.view(storage.dtype), storage.index)
        elif array.size == storage.size and steps == contiguous_strides(shape):
            storage.values = values
        else:
            flat = self.xp.reshape(storage.values, (-1,))
            where = positions(shape, steps, array.offset)
            storage.values = self.updated(flat, where, self.xp.reshape(values, (-1,)))

    def _reinterpreted(self, array: StridedArray) -> np.ndarray:
        """All of an array's memory on the host, as elements of its dtype."""
        return np.ascontiguousarray(self.to_host(array.storage.values)).reshape(-1).view(array.dtype)

    def _converted(self, values: Any, element: np.dtype) -> Any:
        if self.numpy_dtype(values.dtype) == element:
            return values
        if self.numpy_dtype(values.dtype).kind == "c" and element.kind not in "cb":
            values = self.xp.real(values)
        with np.errstate(all="ignore"):  # the library may be NumPy's: infinities tell it
            return self._kept(self.xp.astype(values, self.library_dtype(element)), element)

    # -- kernels --------------------------------------------------------------------------------------------------
    def kernel(self, op: str, function: Callable, taken: Iterable[dtype] = dtypes.ALL) -> Kernel:
        """The kernel of an op from a function of the library's arrays, which returns new ones.

        Where the op's kernels change arguments in place, such as the steps of optimizers, it returns a tuple of their
        new values, in their order: a list for each list.
        """
        unwrapped, wrapped, library_type = self._unwrapped, self.array, self.library_type

        def computed(*arguments):
            result = function(*map(unwrapped, arguments))
            if isinstance(result, library_type):
                return wrapped(result)
            return tuple(map(wrapped, result)) if isinstance(result, tuple) else result

        def stepped(*arguments):
            for position, values in zip(changed, function(*map(unwrapped, arguments)), strict=True):
                for array, new in zip(arguments[position], values, strict=True):
                    if isinstance(array, StridedArray):
                        self.write(array, self._converted(new, array.dtype))
                    else:  # a count of steps, on the host
                        array[...] = new

        declared = registry.declared.get(op)
        changed = [i for i, p in enumerate(declared.kernel_parameters) if p.role] if declared else []
        return Kernel(op, stepped if changed else computed, frozenset(taken))

    def _unwrapped(self, value: Any) -> Any:
        if isinstance(value, StridedArray):
            return self.read(value)
        return [self._unwrapped(one) for one in value] if isinstance(value, list) else value

    # -- what the frontend asks -----------------------------------------------------------------------------------
    def empty(self, shape, dtype, index):
        values = self.xp.zeros(shape, dtype=self.library_dtype(dtype.numpy))
        return self.array(self._kept(values, dtype.numpy), index)

    def upload(self, host, index):
        return self.array(self._arrived(host, index), index)

    def download(self, array):
        return np.array(self.to_host(self.read(array)), dtype=array.dtype)

    def copy(self, target, source):
        values = self._converted(self.read(source), target.dtype)
        self.write(target, self.xp.broadcast_to(values, target.shape))

    def clone(self, array):
        order = dense_order(array.shape, array.steps)
        if order is None or len(order) != sum(size > 1 for size in array.shape) or array.dtype != array.storage.dtype:
            return self.array(self.read(array), array.storage.index)
        flat = self.xp.reshape(array.storage.values, (-1,))[array.offset : array.offset + array.size]
        return StridedArray(Storage(flat, array.dtype, array.storage.index), array.shape, array.strides, 0, array.dtype)

    def cast(self, array, dtype):
        return self.array(self._converted(self.read(array), dtype.numpy), array.storage.index)

    def as_strided(self, array, shape, strides, offset, dtype=None):
        element = array.dtype if dtype is None else dtype.numpy
        last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
        bytes_held = array.storage.size * array.storage.dtype.itemsize
        if 0 not in shape and (offset < 0 or (last + 1) * element.itemsize > bytes_held):
            raise ValueError(f"elements up to {last} of a memory of {bytes_held // element.itemsize}")
        return StridedArray(
            array.storage, tuple(shape), tuple(step * element.itemsize for step in strides), offset, element
        )

    def storage_offset(self, array):
        return array.offset

    def address(self, array):
        return array.storage.address + array.offset * array.dtype.itemsize

    def memory_bytes(self, array):
        return array.storage.size * array.storage.dtype.itemsize
