"""The devices of the machine beside the CPU, whichever backend serves them: those of one type, the *accelerator*.

The accelerator is the first type of devices, beside `cpu` and `meta`, that a loaded backend serves; while none does,
that for "cuda" is looked for, then all that are installed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Self

from corefw.cuda._runtime import named_statistics
from corefw.cuda.graphs import CUDAGraph
from corefw.devices import device
from corefw.dispatch.registry import registry
from corefw.errors import DeviceError

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def _found() -> tuple[str, Any] | None:
    """The type of the accelerator and its runtime; None if there is none."""
    for wanted in ("", "cuda", None):
        if wanted != "":
            registry.load(wanted)
        for kind, (_, runtime) in registry.runtimes.items():
            if kind not in ("cpu", "meta") and runtime.device_count():
                return kind, runtime
    return None


def _needed() -> tuple[str, Any]:
    found = _found()
    if found is None:
        raise DeviceError("Cannot access accelerator device when none is available.")
    return found


def is_available() -> bool:
    """Whether there is one.

    >>> import corefw as torch
    >>> torch.accelerator.is_available() == (torch.accelerator.device_count() > 0)
    True
    """
    return _found() is not None


def device_count() -> int:
    """How many devices; 0 if there is no accelerator."""
    found = _found()
    return 0 if found is None else found[1].device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The type of the accelerator as a device without an index; None if there is none.

    Args:
        check_available: whether to ask that a device is there; only what is there is found, so it changes nothing.
    """
    found = _found()
    return None if found is None else device(found[0])


def current_device_index() -> int:
    """The index of the current device."""
    return _needed()[1].current_device() or 0


def _index_of(given: Any = None) -> tuple[Any, int]:
    """The accelerator's runtime, and the index that `given` names: the current one for None."""
    kind, runtime = _needed()
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        index = given
    else:
        chosen = device(given)
        if chosen.type != kind:
            raise ValueError(f"{chosen.type} doesn't match the current accelerator {kind}.")
        index = chosen.index
    index = (runtime.current_device() or 0) if index is None else index
    if not 0 <= index < runtime.device_count():
        raise DeviceError(f"device {kind}:{index} does not exist: there are {runtime.device_count()}")
    return runtime, index


def _method(runtime: Any, name: str, does: str) -> Any:
    """A method that only some runtimes have."""
    if not hasattr(runtime, name):
        raise DeviceError(f"accelerator: device '{runtime.device_type}' does not tell {does}")
    return getattr(runtime, name)


def set_device_index(device: Any, /) -> None:
    """Make a device the current one, by its index or as a device; a negative index changes nothing.

    Raises RuntimeError if the type has devices of which none is current.
    """
    if isinstance(device, int) and device < 0:
        _needed()
        return
    runtime, index = _index_of(device)
    if index == (runtime.current_device() or 0):
        return
    _method(runtime, "set_device", "which one is current")(index)


class device_index:
    """A with-block in which another device is the current one; None changes nothing."""

    def __init__(self, device: int | None, /):
        self.index = device

    def __enter__(self) -> None:
        self.before = current_device_index() if self.index is not None else None
        if self.index is not None:
            set_device_index(self.index)

    def __exit__(self, *exception: object) -> None:
        if self.before is not None:
            set_device_index(self.before)


current_device_idx, set_device_idx = current_device_index, set_device_index


def synchronize(device: Any = None, /) -> None:
    """Wait for all work of a device, the current one if none is named."""
    runtime, index = _index_of(device)
    runtime.synchronize(index)


def current_stream(device: Any = None, /) -> Any:
    """The stream that the work of a device goes to; RuntimeError on devices without streams."""
    runtime, index = _index_of(device)
    return _method(runtime, "current_stream", "its streams: it has none")(index)


def set_stream(stream: Any) -> None:
    """Let the work of a device go to another of its streams from now on."""
    stream.__enter__()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What a device can: ``{"supported_dtypes": {...}}``, the dtypes that it stores."""
    runtime, _ = _index_of(device)
    return {"supported_dtypes": {*runtime.dtypes}}


def empty_cache() -> None:
    """Give unused cached memory of the accelerator back; a runtime that caches none has nothing to give."""
    getattr(_needed()[1], "empty_cache", lambda: None)()


def empty_host_cache() -> None:
    """Give unused page-locked memory back: it is given back anyway, with the last tensor over it."""
    _needed()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Bytes of a device's memory: (free, all)."""
    runtime, index = _index_of(device_index)
    return _method(runtime, "memory_info", "how much memory it has")(index)


def _statistics(device_index: Any) -> dict[str, int]:
    runtime, index = _index_of(device_index)
    return _method(runtime, "memory_statistics", "how much memory is in use")(index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes in use by tensors."""
    return _statistics(device_index)["allocated"]


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes in use by tensors so far."""
    return _statistics(device_index)["max_allocated"]


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes held by the allocator."""
    return _statistics(device_index)["reserved"]


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes held by the allocator so far."""
    return _statistics(device_index)["max_reserved"]


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, int]:
    """All that is counted, under PyTorch's names: "allocated_bytes.all.current", "reserved_bytes.all.peak" and so on;
    empty if there is no accelerator."""
    return named_statistics(_statistics(device_index) if is_available() else {})


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Begin to count the maxima anew."""
    runtime, index = _index_of(device_index)
    _method(runtime, "reset_memory_statistics", "how much memory is in use")(index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Begin to count sums anew: none is kept, so there is nothing to begin."""
    _index_of(device_index)


class Graph(CUDAGraph):
    """Work of the accelerator that is captured, as a with-block around it or by `capture_begin`, for replays.

    Args:
        keep_graph: accepted; what was captured is always made ready for replays at the end of the capture.
        pool: memory to share with another graph.
        capture_error_mode: accepted; what a capture does not permit is refused in the thread that captures.

    Raises RuntimeError where the accelerator is not "cuda": no other device has graphs.
    """

    def __init__(self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "default"):
        kind, _ = _needed()
        if kind != "cuda":
            raise DeviceError(f"accelerator.Graph: device '{kind}' has no graphs: its work cannot be captured")
        super().__init__(keep_graph)
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def capture_begin(self) -> None:  # type: ignore[override]
        """Begin to capture what the current stream is given."""
        mode = self.capture_error_mode
        super().capture_begin(self.graph_pool, "global" if mode == "default" else mode)

    def __enter__(self) -> Self:
        self.capture_begin()
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self.capture_end()
        else:
            self._abandon()
