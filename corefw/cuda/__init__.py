"""The device type "cuda" as PyTorch's programs ask about it; answers truthfully where there is no GPU or no backend for
it."""

from __future__ import annotations

from typing import Any

from corefw.devices import device as _device
from corefw.dispatch.random_generator import defaults as _defaults
from corefw.dispatch.registry import registry
from corefw.errors import DeviceError

__all__ = [
    "Event",
    "Stream",
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
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "stream",
    "synchronize",
]


class CudaUnavailableError(DeviceError, AssertionError):
    """There is no usable CUDA device (PyTorch raises AssertionError or RuntimeError)."""


def _runtime() -> Any:
    """The runtime of "cuda", whose methods carry the names of this module's functions."""
    try:
        return registry.runtime("cuda")
    except DeviceError as error:
        raise CudaUnavailableError(str(error)) from error


def _index(of: Any = None) -> int:
    if of is None:
        return _runtime().current_device()
    chosen = _device(of)
    if chosen.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {chosen}")
    return _runtime().current_device() if chosen.index is None else chosen.index


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
        return _runtime().device_count()
    except CudaUnavailableError:
        return 0


def is_initialized() -> bool:
    """Whether a backend for "cuda" has been loaded."""
    return "cuda" in registry.runtimes


def init() -> None:
    """Load the backend now; RuntimeError with the reason if there is none."""
    _runtime()


def current_device() -> int:
    """The index of the current GPU."""
    return _runtime().current_device()


def set_device(device: Any) -> None:
    """Make a GPU the current one; a negative index changes nothing."""
    if not isinstance(device, int) or device >= 0:
        _runtime().set_device(_index(device))


class device:
    """A with-block in which another GPU is the current one.

    Args:
        device: an index or a device.
    """

    def __init__(self, device: Any):
        self.index = _index(device)

    def __enter__(self):
        self.before = current_device()
        _runtime().set_device(self.index)

    def __exit__(self, *exception):
        _runtime().set_device(self.before)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return _runtime().device_info(_index(device))["name"]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU: (major, minor)."""
    return _runtime().device_info(_index(device))["capability"]


def get_device_properties(device: Any = None) -> Any:
    """The properties of a GPU: name, major, minor, total_memory, multi_processor_count."""
    return _runtime().device_properties(_index(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether kernels take bfloat16: those of every GPU here do."""
    return is_available()


def synchronize(device: Any = None) -> None:
    """Wait for all work of a GPU."""
    _runtime().synchronize(_index(device))


def empty_cache() -> None:
    """Give unused cached memory back; nothing to do while no backend is loaded."""
    if is_initialized():
        _runtime().empty_cache()


def _memory(what: str, device: Any) -> int:
    return _runtime().memory_statistics(_index(device))[what] if is_initialized() else 0


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


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a GPU's memory: (free, all)."""
    return _runtime().memory_info(_index(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin to count the maxima anew."""
    if is_initialized():
        _runtime().reset_memory_statistics(_index(device))


def _generator(of: Any = None):
    """A GPU's generator; its state needs no GPU."""
    return _defaults.of(_device("cuda", _index(of) if is_available() else 0))


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator (and, as in PyTorch, say nothing where there is no GPU)."""
    _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for index in range(device_count()):
        _generator(index).manual_seed(seed)


def seed() -> None:
    """Seed the current GPU's generator from the system's entropy."""
    _generator().seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with one seed of the system's entropy."""
    manual_seed_all(_generator().seed())


def initial_seed() -> int:
    """The seed of the current GPU's generator."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda"):
    """The state of a GPU's generator."""
    return _generator(device).get_state()


def set_rng_state(new_state, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator."""
    _generator(device).set_state(new_state)


class Stream:
    """A queue of work on a GPU.

    Args:
        device: which GPU.
        priority: lower numbers run first.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **options: Any):
        return _runtime().new_stream(_index(device), priority)


class Event:
    """A point in a stream.

    Args:
        enable_timing: whether `elapsed_time` works.
        blocking: whether `wait` yields the processor.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        return _runtime().new_event(enable_timing, blocking)


def current_stream(device: Any = None):
    """The stream that work goes to."""
    return _runtime().current_stream(_index(device))


def default_stream(device: Any = None):
    """The stream that work goes to unless another one is chosen."""
    return _runtime().default_stream(_index(device))


class stream:
    """A with-block in which work goes to another stream; None changes nothing.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()
        return self.stream

    def __exit__(self, *exception):
        if self.stream is not None:
            self.stream.__exit__(*exception)
