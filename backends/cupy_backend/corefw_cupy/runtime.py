"""The memory of the device `cuda`: CuPy arrays, their way to and from the host, and what GPUs say of themselves."""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from types import SimpleNamespace

import numpy as np

from corefw.dispatch.runtime import Runtime
from corefw.errors import leaves_the_memory
from corefw_cupy.cuda import Cuda
from corefw_cupy.cudnn import frontend
from corefw_cupy.graphs import GeneratorState, Graph, GraphPool, Graphs
from corefw_cupy.in_flight import InFlight
from corefw_cupy.layouts import inverse, memory_order
from corefw_cupy.memory_use import MemoryUse
from corefw_cupy.profiler_marks import Ranges
from corefw_cupy.storages import Storages
from corefw_cupy.streams import Event, Stream

_HERE = nullcontext()
_WAITS = "it waits for the device, whose work is not done before the replay"
_UNKNOWN = "elements are not known before the replay"


class CupyRuntime(Runtime):
    """`cuda`: an array is a `cupy.ndarray`; work goes to the current stream of its device."""

    device_type = "cuda"
    dlpack_type = 2
    has_graphs = True

    def __init__(self, cuda: Cuda):
        self.cupy = cuda.xp
        self.driver = cuda.xp.cuda.runtime
        self.array_type = cuda.xp.ndarray
        self.allocate = cuda.empty
        self.copying = cuda.copying
        self.device_asserts = cuda.device_asserts
        self.cuda = cuda
        self.capturing = cuda.capturing
        self.graphs = Graphs(cuda)
        self.memory_use = MemoryUse(cuda.xp, self.graphs.pools)
        self.in_flight = InFlight(cuda.xp)
        self.capture_streams: dict[int, Stream] = {}
        self.storages = Storages(cuda.xp)
        self._ranges: Ranges | None = None

    # -- devices ----------------------------------------------------------------------------------------------------
    def device_count(self):
        return self.driver.getDeviceCount()

    def current_device(self):
        return self.driver.getDevice()

    def set_device(self, index: int) -> None:
        """Make another device the current one."""
        self.driver.setDevice(index)

    def on(self, index: int | None):
        """A with-block in which a device is the current one."""
        if index is None or index == self.driver.getDevice():
            return _HERE
        return self.cupy.cuda.Device(index)

    def guarded(self, kernel, index):
        """`kernel` where it runs on device `index`: as it is if there is only one."""
        if self.device_count() == 1:
            return kernel

        def on_device(*arguments, **keywords):
            with self.on(index):
                return kernel(*arguments, **keywords)

        return on_device

    @property
    def cudnn_version(self) -> int | None:
        """The version of cuDNN, None without it."""
        module = frontend(self.cupy)
        return None if module is None else module.backend_version()

    def synchronize(self, index=None):
        self.capturing.refuse("synchronize", _WAITS)
        with self.on(index):
            self.driver.deviceSynchronize()
        self.device_asserts.check()

    def device_properties(self, index: int) -> SimpleNamespace:
        """What PyTorch's programs ask of a GPU."""
        found = self.driver.getDeviceProperties(index)
        return SimpleNamespace(
            name=found["name"].decode(),
            major=found["major"],
            minor=found["minor"],
            total_memory=found["totalGlobalMem"],
            multi_processor_count=found["multiProcessorCount"],
            warp_size=found["warpSize"],
            max_threads_per_multi_processor=found["maxThreadsPerMultiProcessor"],
        )

    def device_info(self, index: int) -> dict:
        """The name and the compute capability of a GPU."""
        found = self.device_properties(index)
        return {"name": found.name, "capability": (found.major, found.minor)}

    # -- streams and memory -----------------------------------------------------------------------------------------
    def new_stream(self, index: int, priority: int) -> Stream:
        """A new queue of work."""
        with self.on(index):
            return Stream(self.cuda, self.cupy.cuda.Stream(non_blocking=True, priority=priority), index)

    def current_stream(self, index: int) -> Stream:
        """The queue that work goes to."""
        with self.on(index):
            return Stream(self.cuda, self.cupy.cuda.get_current_stream(), index)

    def default_stream(self, index: int) -> Stream:
        """The queue that work goes to at first."""
        return Stream(self.cuda, self.cupy.cuda.Stream.null, index)

    def new_event(self, enable_timing: bool, blocking: bool) -> Event:
        """A new mark in queues."""
        return Event(self.cuda, self.cupy.cuda.Event(block=blocking, disable_timing=not enable_timing))

    def empty_cache(self) -> None:
        """Give unused memory of all devices, and unused pinned memory, back."""
        self.capturing.refuse("empty_cache", "memory is given back when the device has been waited for")
        self.memory_use.release()

    def memory_statistics(self, index: int) -> dict[str, int]:
        """Bytes "allocated" and "reserved" now, and the most so far as "max_allocated" and "max_reserved"."""
        return self.memory_use.statistics(index)

    def reset_memory_statistics(self, index: int) -> None:
        """Begin to count the maxima anew."""
        self.memory_use.reset(index)

    def memory_info(self, index: int) -> tuple[int, int]:
        """Bytes of a GPU that are free, and all."""
        with self.on(index):
            return self.driver.memGetInfo()

    def ranges(self):
        if not self.cupy.cuda.nvtx.available:
            return super().ranges()
        if self._ranges is None:
            self._ranges = Ranges(self.cupy.cuda.nvtx)
        return self._ranges

    # -- graphs -----------------------------------------------------------------------------------------------------
    def is_capturing(self):
        return self.capturing.capture is not None

    def new_graph(self):
        return Graph(self.graphs)

    def new_graph_pool(self) -> GraphPool:
        return self.graphs.pool()

    def new_generator_state(self):
        return GeneratorState(self.cuda)

    def capture_stream(self):
        index = self.current_device()
        if index not in self.capture_streams:
            self.capture_streams[index] = self.new_stream(index, 0)
        return self.capture_streams[index]

    def constant(self, number, dtype, index):
        if (graph := self.capturing.capture) is None:
            return super().constant(number, dtype, index)
        with self.graphs.outside():  # it is shared with what is not captured
            made = super().constant(number, dtype, index)
        graph.kept.append(made)
        return made

    # -- arrays -----------------------------------------------------------------------------------------------------
    def empty(self, shape, dtype, index):
        with self.on(index):
            return self.allocate(shape, dtype.numpy)

    def copy(self, target, source):
        self.copying.copy(target, source)

    def clone(self, array):
        return self.copying.clone(array)

    def cast(self, array, dtype):
        return self.copying.cast(array, dtype.numpy)

    def wrap(self, value):
        return value if isinstance(value, self.array_type) else super().wrap(value)

    def as_strided(self, array, shape, strides, offset, dtype=None):
        element = array.dtype if dtype is None else dtype.numpy
        storage, last = self.storages.of(array), offset
        for size, step in zip(shape, strides):
            last += (size - 1) * step
        if (last + 1) * element.itemsize > storage.size and 0 not in shape:
            raise leaves_the_memory(shape, strides, offset)
        start = self.cupy.cuda.MemoryPointer(storage, offset * element.itemsize)
        return self.cupy.ndarray(shape, element, start, tuple([step * element.itemsize for step in strides]))

    def is_contiguous(self, array):
        return array._c_contiguous

    def storage_offset(self, array):
        return (array.data.ptr - array.data.mem.ptr) // array.dtype.itemsize

    def address(self, array):
        return array.data.ptr

    def index_of(self, array):
        return array.device.id

    def memory_bytes(self, array):
        return self.storages.of(array).size

    def from_dlpack(self, producer):
        return self.storages.adopted(self.cupy.from_dlpack(producer))

    def from_interface(self, producer):
        array = self.storages.adopted(self.cupy.asarray(producer))
        return array, array.device.id

    # -- between host and device ------------------------------------------------------------------------------------
    def upload(self, host, index):
        return self._upload(host, index, wait=True)

    def upload_soon(self, host, index):
        return self._upload(host, index, wait=False)

    def _upload(self, host, index, wait: bool):
        with self.on(index):
            if host.ndim == 0:
                return self.copying.full((), host[()], host.dtype)
            host, axes = _in_memory_order(host, np.ascontiguousarray)
            if host.dtype.kind == "b":  # functions in CUDA C++ take True for 1, other programs write any byte
                host = np.not_equal(host.view(np.uint8), 0)
            array = self.cupy.empty(host.shape, host.dtype)
            if array.nbytes:
                pinned = self.is_pinned(host)
                if wait or not pinned:
                    self.capturing.refuse(
                        "a copy from the host", "only pinned memory can be read in a replay, with non_blocking=True"
                    )
                self._transfer(array.data.ptr, host.ctypes.data, array.nbytes, self.driver.memcpyHostToDevice)
                if pinned:  # it is read later; other memory has been read when the call returns
                    self._stream().synchronize() if wait else self._hold(host)
            return array.transpose(axes)

    def _hold(self, host):
        """Keep pinned memory until it has been read; that of a graph is read in each replay."""
        if (graph := self.capturing.capture) is None:
            self.in_flight.hold(host, self._stream())
        else:
            graph.kept.append(host)

    def download(self, array):
        self.capturing.refuse("a copy to the host (item(), cpu(), numpy(), print, or a condition)", _UNKNOWN)
        with self.on(array.device.id):
            dense, axes = _in_memory_order(array, self.copying.dense)
            host = np.empty(dense.shape, dense.dtype)
            if host.nbytes:
                self._transfer(host.ctypes.data, dense.data.ptr, dense.nbytes, self.driver.memcpyDeviceToHost)
                self._stream().synchronize()
        self.device_asserts.check()
        return host.transpose(axes)

    def transfer(self, array, index):
        """The array on another device of this type."""
        self.capturing.refuse("a copy to another device", _WAITS)
        with self.on(array.device.id):
            dense, axes = _in_memory_order(array, self.copying.dense)
            self._stream().synchronize()
        with self.on(index):
            result = self.cupy.empty(dense.shape, dense.dtype)
            if result.nbytes:
                self._transfer(result.data.ptr, dense.data.ptr, dense.nbytes, self.driver.memcpyDefault)
                self._stream().synchronize()
            return result.transpose(axes)

    def _stream(self):
        return self.cupy.cuda.get_current_stream()

    def _transfer(self, target: int, source: int, size: int, kind: int) -> None:
        self.driver.memcpyAsync(target, source, size, kind, self._stream().ptr)

    def record_stream(self, array, stream):
        if (graph := self.capturing.capture) is None:
            self.in_flight.use(self.storages.chunk(array), stream.queue)
        else:
            graph.kept.append(self.storages.chunk(array))

    def pinned(self, host):
        size = max(1, prod(host.shape) * host.dtype.itemsize)
        memory = self.cupy.cuda.alloc_pinned_memory(size)
        result = np.frombuffer(memory, host.dtype, host.size).reshape(host.shape)
        result[...] = host
        return result

    def is_pinned(self, host):
        return self.driver.pointerGetAttributes(host.ctypes.data).type == 1  # cudaMemoryTypeHost


def _in_memory_order(array, dense):
    """An array with its dimensions in the order in which they lie in memory, and the order that turns them back; if
    there are gaps between elements, a row-major copy by `dense`."""
    order = memory_order(array.shape, array.strides, array.dtype.itemsize)
    if order is None:
        return dense(array), tuple(range(array.ndim))
    return array.transpose(order), inverse(order)
