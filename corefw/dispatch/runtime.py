"""Runtimes: what the frontend asks of a device - memory, copies, views - and the built-in `meta` device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corefw import shapes
from corefw.dtypes import ALL, dtype
from corefw.errors import DeviceError, KernelResultError
from corefw.shapes import Shape


def poisons(environment: Mapping[str, str]) -> bool:
    """Whether new memory is to be filled with bytes 0xFF, by COREFW_POISON: what is read before it was written is then
    NaN, or -1 for integers. Backends ask once, when they are loaded.

    >>> poisons({"COREFW_POISON": "1"}), poisons({})
    (True, False)
    """
    wanted = environment.get("COREFW_POISON", "0")
    if wanted not in ("0", "1"):
        raise ImportError(f"COREFW_POISON={wanted!r}: expected 1 to fill new memory with bytes 0xFF, or 0")
    return wanted == "1"


class Runtime:
    """One device type's memory. A plugin subclasses it; everything above the registry uses only this.

    An array is opaque but has ``shape``, ``strides`` (in bytes), ``dtype`` (a NumPy dtype), ``ndim`` and ``nbytes``;
    ``array_type`` is its class.
    """

    device_type: str
    array_type: type
    dlpack_type: int | None = None  # the DLDeviceType of its memory; None if other libraries cannot share it
    dtypes: frozenset[dtype] = frozenset(ALL)  # those that the device stores
    has_graphs = False  # then kernels of optimizer steps take learning rates and counts of steps on the device too

    def device_count(self) -> int:
        """How many devices there are."""
        return 1

    def current_device(self) -> int | None:
        """The index that "the device" without an index means; None for a type with a single, unnumbered device."""
        return 0

    def empty(self, shape: Shape, dtype: dtype, index: int | None) -> Any:
        """A new contiguous array with arbitrary content."""
        raise NotImplementedError

    def upload(self, host: np.ndarray, index: int | None) -> Any:
        """A new array with the content of a NumPy array (on cpu: the array itself)."""
        raise NotImplementedError

    def upload_soon(self, host: np.ndarray, index: int | None) -> Any:
        """What `upload` gives, perhaps before `host` has been read: it must not change until the device is waited
        for."""
        return self.upload(host, index)

    def transfer(self, array, index: int | None) -> Any:
        """A copy of the array on another device of this type."""
        return self.upload(self.download(array), index)

    def download(self, array) -> np.ndarray:
        """The content as a NumPy array (on cpu: the array itself, sharing memory)."""
        raise NotImplementedError

    def copy(self, target, source) -> None:
        """Write `source`, broadcast and cast, into `target`; both of this device, of any strides."""
        raise NotImplementedError

    def clone(self, array) -> Any:
        """A new array with the same content and, where it is dense, the same memory order."""
        raise NotImplementedError

    def cast(self, array, dtype: dtype) -> Any:
        """A new array of `dtype` with the content converted as C converts."""
        raise NotImplementedError

    def as_strided(self, array, shape: Shape, strides: Shape, offset: int, dtype: dtype | None = None) -> Any:
        """A view of the array's memory, as elements of `dtype` (None: the array's): strides and offset in these
        elements, offset counted from the memory's start."""
        raise NotImplementedError

    def is_writable(self, array) -> bool:
        """Whether the array's memory may be written to."""
        return True

    def is_contiguous(self, array) -> bool:
        """Whether the elements lie in memory without gaps, in row-major order; none do."""
        if 0 in array.shape:
            return True
        expected = array.dtype.itemsize
        for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True

    def storage_offset(self, array) -> int:
        """How many elements lie between the memory's start and the array's first element."""
        raise NotImplementedError

    def address(self, array) -> int:
        """The address of the first element."""
        raise NotImplementedError

    def index_of(self, array) -> int | None:
        """The index of the device in whose memory the array lies; None where that cannot be told."""
        return None

    def guarded(self, kernel: Callable, index: int | None) -> Callable:
        """`kernel` for arrays of device `index`, where kernels run on a current device that may be another one."""
        return kernel

    def synchronize(self, index: int | None = None) -> None:
        """Wait until all work given to the device is done."""

    def wrap(self, value) -> Any:
        """An array from what a kernel returned instead of one: from a number, as NumPy ufuncs give for 0-d operands.

        Raises KernelResultError for anything else, such as an array of another device, which is never copied unasked.
        """
        if isinstance(value, NUMBERS):
            return self.upload(np.asarray(value), None)
        raise self.refused(value)

    def refused(self, value) -> KernelResultError:
        """The error for what a kernel returned instead of an array."""
        return KernelResultError(
            f"{_calling_op()}: its kernel on '{self.device_type}' returned {_class_name(type(value))}, not "
            f"{_class_name(self.array_type)}; nothing is copied to a device unasked: return an array of the device"
        )

    def constant(self, number, dtype: dtype, index: int | None) -> Any:
        """A 0-d array of a Python number; the array may be shared and is never written to."""
        if not number:  # 0.0 and -0.0 are equal keys
            return self.upload(host_number(number, dtype), index)
        return _constant(self, number, dtype, index)

    def memory_bytes(self, array) -> int:
        """The bytes of the memory of which the array shows all or a part."""
        return array.nbytes

    def share(self, array) -> Any:
        """A copy in memory that forked processes share (the array itself where all memory is)."""
        return array

    def is_shared(self, array) -> bool:
        """Whether forked processes share the array's memory."""
        return True

    def pinned(self, host: np.ndarray) -> np.ndarray:
        """A copy of a NumPy array in memory from which this device copies fast."""
        return host

    def is_pinned(self, host: np.ndarray) -> bool:
        """Whether a NumPy array lies in such memory."""
        return False

    def record_stream(self, array, stream) -> None:
        """Keep the array's memory, once it is let go of, until the work that `stream` has been given is done."""
        raise DeviceError(f"record_stream: device '{self.device_type}' has no streams")

    def is_capturing(self) -> bool:
        """Whether the work that this thread gives to the device is recorded in a graph, instead of done."""
        return False

    def ranges(self) -> Any:
        """What marks moments and ranges for the vendor's profilers, by the functions of `torch.cuda.nvtx`; DeviceError
        where there is none."""
        raise DeviceError(f"device type '{self.device_type}' has no marks for profilers")

    def new_graph(self) -> Any:
        """A graph of work: `begin(pool)`, `end()` and `abandon()` record what the current stream is given, `replay()`
        does it, `reset()` forgets it; `pool` is where it allocates."""
        raise self._no_graphs()

    def _no_graphs(self) -> DeviceError:
        return DeviceError(f"device '{self.device_type}' has no graphs: its work cannot be captured and replayed")

    def capture_stream(self) -> Any:
        """The stream, a with-block, on which the current device captures graphs unless another one is chosen."""
        raise self._no_graphs()

    def new_graph_pool(self) -> Any:
        """Memory for graphs that are replayed one after another, in the order of their captures."""
        raise self._no_graphs()

    def new_generator_state(self) -> Any:
        """A place on the device for a generator's seed and offset, given by `write(seed, offset)`; while a graph is
        captured, kernels are given it for the seed, and offsets from there."""
        raise self._no_graphs()

    def to_dlpack(self, array, **options) -> Any:
        """A DLPack capsule of the array's memory; `options` are those of ``__dlpack__`` in the array API."""
        return array.__dlpack__(**options)

    def from_dlpack(self, producer) -> Any:
        """An array over the memory of another library's, an object with ``__dlpack__`` on this device.

        It can be written, unless `producer` has a true ``read_only`` after it was asked.
        """
        raise DeviceError(f"device '{self.device_type}' does not take memory from other libraries")

    def from_interface(self, producer) -> tuple[Any, int]:
        """An array over the memory of an object with ``__cuda_array_interface__``, and the index of its device."""
        raise DeviceError(f"device '{self.device_type}' does not take memory from other libraries")

    def item(self, array) -> Any:
        """The only element as a Python number."""
        return self.download(array).item()


#: what a kernel may return instead of a 0-d array
NUMBERS = (np.generic, bool, int, float, complex)


def _class_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _calling_op() -> str:
    """The op whose generated function is running."""
    frame = sys._getframe()
    while frame.f_back is not None and "OP" not in frame.f_globals:
        frame = frame.f_back
    return frame.f_globals["OP"].name if "OP" in frame.f_globals else "an op"


def host_number(number, dtype: dtype) -> np.ndarray:
    """A Python number as a 0-d NumPy array; integers wrap as in C."""
    if (
        number.__class__ is int
        and dtype.is_floating_point is False
        and dtype.is_complex is False
        and dtype.name != "bool"
    ):
        bits = 8 * dtype.itemsize
        number &= (1 << bits) - 1
        return np.array(number, dtype=f"u{dtype.itemsize}").astype(dtype.numpy)
    return np.array(number, dtype=dtype.numpy)


@lru_cache(maxsize=1024)
def _constant(runtime: Runtime, number, dtype: dtype, index: int | None):
    return runtime.upload(host_number(number, dtype), index)


class MetaArray:
    """A shape and a dtype without memory."""

    __slots__ = ("dtype", "offset", "shape", "strides")

    def __init__(self, shape: Shape, dtype: np.dtype, strides: Shape | None = None, offset: int = 0):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.strides = strides or tuple(s * dtype.itemsize for s in shapes.contiguous_strides(self.shape))
        self.offset = offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


class MetaRuntime(Runtime):
    """The device "meta": ops compute shapes and dtypes only, from their shape rules."""

    device_type = "meta"
    array_type = MetaArray

    def current_device(self) -> None:
        return None

    def empty(self, shape, dtype, index):
        return MetaArray(shape, dtype.numpy)

    def upload(self, host, index):
        return MetaArray(host.shape, host.dtype)

    def download(self, array):
        raise DeviceError("a meta tensor has no data: create the tensor on a real device, or use empty_like to get one")

    def item(self, array):
        raise DeviceError("Tensor.item() cannot be called on meta tensors")

    def copy(self, target, source):
        shapes.broadcast(target.shape, source.shape)

    def clone(self, array):
        return MetaArray(array.shape, array.dtype)

    def cast(self, array, dtype):
        return MetaArray(array.shape, dtype.numpy)

    def as_strided(self, array, shape, strides, offset, dtype=None):
        element = array.dtype if dtype is None else dtype.numpy
        return MetaArray(shape, element, tuple(s * element.itemsize for s in strides), offset)

    def storage_offset(self, array):
        return array.offset

    def address(self, array):
        return 0
