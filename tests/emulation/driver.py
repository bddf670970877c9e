"""A driver of two devices whose memory is the host's: what the runtime calls of `cupy.cuda`."""

import ctypes
import time
import weakref
from functools import partial
from types import SimpleNamespace

import cupy
import numpy as np

from tests.emulation import memory, queue

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

    done = property(lambda self: queue.is_empty(self.ptr))

    def synchronize(self):
        """Wait."""
        State.log.append(("wait", self.ptr))
        queue.drain(self.ptr)

    def wait_event(self, event):
        """Let later work wait for a mark."""
        self.waited_for.append(event)
        queue.submit(event.reach, self.ptr)


Stream.null = Stream(null=True)


def get_current_stream():
    """The queue of the current device."""
    return Stream.current.get(State.device, Stream.null)


class Event:
    """A mark with the time at which it was reached."""

    def __init__(self, block=False, disable_timing=False):
        self.block, self.timed, self.stream = block, not disable_timing, None
        self.times, self.reach = [0.0], lambda: None  # a mark that was never made counts as reached

    def record(self, stream=None):
        """Mark."""
        self.stream = stream or get_current_stream()
        self.times = times = []  # of this mark, not of a later one
        self.reach = partial(queue.advance, self.stream.ptr, lambda: bool(times))
        queue.submit(lambda: times.append(time.perf_counter()), self.stream.ptr)

    done = property(lambda self: bool(self.times))

    def synchronize(self):
        """Wait."""
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
        queue.drain(stream)
        ctypes.memmove(target, source, size)
    elif _attributes(source).type:  # pinned memory is read when the device comes to it
        queue.submit(lambda: ctypes.memmove(target, source, size), stream)
    else:  # other memory when it is asked for
        staged = ctypes.string_at(source, size)
        queue.submit(lambda: ctypes.memmove(target, staged, size), stream)


def _wait():
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
    MemoryHook=memory.Hook,
    MemoryPointer=cupy.cuda.MemoryPointer,
    UnownedMemory=cupy.cuda.UnownedMemory,
    alloc_pinned_memory=alloc_pinned_memory,
    get_current_stream=get_current_stream,
    get_elapsed_time=get_elapsed_time,
    runtime=runtime,
)
