"""Tensors from Python numbers, nested sequences, NumPy arrays and those of other libraries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from corefw import devices, dtypes
from corefw.declarations._shared.factories import check_pinnable, dtype_argument, require_grad
from corefw.devices import device, get_default_device
from corefw.dispatch.flags import unheard
from corefw.dispatch.numbers import ConversionError, fitting_number
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import dtype
from corefw.tensor import Tensor, wrap
from corefw.tensor_api.attach import method_called
from corefw.tensor_api.interchange import check_array, foreign_tensor, from_dlpack, host_array, over, warn_read_only

_PLAIN = frozenset({bool, int, float, complex})
_BUILT_IN = _PLAIN | {list, tuple, str, bytes}  # what is surely no array
_MOST_DIMENSIONS = 64  # NumPy's limit
_COPY_ADVICE = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
)


# -- from sequences ---------------------------------------------------------------------------------------------------
def _is_sequence(value) -> bool:
    kind = value.__class__
    if kind is list or kind is tuple:
        return True
    if kind in _PLAIN or isinstance(value, (str, bytes, dict, set, type, np.generic)):
        return False
    if isinstance(value, (np.ndarray, Tensor)):
        return isinstance(value, np.ndarray) and value.ndim > 0  # a tensor inside a sequence counts as a number
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _known(value):
    """An array of another library as one of NumPy's, or as a tensor if it is a number; else the value itself."""
    if value.__class__ in _BUILT_IN or isinstance(value, (np.ndarray, Tensor)):
        return value
    found = foreign_tensor(value)
    return value if found is None else host_array(found) if found.array.ndim else found


def _shape_of(value) -> tuple[int, ...]:
    """The shape that nested sequences suggest, by their first elements; ValueError if it never ends."""
    shape: list[int] = []
    while _is_sequence(value := _known(value)):
        if len(shape) == _MOST_DIMENSIONS:
            raise ValueError(f"too many dimensions '{type(value).__name__}'")
        n = len(value)
        shape.append(n)
        if n == 0:
            break
        value = value[0]
    return tuple(shape)


def _leaves(value, shape, dim=0) -> list:
    """The elements of nested sequences of `shape` in order; ValueError where a sequence has another length."""
    value = _known(value)
    if dim == len(shape):
        if _is_sequence(value):
            raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as a number")
        return [value]
    if not _is_sequence(value):
        raise TypeError(
            f"not a sequence: {type(value).__name__} at dim {dim}, where sequences of length {shape[dim]} are expected"
        )
    if len(value) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(value)})")
    if dim == len(shape) - 1:
        if not set(map(type, value)) <= _PLAIN:
            value = [_known(item) for item in value]
            for item in value:
                if _is_sequence(item):
                    raise ValueError(f"expected a number at dim {dim + 1} (got a sequence of length {len(item)})")
        return list(value)
    return [leaf for item in value for leaf in _leaves(item, shape, dim + 1)]


def _infer(leaf) -> dtype:
    """The dtype of one element."""
    if isinstance(leaf, Tensor):
        return leaf.dispatch_key.dtype
    if isinstance(leaf, (np.generic, np.ndarray)):
        return dtypes.of_numpy(leaf.dtype)
    if leaf.__class__ in _PLAIN:
        return dtypes.of_number(leaf)
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    for kind in kinds:
        if isinstance(leaf, kind):
            return dtypes.of_number(kind(leaf))
    if isinstance(leaf, str):
        raise ValueError("too many dimensions 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")


def _infer_all(leaves: list, kinds: set[type]) -> dtype:
    if kinds <= _PLAIN:
        if complex in kinds:
            return dtypes.of_number(1j)
        if float in kinds or not kinds:
            return dtypes.get_default_dtype()
        return dtypes.int64 if int in kinds else dtypes.bool_
    found = None
    for leaf in leaves:
        d = _infer(leaf)
        found = d if found is None else dtypes.promote_types(found, d)
    assert found is not None
    return found


def _plain(leaf, d: dtype):
    """One element as a Python number."""
    if isinstance(leaf, Tensor):
        if leaf.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        leaf = leaf.item()
    elif isinstance(leaf, (np.generic, np.ndarray)):
        leaf = leaf.item()
    if isinstance(leaf, complex) and not d.is_complex:
        raise TypeError("must be real number, not complex")
    if leaf.__class__ in _PLAIN:
        return leaf
    if isinstance(leaf, str):
        raise TypeError(f"new(): invalid data type '{type(leaf).__name__}'")
    if hasattr(leaf, "__index__"):
        return leaf.__index__()
    return complex(leaf) if d.is_complex else float(leaf)


@unheard
def _numbers(leaves: list, d: dtype) -> np.ndarray:
    """Python numbers as a flat array of `d`; RuntimeError for integers out of range."""
    if d.is_floating_point or d.is_complex:
        try:
            if d.itemsize >= 4 and not d.is_complex:
                return np.array(leaves, d.numpy)
            return np.array(leaves, np.complex128 if d.is_complex else np.float64).astype(d.numpy)
        except OverflowError:  # an integer beyond float64
            return np.array([float("inf") if v > 0 else float("-inf") for v in leaves], d.numpy)
    try:
        wide = np.array(leaves)
    except OverflowError:
        wide = np.array(leaves, dtype=object)
    if d is dtypes.bool_:
        return wide.astype(np.bool_)
    if wide.dtype.kind == "b" or not wide.size or (wide.dtype == np.int64 and d is dtypes.int64):
        return wide.astype(d.numpy)
    if wide.dtype.kind == "i":
        limits = np.iinfo(d.numpy)
        low = limits.min if d.is_signed else -int(limits.max)
        if int(wide.min()) >= low and int(wide.max()) <= limits.max:
            return wide.astype(d.numpy)
    try:
        return np.array([fitting_number(v, d) for v in leaves], d.numpy)
    except ConversionError:
        if d is dtypes.int64 and not any(v.__class__ is float for v in leaves):
            raise ValueError("Overflow when unpacking long long") from None
        raise


def _from_sequence(data, d: dtype | None) -> np.ndarray:
    """A host array of a number or of nested sequences of them."""
    if data.__class__ in _PLAIN:
        d = d or dtypes.of_number(data)
        if data.__class__ is complex and not d.is_complex:
            raise TypeError("must be real number, not complex")
        return _numbers([data], d).reshape(())
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    kinds = set(map(type, data)) if data.__class__ is list else set()
    shape: tuple[int, ...]
    if kinds and kinds <= _PLAIN:
        shape, leaves = (len(data),), data
    else:
        shape = _shape_of(data)
        leaves = _leaves(data, shape)
        kinds = set(map(type, leaves))
    if d is None:
        d = _infer_all(leaves, kinds)
    if not kinds <= _PLAIN or (complex in kinds and not d.is_complex):
        leaves = [_plain(leaf, d) for leaf in leaves]
    found = _numbers(leaves, d)
    return found if len(shape) == 1 else found.reshape(shape)


# -- from memory ------------------------------------------------------------------------------------------------------
def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor over the memory of an object with Python's buffer interface.

    Args:
        buffer: a bytes-like object.
        dtype: the element type.
        count: how many elements; -1 for all.
        offset: how many bytes to skip at the start.
        requires_grad: whether gradients of the result are wanted.

    >>> import corefw as torch
    >>> torch.frombuffer(bytearray(b"abc"), dtype=torch.uint8)
    tensor([97, 98, 99], dtype=torch.uint8)
    """
    view = memoryview(buffer)
    size, item = view.nbytes, dtype.itemsize
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) - 1"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({item})"
        )
    if count > 0 and offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    if view.readonly:
        warn_read_only("buffer", 3)
    array = np.frombuffer(buffer, dtype.numpy, count, offset)
    result = over(array, dispatch_key_of(device("cpu"), dtype))
    return require_grad(result) if requires_grad else result


# -- the general functions --------------------------------------------------------------------------------------------
def _upload(array: np.ndarray, d: dtype, where: device) -> Tensor:
    dispatch_key = dispatch_key_of(where, d)
    return wrap(dispatch_key.runtime.upload(array, dispatch_key.device.index), dispatch_key)


def _where(given) -> device:
    if given is None:
        return get_default_device()
    return given if isinstance(given, devices.device) else devices.device(given)


def _home(tensor: Tensor) -> device:
    """Where a tensor over another library's memory goes if nothing else is said: out of the host's it is not moved."""
    where = tensor.dispatch_key.device
    return get_default_device() if where.type == "cpu" else where


def new_tensor(
    name: str, data, d: dtype | None, where: device | None, requires_grad: bool, *, warn: bool = True
) -> Tensor:
    """A tensor with a copy of `data`, without history; where `data` is on a device or on the default one, if `where`
    is None."""
    if isinstance(data, Tensor):
        if warn:
            warnings.warn(_COPY_ADVICE.format(name=name), UserWarning, stacklevel=3)
        result = data.detach().to(
            device=where or data.dispatch_key.device, dtype=d or data.dispatch_key.dtype, copy=True
        )
    elif isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        held = check_array(array)
        where = where or get_default_device()
        if d is None or d is held:
            result = _upload(array.copy("K"), held, where)
        else:
            result = wrap(array, dispatch_key_of(device("cpu"), held)).to(device=where, dtype=d)
    elif data.__class__ not in _BUILT_IN and (found := foreign_tensor(data)) is not None:
        result = found.to(device=where or _home(found), dtype=d or found.dispatch_key.dtype, copy=True)
    else:
        array = _from_sequence(data, d)
        result = _upload(array, d or dtypes.of_numpy(array.dtype), where or get_default_device())
    return require_grad(result) if requires_grad else result


def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: str | device | int | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor, without history, with a copy of `data`.

    Args:
        data: a number, a NumPy array, a tensor, an array of another library (what has ``__dlpack__``, ``__array__`` or
            ``__cuda_array_interface__``), or nested sequences of such numbers.
        dtype: the element type; inferred from `data` if missing: bool, int64, the default floating type, its complex
            type, or what arrays and tensors have.
        device: where the tensor lies; the default device, or that of a tensor or of another library's array outside
            the host's memory, if missing.
        requires_grad: whether gradients of the result are wanted.
        pin_memory: page-locked memory, from which GPUs copy faster.

    Raises:
        ValueError: the sequences are not rectangular.
        TypeError, RuntimeError: an element is not a number, or does not fit the dtype.

    >>> import corefw as torch
    >>> torch.tensor([[1, 2], [3, 4]]), torch.tensor([True, 0.5])
    (tensor([[1, 2],
            [3, 4]]), tensor([1.0000, 0.5000]))
    """
    if dtype is not None:
        dtype = dtype_argument("tensor", dtype)
    where = None if device is None else _where(device)
    if pin_memory:
        check_pinnable(data.dispatch_key.device if where is None and isinstance(data, Tensor) else _where(device))
    return new_tensor("torch.tensor", data, dtype, where, requires_grad)


@method_called("new_tensor")
def _new_tensor(
    self, data: Any, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor, without history, with a copy of `data`, of this tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.ones(2).new_tensor([1, 2])
    tensor([1., 2.])
    """
    where = self.dispatch_key.device if device is None else _where(device)
    wanted = self.dispatch_key.dtype if dtype is None else dtype_argument("new_tensor", dtype)
    return new_tensor("tensor.new_tensor", data, wanted, where, requires_grad)


def as_tensor(data: Any, dtype: dtype | None = None, device: str | device | int | None = None) -> Tensor:
    """`data` as a tensor, without a copy where it is possible: tensors (with their history), NumPy arrays, and other
    libraries' arrays that have ``__dlpack__``, ``__array__`` or ``__cuda_array_interface__``.

    Args:
        data: as for `tensor`.
        dtype, device: if they differ from those of `data`, it is copied.

    >>> import corefw as torch
    >>> x = torch.ones(2)
    >>> torch.as_tensor(x) is x
    True
    """
    if isinstance(data, Tensor):
        if dtype is None and device is None:
            return data
        return data.to(
            device=data.dispatch_key.device if device is None else device, dtype=dtype or data.dispatch_key.dtype
        )
    found = None if data.__class__ in _BUILT_IN else foreign_tensor(data, 3)
    if found is not None:
        return found.to(
            device=_home(found) if device is None else _where(device), dtype=dtype or found.dispatch_key.dtype
        )
    return new_tensor("torch.as_tensor", data, dtype and dtype_argument("as_tensor", dtype), _where(device), False)


def _is_buffer(obj: Any) -> bool:
    """Whether an object shows its memory, as bytes and the arrays of `array` and `ctypes` do."""
    try:
        memoryview(obj)
    except TypeError:
        return False
    return not isinstance(obj, np.generic)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: str | device | int | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`obj` as a tensor: a tensor, an array of NumPy or another library, DLPack capsule, buffer, number or nested
    sequence.

    Args:
        obj: what to convert.
        dtype, device: of the result.
        copy: True copies always, False never (ValueError where a copy is needed), None where needed.
        requires_grad: whether gradients of the result are wanted; a tensor that requires one is detached otherwise.

    >>> import corefw as torch
    >>> torch.asarray([1, 2])
    tensor([1, 2])
    """
    dtype = dtype and dtype_argument("asarray", dtype)
    if isinstance(obj, Tensor):
        found = obj
    elif type(obj).__name__ == "PyCapsule":
        found = from_dlpack(obj)
    elif (array := foreign_tensor(obj, 3)) is not None:
        found = array
    elif _is_buffer(obj):
        found = frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    dispatch_key = dispatch_key_of(
        found.dispatch_key.device if device is None else _where(device), dtype or found.dispatch_key.dtype
    )
    if copy is False and dispatch_key is not found.dispatch_key:
        raise ValueError(f"can't alias tensor at {found.dispatch_key} as {dispatch_key}.")
    result = found.to(device=dispatch_key.device, dtype=dispatch_key.dtype, copy=bool(copy))
    if not requires_grad:
        return result.detach() if result.requires_grad else result
    return result if result.requires_grad else (result.detach() if result is obj else result).requires_grad_()


__all__ = ["as_tensor", "asarray", "frombuffer", "new_tensor", "tensor"]
