"""A device for tests, "loopback": opaque arrays over host memory, computed by the NumPy backend's kernels.

Whatever works on it assumes nothing of an array but shape, strides, dtype, ndim and nbytes.
"""

import numpy as np
import pluggy

from corefw import dtypes
from corefw.dispatch import plugins
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry
from corefw.dispatch.runtime import Runtime
from corefw_numpy import table
from corefw_numpy.runtime import NumpyRuntime


class LoopbackArray:
    """An array that NumPy cannot look into."""

    __slots__ = ("_memory",)
    __array_ufunc__ = None  # NumPy's operators refuse it

    def __init__(self, memory: np.ndarray):
        self._memory = memory

    shape = property(lambda self: self._memory.shape)
    strides = property(lambda self: self._memory.strides)
    dtype = property(lambda self: self._memory.dtype)
    ndim = property(lambda self: self._memory.ndim)
    nbytes = property(lambda self: self._memory.nbytes)

    def __array__(self, *args, **kwargs):
        raise TypeError("a loopback array is not host memory: use the runtime's download")

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} was called on a loopback array")

    def __bool__(self):
        raise TypeError("a loopback array has no truth value")


def _unwrap(value):
    if isinstance(value, LoopbackArray):
        return value._memory
    if isinstance(value, list | tuple):
        return type(value)(map(_unwrap, value)) if not hasattr(value, "_fields") else value
    if isinstance(value, np.ndarray):
        raise TypeError("a NumPy array was given to a kernel of loopback")
    return value


def _wrap(value):
    if isinstance(value, np.ndarray | np.generic):
        return LoopbackArray(np.asarray(value))
    if isinstance(value, list | tuple):
        return type(value)(map(_wrap, value)) if not hasattr(value, "_fields") else tuple(map(_wrap, value))
    return value


class LoopbackRuntime(Runtime):
    """The memory of `loopback`: that of a NumPy runtime, wrapped."""

    device_type = "loopback"
    array_type = LoopbackArray

    def __init__(self):
        self._host = NumpyRuntime()

    def current_device(self):
        return 0

    def empty(self, shape, dtype, index):
        memory = self._host.empty(shape, dtype, None)
        memory.reshape(-1).view(np.uint8)[...] = 0xA5  # new memory is never zero by luck
        return LoopbackArray(memory)

    def upload(self, host, index):
        if not isinstance(host, np.ndarray):
            raise TypeError(f"upload takes NumPy arrays, not {type(host).__name__}")
        return LoopbackArray(np.array(host, copy=True))

    def download(self, array):
        return array._memory.copy()

    def copy(self, target, source):
        self._host.copy(target._memory, source._memory)

    def clone(self, array):
        return LoopbackArray(self._host.clone(array._memory))

    def cast(self, array, dtype):
        return LoopbackArray(self._host.cast(array._memory, dtype))

    def as_strided(self, array, shape, strides, offset, dtype=None):
        return LoopbackArray(self._host.as_strided(array._memory, shape, strides, offset, dtype))

    def storage_offset(self, array):
        return self._host.storage_offset(array._memory)

    def address(self, array):
        return self._host.address(array._memory)


def opaque(kernel: Kernel) -> Kernel:
    """A NumPy kernel as one of loopback's arrays."""
    function = kernel.function
    parameters = registry.declared[kernel.op].kernel_parameters
    on_host = {i for i, p in enumerate(parameters) if p.role == "counts" or p.name == "words"}

    def on_loopback(*arguments, **keywords):
        with np.errstate(all="ignore"):
            host = [a if i in on_host else _unwrap(a) for i, a in enumerate(arguments)]
            return _wrap(function(*host, **{name: _unwrap(value) for name, value in keywords.items()}))

    return Kernel(kernel.op, on_loopback, kernel.dtypes, kernel.out)


class Plugin:
    """What an installed package would be."""

    @pluggy.HookimplMarker("corefw")
    def corefw_backend(self) -> Backend:
        """The plugin hook."""
        half = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}
        return Backend(
            name="loopback",
            version="1",
            devices=("loopback",),
            kernels={"loopback": [opaque(kernel) for kernel in table(np)]},
            runtimes={"loopback": LoopbackRuntime()},
            compute_dtype=half,
        )


def install() -> None:
    """Register the device, once per process."""
    if "loopback" not in registry.backends:
        plugins.register(Plugin(), "loopback")
