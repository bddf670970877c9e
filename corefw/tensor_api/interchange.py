"""Tensors and other libraries: shared memory with NumPy, and with everything that speaks DLPack."""

from __future__ import annotations

import ctypes
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch import plugins
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dtypes import BY_NUMPY, dtype
from corefw.errors import CorefwError, GradientError
from corefw.graph.grad_mode import mode
from corefw.tensor import Tensor, wrap
from corefw.tensor_api.attach import attribute, method
from corefw.versions import EXPOSED, expose

_CPU, _ARRAY = device("cpu"), np.ndarray
_READ_ONLY = (
    "The given {what} is not writable, and PyTorch does not support non-writable tensors. This means writing to this "
    "tensor will "
    "result in undefined behavior. You may want to copy the {what} to protect its data or make it writable before "
    "converting it "
    "to a tensor."
)


# -- from NumPy -------------------------------------------------------------------------------------------------------
def check_array(array: np.ndarray) -> dtype:
    """The dtype for a NumPy array's elements; TypeError and ValueError for arrays that no tensor can show."""
    try:
        d = BY_NUMPY.get(array.dtype) or dtypes.of_numpy(array.dtype)
    except TypeError:
        if array.dtype.kind in "iufc" and not array.dtype.isnative:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders "
                "is currently not supported."
            ) from None
        raise
    for stride in array.strides:
        if stride < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                "currently "
                "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
            )
        if stride % d.itemsize:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                "reallocate the memory."
            )
    return d


def warn_read_only(what: str, level: int) -> None:
    warnings.warn(_READ_ONLY.format(what=what), UserWarning, stacklevel=level)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the memory of a NumPy array.

    Args:
        ndarray: of a supported element type in native byte order, without negative strides.

    Raises TypeError or ValueError for other arrays; warns if the array is read-only.

    >>> import corefw as torch, numpy
    >>> a = numpy.zeros(2)
    >>> t = torch.from_numpy(a)
    >>> a[0] = 1
    >>> t
    tensor([1., 0.], dtype=torch.float64)
    """
    array = ndarray
    if ndarray.__class__ is not _ARRAY:
        if not isinstance(ndarray, _ARRAY):
            raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
        array = np.asarray(ndarray)
    d = check_array(array)
    if not array.flags.writeable:
        warn_read_only("NumPy array", 3)
    tensor = wrap(array, _CPU._keys.get(d) or dispatch_key_of(_CPU, d))
    tensor.version.append(EXPOSED)
    return tensor


def over(array: Any, dispatch_key: Any) -> Tensor:
    """A tensor over memory that something else than corefw may change."""
    tensor = wrap(array, dispatch_key)
    expose(tensor.version)
    return tensor


def host_array(tensor: Tensor) -> np.ndarray:
    """The elements as a NumPy array, sharing memory with a tensor on the CPU."""
    if tensor.dispatch_key.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return tensor.dispatch_key.runtime.download(tensor.array)


@method
def numpy(self, *, force: bool = False) -> np.ndarray:
    """The tensor as a NumPy array that shares its memory.

    Args:
        force: detach the tensor and copy it to the CPU if need be, instead of refusing.

    Raises RuntimeError if the tensor requires a gradient and gradients are being recorded, TypeError if it is not on
    the CPU or NumPy has no such element type (bfloat16).

    >>> import corefw as torch
    >>> torch.ones(2).numpy()
    array([1., 1.], dtype=float32)
    """
    dispatch_key = self.dispatch_key
    if not force:
        if self.requires_grad and mode.recording is not False:
            raise GradientError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if dispatch_key.device.type != "cpu":
            raise TypeError(
                f"can't convert {dispatch_key.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                "to host memory first."
            )
    if dispatch_key.dtype is dtypes.bfloat16:
        raise TypeError("Got unsupported ScalarType BFloat16")
    expose(self.version)
    return host_array(self)


@method
def __array__(self, dtype=None, copy: bool | None = None) -> np.ndarray:
    """The tensor as a NumPy array, for NumPy's own functions."""
    array = self.numpy()
    if dtype is not None and array.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"unable to avoid a copy while converting {array.dtype} to {np.dtype(dtype)}")
        return array.astype(dtype)
    return array.copy() if copy else array


@method
def __array_wrap__(self, array, context=None, return_scalar: bool = False):
    """What a NumPy function of a tensor returns: a tensor."""
    return from_numpy(np.asarray(array))


# -- the array API ----------------------------------------------------------------------------------------------------
@method
def __array_namespace__(self, /, *, api_version: str | None = None):
    """The module with the functions of the Python array API standard, which libraries ask arrays for.

    Args:
        api_version: the version of the standard; None for the newest that there is, "2024.12".

    Raises ValueError for a version that there is not.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().__array_api_version__
    '2024.12'
    """
    if api_version not in (None, *_VERSIONS):
        raise ValueError(f"__array_namespace__: version {api_version!r} is not there; there are {', '.join(_VERSIONS)}")
    return import_module("corefw.array_api")


@method
def to_device(self, device, /, *, stream=None) -> Tensor:
    """The tensor on another device, by the name that the Python array API standard gives `to`; itself if it is there.

    Args:
        device: where it is wanted.
        stream: None; copies take the device's current stream.

    Raises ValueError for a stream.

    >>> import corefw as torch
    >>> torch.ones(1).to_device("meta").device
    device(type='meta')
    """
    if stream is not None:
        raise ValueError("to_device: a copy takes the device's current stream; leave stream=None, and choose it there")
    return self.to(device)


#: of the standard, each of which extends the one before
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


# -- DLPack -----------------------------------------------------------------------------------------------------------
class ExportError(CorefwError, BufferError):
    """A tensor cannot be shown to another library."""


_device = device  # arguments are called device too


@method
def __dlpack_device__(self) -> tuple[int, int]:
    """The DLPack device type and index."""
    where = self.dispatch_key.device
    found = self.dispatch_key.runtime.dlpack_type
    if found is None:
        raise ExportError(f"Cannot pack tensors on {where}")
    return found, where.index or 0


@method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy: bool | None = None):
    """A DLPack capsule of the tensor's memory, which the consumer shares.

    Args:
        stream: on a GPU, the consumer's stream; -1 for no synchronisation.
        max_version: the newest DLPack version the consumer knows.
        dl_device: where the consumer wants it.
        copy: whether the consumer wants a copy.
    """
    if self.requires_grad:
        raise ExportError("Can't export tensors that require gradient, use tensor.detach()")
    self.__dlpack_device__()
    expose(self.version)
    runtime = self.dispatch_key.runtime
    options: dict[str, Any] = (
        {"stream": stream} if stream is not None and self.dispatch_key.device.type != "cpu" else {}
    )
    for name, value in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy)):
        if value is not None:
            options[name] = value
    if self.dispatch_key.dtype is dtypes.bfloat16:
        capsule = runtime.to_dlpack(_as_integers(self), **options)
        _opened(capsule)[0].value = _BFLOAT
        return capsule
    return runtime.to_dlpack(self.array, **options)


def _as_integers(tensor: Tensor):
    """The elements of a tensor of bfloat16 as unsigned integers, in the same memory."""
    array, runtime = tensor.array, tensor.dispatch_key.runtime
    steps = tuple(step // array.dtype.itemsize for step in array.strides)
    return runtime.as_strided(array, tuple(array.shape), steps, runtime.storage_offset(array), dtypes.uint16)


@attribute
def __cuda_array_interface__(self) -> dict[str, Any]:
    """The memory of a tensor on a GPU, for libraries that ask so; AttributeError for others, as libraries expect."""
    if self.dispatch_key.device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if self.requires_grad:
        raise GradientError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    expose(self.version)
    return self.array.__cuda_array_interface__


def from_cuda_array(producer: Any) -> Tensor:
    """A tensor over the memory of an object with ``__cuda_array_interface__``."""
    array, index = registry.runtime("cuda").from_interface(producer)
    return over(array, dispatch_key_of(device("cuda", index), dtypes.of_numpy(array.dtype)))


# Array libraries do not all know bfloat16; its capsules are those of uint16 with another type code.
_UNSIGNED, _BFLOAT = 1, 4  # DLDataTypeCode
_CODE_OFFSET = 20  # in a DLTensor: after data (8), device (8) and ndim (4)
_FLAGS_OFFSET = 24  # in a versioned one: after version, manager_ctx and deleter
_VERSIONED_OFFSET = 32  # of the DLTensor: after the flags
_READ_ONLY_FLAG = 1


def _opened(capsule) -> tuple[ctypes.c_uint8, bool]:
    """The type code inside a DLPack capsule, to read or change, and whether its memory may only be read."""
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = get_name(capsule)
    if name not in (b"dltensor", b"dltensor_versioned"):  # a consumed one is renamed
        raise CapsuleError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    address, read_only = get_pointer(capsule, name), False
    if name == b"dltensor_versioned":
        read_only = bool(ctypes.c_uint64.from_address(address + _FLAGS_OFFSET).value & _READ_ONLY_FLAG)
        address += _VERSIONED_OFFSET
    return ctypes.c_uint8.from_address(address + _CODE_OFFSET), read_only


class CapsuleError(CorefwError, RuntimeError):
    """What another library gave is no tensor."""


class _Source:
    """What an array library takes memory from: another library's array or a capsule, with bfloat16 as uint16.

    Attributes, once it has been asked: ``bfloat`` whether the elements are bfloat16; ``read_only`` whether the other
    library allows no writing, which capsules of before DLPack 1.0 cannot tell.
    """

    bfloat = read_only = False

    def __init__(self, producer, where: tuple[int, int]):
        self._producer, self._where = producer, where

    def __dlpack__(self, **options):
        """The capsule in the newest version that both libraries know."""
        producer = self._producer
        capsule = producer.__dlpack__(**options) if hasattr(producer, "__dlpack__") else producer
        code, self.read_only = _opened(capsule)
        if code.value == _BFLOAT:
            self.bfloat, code.value = True, _UNSIGNED
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._where


def _device_type(kind: int, wanted: str | device | int | None) -> str:
    """The device type that takes memory of a DLPack device type: the wanted one if it does, else the first."""
    if wanted is not None:
        named = _device(wanted).type
        if registry.runtime(named).dlpack_type == kind:
            return named
    if registry.runtime("cpu").dlpack_type == kind:
        return "cpu"
    plugins.load(None)
    for name, (_, runtime) in registry.runtimes.items():
        if runtime.dlpack_type == kind:
            return name
    raise CapsuleError(f"from_dlpack: no corefw device has the DLPack device type {kind}")


def from_dlpack(ext_tensor: Any, *, device: str | device | int | None = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a capsule, which can be consumed once.
        device: where the tensor is wanted; that of `ext_tensor` if missing.
        copy: True copies always, False never, None where `device` asks for it.

    >>> import corefw as torch, numpy
    >>> torch.from_dlpack(numpy.ones(2))
    tensor([1., 1.], dtype=torch.float64)
    """
    if hasattr(ext_tensor, "__dlpack__"):
        kind, index = ext_tensor.__dlpack_device__()
    elif type(ext_tensor).__name__ == "PyCapsule":
        kind, index = 1, 0
    else:
        raise CapsuleError(
            f"from_dlpack needs an object with __dlpack__ or a DLPack capsule, not {type(ext_tensor).__name__}. A "
            "capsule can be consumed only once."
        )
    name = _device_type(int(kind), device)
    if isinstance(ext_tensor, np.ndarray):
        array = np.asarray(ext_tensor)  # NumPy knows best what it holds, read-only memory included
    else:
        source = _Source(ext_tensor, (int(kind), index))
        array = registry.runtime(name).from_dlpack(source)
        if source.bfloat:
            array = array.view(dtypes.bfloat16.numpy)
    where = _device(name) if registry.runtime(name).current_device() is None else _device(name, index)
    result = over(array, dispatch_key_of(where, check_array(array)))
    if device is None:
        return result.clone() if copy else result
    return result.to(device=device, copy=bool(copy))


def foreign_tensor(data: Any, level: int | None = None) -> Tensor | None:
    """A tensor over the memory of NumPy's or another library's array; None for what is no array.

    Other libraries' are what has ``__dlpack__``, ``__cuda_array_interface__``, ``__array__`` or
    ``__array_interface__``. With a stack level, a warning says that NumPy's array is read-only.
    """
    if not isinstance(data, np.ndarray):
        if isinstance(data, type | np.generic):
            return None
        if hasattr(data, "__dlpack__"):
            return from_dlpack(data)
        if hasattr(data, "__cuda_array_interface__"):
            return from_cuda_array(data)
        if not (hasattr(data, "__array__") or hasattr(data, "__array_interface__")):
            return None
    array = np.asarray(data)
    d = check_array(array)
    if level is not None and not array.flags.writeable:
        warn_read_only("NumPy array", level + 1)
    return over(array, dispatch_key_of(_CPU, d))


def to_dlpack(tensor: Tensor):
    """A DLPack capsule of the tensor's memory: ``tensor.__dlpack__()``."""
    return tensor.__dlpack__()
