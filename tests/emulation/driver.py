"""A driver of two devices whose memory is the host's: what the runtime calls of `cupy.cuda`."""

import ctypes
import time
import weakref
from functools import partial
from types import SimpleNamespace

import cupy
import numpy as np

from tests.emulation import capture, memory, queue

_PROPERTIES = {
    "name": b"emulated",
    "major": 9,
    "minor": 0,
    "totalGlobalMem": 1 << 34,
    "multiProcessorCount": 132,
    "warpSize": 32,
    "maxThreadsPerMultiProcessor": 2048,
}


class State:
    """What the driver was told; `log` has the transfers and waits, in order."""

    device = 0
    log: list[tuple] = []
    pinned: list[np.ndarray] = []
    free_pinned: dict[int, np.ndarray] = {}  # by size


class Device:
    """A device, or a with-block on it."""

    def __init__(self, index=None):
        self.id = State.device if index is None else index

    def __enter__(self):
        self.before, State.device = State.device, self.id

    def __exit__(self, *exception):
        State.device = self.before


class Stream:
    """A queue."""

    current: "dict[int, Stream]" = {}
    made = 0

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.non_blocking, self.priority = non_blocking, priority
        self.ptr = 0 if null else 0x1000 + Stream.made
        Stream.made += not null
        self.waited_for = []

    def use(self):
        """Let work of the current device go here."""
        Stream.current[State.device] = self

    @property
    def done(self):
        """Whether all work is done."""
        capture.forbid(self.ptr)
        return queue.is_empty(self.ptr)

    def synchronize(self):
        """Wait."""
        capture.forbid(self.ptr)
        State.log.append(("wait", self.ptr))
        queue.drain(self.ptr)

    def wait_event(self, event):
        """Let later work wait for a mark."""
        self.waited_for.append(event)
        if event.capture is not None:
            capture.join(self.ptr, event.stream.ptr, event.capture)
        else:
            queue.submit(event.reach, self.ptr)

    def begin_capture(self, mode=None):
        """Record what comes, in CuPy's relaxed mode."""
        assert mode is None, "memory may be asked for in the relaxed mode only"
        capture.begin(self.ptr)

    def end_capture(self):
        """What was recorded."""
        return Graph(capture.end(self.ptr))


class Graph:
    """Recorded work."""

    def __init__(self, work):
        self.work = work

    def launch(self, stream=None):
        """Do it after what a stream was given before."""
        for work in self.work:
            queue.submit(work, (stream or get_current_stream()).ptr)


Stream.null = Stream(null=True)


def get_current_stream():
    """The queue of the current device."""
    return Stream.current.get(State.device, Stream.null)


class Event:
    """A mark with the time at which it was reached."""

    def __init__(self, block=False, disable_timing=False):
        self.block, self.timed, self.stream, self.capture = block, not disable_timing, None, None
        self.times, self.reach = [0.0], lambda: None  # a mark that was never made counts as reached

    def record(self, stream=None):
        """Mark."""
        self.stream = stream or get_current_stream()
        self.capture = capture.of(self.stream.ptr)
        self.times = times = []  # of this mark, not of a later one
        self.reach = partial(queue.advance, self.stream.ptr, lambda: bool(times))
        if self.capture is None and queue.is_empty(self.stream.ptr):
            times.append(time.perf_counter())  # at once: the stream has nothing to do before
        else:
            queue.submit(lambda: times.append(time.perf_counter()), self.stream.ptr)

    @property
    def done(self):
        """Whether the work before is done."""
        self._not_captured()
        return bool(self.times)

    def _not_captured(self):
        if self.capture is not None:
            self.capture.fail("unsupported")

    def synchronize(self):
        """Wait."""
        self._not_captured()
        State.log.append(("wait", self.stream.ptr))
        self.reach()


def get_elapsed_time(first, last):
    """Milliseconds."""
    if not (first.timed and last.timed):
        raise ValueError("a mark without time")
    return 1000 * (last.times[0] - first.times[0])


def alloc_pinned_memory(size):
    """Memory that counts as pinned; the pool of CuPy gives it out again when nobody has it."""
    block = State.free_pinned.pop(size, None)
    if block is None:
        block = np.empty(size, np.uint8)
        State.pinned.append(block)
    lent = (ctypes.c_uint8 * size).from_buffer(block)
    weakref.finalize(lent, State.free_pinned.__setitem__, size, block)
    return lent


def _attributes(address):
    pinned = any(block.ctypes.data <= address < block.ctypes.data + block.nbytes for block in State.pinned)
    return SimpleNamespace(type=1 if pinned else 0)


def _copy(target, source, size, kind, stream):
    State.log.append((("host to device", "device to host", "default")[{1: 0, 2: 1, 4: 2}[kind]], size))
    if kind != runtime.memcpyHostToDevice:
        capture.forbid(stream)
        queue.drain(stream)
        ctypes.memmove(target, source, size)
    elif _attributes(source).type:  # pinned memory is read when the device comes to it
        queue.submit(lambda: ctypes.memmove(target, source, size), stream)
    else:  # other memory when it is asked for
        capture.forbid(stream)
        staged = ctypes.string_at(source, size)
        queue.submit(lambda: ctypes.memmove(target, staged, size), stream)


def _wait():
    capture.forbid()
    State.log.append(("wait", None))
    queue.drain()


def _set_device(index):
    if not 0 <= index < 2:
        raise ValueError("invalid device ordinal")
    State.device = index


class Pool:
    """The statistics of emulated memory."""

    @staticmethod
    def used_bytes():
        """Bytes of arrays that live."""
        return memory.used()

    total_bytes = used_bytes

    @staticmethod
    def free_all_blocks():
        """Nothing is kept."""


runtime = SimpleNamespace(
    getDeviceCount=lambda: 2,
    getDevice=lambda: State.device,
    setDevice=_set_device,
    deviceSynchronize=_wait,
    getDeviceProperties=lambda index: _PROPERTIES,
    memGetInfo=lambda: (1 << 33, 1 << 34),
    memcpyAsync=_copy,
    memcpyHostToDevice=1,
    memcpyDeviceToHost=2,
    memcpyDefault=4,
    pointerGetAttributes=_attributes,
)

cuda = SimpleNamespace(
    Device=Device,
    Stream=Stream,
    Event=Event,
    MemoryPool=memory.Pool,
    MemoryHook=memory.Hook,
    MemoryPointer=cupy.cuda.MemoryPointer,
    UnownedMemory=cupy.cuda.UnownedMemory,
    alloc_pinned_memory=alloc_pinned_memory,
    get_allocator=memory.get_allocator,
    get_current_stream=get_current_stream,
    get_elapsed_time=get_elapsed_time,
    runtime=runtime,
    using_allocator=memory.using_allocator,
)
