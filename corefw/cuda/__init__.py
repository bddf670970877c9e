"""The device type "cuda" as PyTorch's programs ask about it; answers truthfully where there is no GPU or no backend for
it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Self

from corefw.cuda import nvtx
from corefw.cuda._runtime import (
    CudaUnavailableError,
    generator_of,
    index_of,
    is_initialized,
    named_statistics,
    runtime,
)
from corefw.cuda.graphed_callables import make_graphed_callables
from corefw.cuda.graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing
from corefw.errors import OutOfMemoryError
from corefw.tensor_api.legacy import tensor_types

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


#: the types by which PyTorch's older programs make tensors on a GPU: torch.cuda.FloatTensor
_TYPES = tensor_types("cuda")
globals().update(_TYPES)
__all__ += list(_TYPES)


def is_available() -> bool:
    """Whether a backend serves "cuda" and finds a GPU.

    >>> import corefw as torch
    >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """The number of usable GPUs; 0 without a backend or a driver."""
    try:
        return runtime().device_count()
    except CudaUnavailableError:
        return 0


def init() -> None:
    """Load the backend now; RuntimeError with the reason if there is none."""
    runtime()


def current_device() -> int:
    """The index of the current GPU."""
    return runtime().current_device()


def set_device(device: Any) -> None:
    """Make a GPU the current one; a negative index changes nothing."""
    if not isinstance(device, int) or device >= 0:
        runtime().set_device(index_of(device))


class device:
    """A with-block in which another GPU is the current one.

    Args:
        device: an index or a device.
    """

    def __init__(self, device: Any):
        self.index = index_of(device)

    def __enter__(self) -> None:
        self.before = current_device()
        runtime().set_device(self.index)

    def __exit__(self, *exception: object) -> None:
        runtime().set_device(self.before)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return runtime().device_info(index_of(device))["name"]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU: (major, minor)."""
    return runtime().device_info(index_of(device))["capability"]


def get_device_properties(device: Any = None) -> Any:
    """The properties of a GPU: name, major, minor, total_memory, multi_processor_count."""
    return runtime().device_properties(index_of(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether kernels take bfloat16: those of every GPU here do."""
    return is_available()


def synchronize(device: Any = None) -> None:
    """Wait for all work of a GPU."""
    runtime().synchronize(index_of(device))


def empty_cache() -> None:
    """Give unused cached memory back; nothing to do while no backend is loaded."""
    if is_initialized():
        runtime().empty_cache()


def _memory(what: str, device: Any) -> int:
    return runtime().memory_statistics(index_of(device))[what] if is_initialized() else 0


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by tensors."""
    return _memory("allocated", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use by tensors so far."""
    return _memory("max_allocated", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes held by the allocator."""
    return _memory("reserved", device)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes held by the allocator so far."""
    return _memory("max_reserved", device)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """All that is counted, under PyTorch's names: "allocated_bytes.all.current", "reserved_bytes.all.peak" and so on;
    empty while no backend is loaded."""
    return named_statistics(runtime().memory_statistics(index_of(device)) if is_initialized() else {})


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The same as a table for people to read.

    Args:
        abbreviated: accepted; the table is short.
    """
    rows = (f"{name:<28}{count / 2**20:>14.1f} MiB" for name, count in memory_stats(device).items())
    return "\n".join(["memory of a GPU", *rows])


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a GPU's memory: (free, all)."""
    return runtime().memory_info(index_of(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin to count the maxima anew."""
    if is_initialized():
        runtime().reset_memory_statistics(index_of(device))


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator (and, as in PyTorch, say nothing where there is no GPU)."""
    generator_of().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for index in range(device_count()):
        generator_of(index).manual_seed(seed)


def seed() -> None:
    """Seed the current GPU's generator from the system's entropy."""
    generator_of().seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with one seed of the system's entropy."""
    manual_seed_all(generator_of().seed())


def initial_seed() -> int:
    """The seed of the current GPU's generator."""
    return generator_of().initial_seed()


def get_rng_state(device: Any = "cuda"):
    """The state of a GPU's generator."""
    return generator_of(device).get_state()


def set_rng_state(new_state, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator."""
    generator_of(device).set_state(new_state)


def get_rng_state_all() -> list:
    """The states of the generators of all GPUs."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states) -> None:
    """Set the states of the generators of all GPUs."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


class Stream:
    """A queue of work on a GPU.

    Args:
        device: which GPU.
        priority: lower numbers run first.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **options: Any):
        return runtime().new_stream(index_of(device), priority)


class Event:
    """A point in a stream.

    Args:
        enable_timing: whether `elapsed_time` works.
        blocking: whether `wait` yields the processor.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        return runtime().new_event(enable_timing, blocking)


def current_stream(device: Any = None):
    """The stream that work goes to."""
    return runtime().current_stream(index_of(device))


def default_stream(device: Any = None):
    """The stream that work goes to unless another one is chosen."""
    return runtime().default_stream(index_of(device))


def set_stream(stream: Any) -> None:
    """Let work go to another stream from now on; None changes nothing."""
    if stream is not None:
        stream.__enter__()


class stream:
    """A with-block in which work goes to another stream; None changes nothing.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self) -> Self:
        if self.stream is not None:
            self.stream.__enter__()
        return self.stream

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exception)


StreamContext = stream
