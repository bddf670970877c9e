"""A tensor's memory: addresses, resizing, sharing between tensors and processes, elementwise Python functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError, new_memory, number_argument, size_argument
from corefw.dispatch.numbers import fitting_number
from corefw.dispatch.out import refuse_read_only
from corefw.dispatch.registry import registry
from corefw.errors import DeviceError, DtypeError, GradientError
from corefw.layouts import contiguous_format, preserve_format
from corefw.shapes import contiguous_strides, extent, permuted_strides
from corefw.tensor import Tensor, wrap
from corefw.tensor_api.attach import method
from corefw.tensor_api.interchange import from_numpy, host_array


class UntypedStorage:
    """The memory that a tensor shows all or a part of, as bytes.

    Args:
        source: a tensor, whose memory it is; or a number of bytes, of arbitrary value, or a sequence of them.
        device: where bytes lie that are made.

    >>> import corefw as torch
    >>> torch.UntypedStorage([1, 2, 3])[1:].tolist()
    [2, 3]
    """

    __slots__ = ("__weakref__", "_is_part", "_tensor")

    def __init__(self, source: Tensor | int | Sequence[int] = 0, *, device=None):
        self._is_part = False
        if isinstance(source, Tensor):
            self._tensor = source
        else:
            host = np.empty(source, np.uint8) if isinstance(source, int) else np.array(source, np.uint8)
            self._tensor = from_numpy(host) if device is None else from_numpy(host).to(device=device)

    @classmethod
    def _of_part(cls, tensor: Tensor) -> UntypedStorage:
        """What shows the bytes of a tensor and nothing around them."""
        part = cls(tensor)
        part._is_part = True
        return part

    def data_ptr(self) -> int:
        """The address of the first byte."""
        if self._is_part:
            return self._tensor.data_ptr()
        return self._tensor.data_ptr() - self._tensor.storage_offset() * self._tensor.element_size()

    def nbytes(self) -> int:
        """The number of bytes."""
        if self._is_part:
            return self._tensor.numel()
        return self._tensor.dispatch_key.runtime.memory_bytes(self._tensor.array)

    size = __len__ = nbytes

    @property
    def device(self):
        """Where the memory lies."""
        return self._tensor.dispatch_key.device

    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return self._tensor.is_shared()

    @classmethod
    def from_file(cls, filename: str | os.PathLike, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The content of a file, of which only what is read is loaded.

        Args:
            filename: its path.
            shared: whether changes go to the file; without, they are this process's own.
            nbytes: how many bytes of it; a shared file grows to them.

        Raises:
            RuntimeError: the file is shorter.
        """
        size = os.path.getsize(filename) if os.path.exists(filename) else 0
        if shared and size < nbytes:
            with open(filename, "ab") as file:
                file.truncate(nbytes)
        elif size < nbytes:
            raise RuntimeError(f"from_file: {os.fspath(filename)} has {size} bytes, fewer than nbytes={nbytes}")
        if not nbytes:
            return cls(from_numpy(np.empty(0, np.uint8)))
        return cls(from_numpy(np.asarray(np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,)))))

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __getitem__(self, index: int | slice) -> int | UntypedStorage:
        """A byte as a number, or the memory of a part."""
        found = self._bytes()[index]
        if not isinstance(index, slice):
            return int(found.item())
        return UntypedStorage._of_part(found)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._bytes()[index] = value._bytes() if isinstance(value, UntypedStorage) else value

    def _bytes(self) -> Tensor:
        return self._flat().view(dtypes.uint8)

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._bytes().tolist()

    def fill_(self, value: int) -> UntypedStorage:
        """Set all bytes to a number; returns itself."""
        self._bytes().fill_(value)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool | None = None) -> UntypedStorage:
        """Copy the bytes of a storage of the same size, which may lie elsewhere; returns itself."""
        self._bytes().copy_(source._bytes())
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(self._bytes().clone())

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        return memo.setdefault(id(self), self.clone())

    def element_size(self) -> int:
        """1: elements are bytes."""
        return 1

    @property
    def is_cuda(self) -> bool:
        """Whether the memory lies on a GPU."""
        return self.device.type == "cuda"

    def share_memory_(self) -> UntypedStorage:
        """Move the memory of the tensor whose storage this is to where other processes see it; returns itself."""
        self._tensor.share_memory_()
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Refused but for the size that it has: tensors over the memory would show other memory than before."""
        if size != self.nbytes():
            raise NotImplementedError(
                f"UntypedStorage.resize_: memory of {self.nbytes()} bytes cannot become {size}, because all tensors "
                f"over it would have to move; Tensor.resize_ and Tensor.set_ give one tensor other memory"
            )
        return self

    @classmethod
    def from_buffer(cls, buffer: Any, dtype: dtypes.dtype, byte_order: str = "native") -> UntypedStorage:
        """A storage with the content of a buffer, such as bytes, whose elements have a dtype and an order of bytes:
        "native", "little" or "big"."""
        orders = {"native": "=", "little": "<", "big": ">"}
        if byte_order not in orders:
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little' or 'native')")
        swapped = dtype.numpy.newbyteorder(orders[byte_order])
        host = np.frombuffer(buffer, swapped).astype(dtype.numpy)
        return cls(from_numpy(host.view(np.uint8)))

    def __dlpack__(self, **options):
        return self._bytes().__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()

    def _flat(self) -> Tensor:
        """All elements in the order of memory."""
        if self._is_part:
            return self._tensor
        tensor, dispatch_key = self._tensor, self._tensor.dispatch_key
        length = self.nbytes() // dispatch_key.dtype.itemsize
        return wrap(dispatch_key.runtime.as_strided(tensor.array, (length,), (1,), 0), dispatch_key)

    def to(self, device) -> UntypedStorage:
        """The memory's content on another device; itself if it lies there."""
        flat = self._flat()
        moved = flat.to(device=device)
        return self if moved is flat else UntypedStorage(moved)

    def cpu(self) -> UntypedStorage:
        """The content on the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | None = None) -> UntypedStorage:
        """The content on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def is_storage(obj: Any, /) -> bool:
    """Whether an object is the memory of a tensor.

    >>> import corefw as torch
    >>> torch.is_storage(torch.zeros(2).untyped_storage()), torch.is_storage(torch.zeros(2))
    (True, False)
    """
    return isinstance(obj, UntypedStorage) or hasattr(type(obj), "pickle_storage_type")


@method
def untyped_storage(self) -> UntypedStorage:
    """The memory that the tensor shows all or a part of.

    >>> import corefw as torch
    >>> x = torch.zeros(4)
    >>> x[2:].untyped_storage().data_ptr() == x.data_ptr()
    True
    """
    return UntypedStorage(self)


@method
def data_ptr(self) -> int:
    """The address of the first element."""
    return self.dispatch_key.runtime.address(self.array)


@method
def storage_offset(self) -> int:
    """How many elements lie between the start of the memory and the first element."""
    return self.dispatch_key.runtime.storage_offset(self.array)


@method
def is_set_to(self, tensor: Tensor) -> bool:
    """Whether both tensors show the same memory under the same shape and strides."""
    return (
        self.dispatch_key is tensor.dispatch_key
        and self.data_ptr() == tensor.data_ptr()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


# -- other memory or another shape for the same tensor ----------------------------------------------------------------
@method
def set_(
    self, source=None, storage_offset: int = 0, size: Sequence[int] | None = None, stride: Sequence[int] | None = None
) -> Tensor:
    """Let the tensor show the memory of `source`; returns it.

    Args:
        source: a tensor of the same dtype and device, or its storage; missing, the tensor becomes empty.
        storage_offset, size, stride: what part of the memory to show, in elements; that of `source` if missing.
    """
    runtime, dispatch_key = self.dispatch_key.runtime, self.dispatch_key
    if source is None:
        self.array = runtime.empty((0,), dispatch_key.dtype, dispatch_key.device.index)
        self.version[0] += 1
        return self
    if not isinstance(source, (Tensor, UntypedStorage)) and hasattr(source, "_untyped_storage"):
        if source.dtype is not dispatch_key.dtype:
            raise DtypeError(
                f"Expected a Storage of type {dispatch_key.dtype.title} or an UntypedStorage, but got type "
                f"{source.dtype.title} for argument 1 'storage'"
            )
        source = UntypedStorage(source._numbers()) if not source._untyped_storage._is_part else source._untyped_storage
    if isinstance(source, UntypedStorage) and source._is_part:
        raise ArgumentError("set_(): the storage is a part of another; give the whole, and storage_offset")
    tensor = source._tensor if isinstance(source, UntypedStorage) else source
    if not isinstance(tensor, Tensor):
        raise TypeError(f"set_(): argument 'source' must be Tensor or UntypedStorage, not {type(source).__name__}")
    if tensor.dispatch_key.device is not dispatch_key.device:
        raise DeviceError(
            f"set_: cannot set a tensor on {dispatch_key.device} to memory on {tensor.dispatch_key.device}"
        )
    if tensor.dispatch_key.dtype is not dispatch_key.dtype:
        raise DtypeError(
            f"Could not set tensor of type {tensor.dispatch_key.dtype.name} to a tensor of type "
            f"{dispatch_key.dtype.name}"
        )
    if size is None and isinstance(source, UntypedStorage):
        size = (source.nbytes() // dispatch_key.dtype.itemsize,)
    if size is None:
        self.array = tensor.array
    else:
        shape = tuple(size)
        strides = contiguous_strides(shape) if stride is None else tuple(stride)
        extent(shape, strides, storage_offset)  # refuses negative ones
        self.array = runtime.as_strided(tensor.array, shape, strides, storage_offset)
    self.version = tensor.version
    self.version[0] += 1
    return self


@method
def resize_(self, *sizes, memory_format=contiguous_format) -> Tensor:
    """Give the tensor another shape over its memory, which grows if it is too small; returns it.

    Elements keep their place in memory; new ones are arbitrary. After growing, other tensors over the old memory no
    longer share it.

    >>> import corefw as torch
    >>> torch.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return _resize(self, size_argument("resize_", sizes), memory_format)


@method
def resize_as_(self, the_template: Tensor, *, memory_format=None) -> Tensor:
    """Give the tensor the shape of another one: ``resize_(the_template.shape)``."""
    return _resize(self, tuple(the_template.array.shape), memory_format or contiguous_format)


def _resize(self: Tensor, shape: tuple[int, ...], memory_format) -> Tensor:
    if self.requires_grad:
        raise GradientError("cannot resize variables that require grad")
    dispatch_key, array = self.dispatch_key, self.array
    if tuple(array.shape) == shape:
        return self
    if memory_format in (None, contiguous_format, preserve_format):
        strides = contiguous_strides(shape)
    else:
        strides = permuted_strides(shape, memory_format.order(len(shape)))
    runtime = dispatch_key.runtime
    offset, length = runtime.storage_offset(array), runtime.memory_bytes(array) // dispatch_key.dtype.itemsize
    needed = offset + prod(shape)
    if needed > length:
        grown = new_memory(dispatch_key, (needed,))
        if length:
            runtime.copy(runtime.as_strided(grown, (length,), (1,), 0), runtime.as_strided(array, (length,), (1,), 0))
        array = grown
    self.array = runtime.as_strided(array, shape, strides, offset)
    self.view_info = None
    self.version[0] += 1
    return self


# -- elementwise Python functions -------------------------------------------------------------------------------------
def _check_elementwise(self: Tensor, name: str) -> None:
    if self.requires_grad:
        raise GradientError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if self.dispatch_key.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    refuse_read_only(name, self)


def _assign(self: Tensor, values: list) -> Tensor:
    d = self.dispatch_key.dtype
    numbers = [fitting_number(number_argument("callable", "result", value, 1), d) for value in values]
    self.array[...] = np.array(numbers, d.numpy).reshape(self.array.shape)
    self.version[0] += 1
    return self


@method
def apply_(self, callable: Callable) -> Tensor:
    """Replace each element by ``callable(element)``, in Python and so slowly; returns the tensor.

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0]).apply_(lambda x: x * x)
    tensor([1., 4.])
    """
    _check_elementwise(self, "apply_")
    return _assign(self, [callable(value) for value in host_array(self).ravel().tolist()])


@method
def map_(self, tensor: Tensor, callable: Callable) -> Tensor:
    """Replace each element by ``callable(element, other)`` with the element of `tensor`, which broadcasts; returns it.

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0]).map_(torch.tensor([3.0, 4.0]), lambda a, b: a * b)
    tensor([3., 8.])
    """
    _check_elementwise(self, "map_")
    _check_elementwise(tensor, "map_")
    if tensor.dispatch_key is not self.dispatch_key:
        raise TypeError(f"map_: expected {self.type()} for 'other' (got {tensor.type()})")
    others = np.broadcast_to(host_array(tensor), self.array.shape).ravel().tolist()
    return _assign(self, [callable(a, b) for a, b in zip(host_array(self).ravel().tolist(), others)])


# -- sharing between processes, page-locked memory --------------------------------------------------------------------
@method
def share_memory_(self) -> Tensor:
    """Move the elements to memory that forked processes share; returns the tensor."""
    if not self.is_shared():
        self.array = self.dispatch_key.runtime.share(self.array)
    return self


@method
def is_shared(self) -> bool:
    """Whether the elements lie in memory that other processes see."""
    return self.dispatch_key.runtime.is_shared(self.array)


def accelerator():
    """The runtime of a device that copies faster from page-locked memory."""
    if "cuda" not in registry.runtimes:
        registry.load("cuda")
    found = next((runtime for kind, (_, runtime) in registry.runtimes.items() if kind not in ("cpu", "meta")), None)
    if found is None:
        raise ArgumentError("Cannot access accelerator device when none is available.")
    return found


@method
def pin_memory(self, device=None) -> Tensor:
    """A copy in page-locked memory, from which a GPU copies faster; RuntimeError without a GPU."""
    if self.dispatch_key.device.type != "cpu":
        raise ArgumentError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    runtime = accelerator()
    if self.is_pinned():
        return self
    result = self.clone()
    result.array = runtime.pinned(result.array)
    return result


@method
def record_stream(self, stream) -> None:
    """Say that `stream` uses the tensor too, so that its memory is not given out again before that stream's work so far
    is done when the tensor is let go of; RuntimeError on devices without streams."""
    self.dispatch_key.runtime.record_stream(self.array, stream)


@method
def is_pinned(self, device=None) -> bool:
    """Whether the elements lie in page-locked memory."""
    if self.dispatch_key.device.type != "cpu":
        return False
    runtimes = [runtime for kind, (_, runtime) in registry.runtimes.items() if kind not in ("cpu", "meta")]
    return any(runtime.is_pinned(self.array) for runtime in runtimes)
