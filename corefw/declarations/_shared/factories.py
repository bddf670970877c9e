"""The arguments shared by functions that make tensors: size, dtype, device, layout, requires_grad, out.

`size_and_target` and `new_tensor` are called as attributes of this module: a backend may put quicker ones here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index

import numpy as np

from corefw import devices, dtypes
from corefw.devices import DispatchKey, default
from corefw.dispatch.declare import ops
from corefw.dispatch.numbers import fitting_number
from corefw.dispatch.out import store
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.sparse.keys import LayoutKey
from corefw.dtypes import FLOATING, Default
from corefw.errors import CorefwError, DtypeError, GradientError, OutOfMemoryError, ShapeError
from corefw.graph.nodes import leaf_node
from corefw.layouts import preserve_format, strided
from corefw.shapes import Shape, check_storage, contiguous_strides, permuted_strides, preserved_strides
from corefw.tensor import Tensor, new, wrap
from corefw.versions import fresh_version, inferring

_PYTHON_TYPES = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_, complex: dtypes.complex128}


# -- the signature ----------------------------------------------------------------------------------------------------
Ints = int | Sequence[int]  # a size given as one sequence, or as separate arguments
_DEFAULTS = {
    "out": None,
    "dtype": None,
    "layout": None,
    "device": None,
    "requires_grad": False,
    "pin_memory": False,
    "memory_format": None,
}


def factory(function: Callable) -> Callable:
    """Give the keyword arguments that functions which make tensors share their defaults and types; in the functions'
    declarations they are names alone: ``def eye(n: int, *, out, dtype, layout, device, requires_grad, pin_memory)``."""
    code, given = function.__code__, function.__kwdefaults__ or {}
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    shared = [name for name in names if name in _DEFAULTS and name not in given]
    function.__kwdefaults__ = {**given, **{name: _DEFAULTS[name] for name in shared}}
    function.__annotations__.update((name, "bool") for name in shared if _DEFAULTS[name] is False)
    return function


# -- where and of which type ------------------------------------------------------------------------------------------
def dtype_argument(name: str, value) -> dtypes.dtype:
    """The dtype given to `name`: a dtype or one of the Python types float, int, bool, complex."""
    if value.__class__ is dtypes.dtype:
        return value
    found = _PYTHON_TYPES.get(value) if isinstance(value, type) else None
    if found is None:
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")
    return found


def target(name: str, dtype, device, layout=None, pin_memory=False) -> DispatchKey:
    """The dispatch key that the arguments of a function which makes tensors name; missing ones mean the defaults."""
    if dtype is None:
        dtype = Default.dtype
    elif dtype.__class__ is not dtypes.dtype:
        dtype = dtype_argument(name, dtype)
    if device is None:
        device = default.device
    elif device.__class__ is not devices.device:
        device = devices.device(device)
    if layout is not None and layout is not strided:
        raise TypeError(f"{name}(): argument 'layout' must be torch.strided, the only layout, not {layout!r}")
    if pin_memory:
        check_pinnable(device)
    found = device._keys.get(dtype)
    return found if found is not None else dispatch_key_of(device, dtype)


def check_pinnable(device) -> None:
    """Refuse page-locked memory for tensors that do not lie on the CPU."""
    if device.type != "cpu":
        raise ArgumentError(f"Only dense CPU tensors can be pinned, got device {device}")


class ArgumentError(CorefwError, RuntimeError):
    """An argument's value is refused, where PyTorch raises RuntimeError."""


def target_like(name: str, like, dtype, device, layout=None, pin_memory=False) -> DispatchKey:
    """As `target`, with the dtype and device of the tensor `like` as defaults."""
    try:
        dispatch_key = like.dispatch_key
    except AttributeError:
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(like).__name__}") from None
    if device is None and layout is None and not pin_memory:
        return dispatch_key if dtype is None else dispatch_key.with_dtype(dtype_argument(name, dtype))
    return target(
        name, dtype or dispatch_key.dtype, dispatch_key.device if device is None else device, layout, pin_memory
    )


# -- how large --------------------------------------------------------------------------------------------------------
def size_argument(name: str, size: tuple, named: dict | None = None) -> Shape:
    """The shape from ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))``; TypeError and RuntimeError as PyTorch's."""
    if named:
        size = size or (named.pop("size", None),)
        if named:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
    if size:
        given = size[0] if size[0].__class__ is tuple and len(size) == 1 else size
        for n in given:
            if n.__class__ is not int or n < 0:
                break
        else:
            return given
    if len(size) == 1 and (isinstance(size[0], (list, tuple)) or (getattr(size[0], "ndim", 0) == 1)):
        size = tuple(size[0])
    elif not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    shape = []
    for position, n in enumerate(size, 1):
        if n.__class__ is not int:
            if isinstance(n, bool) or not hasattr(n, "__index__"):
                if len(size) == 1:
                    raise TypeError(
                        f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(n).__name__}"
                    )
                raise TypeError(
                    f"{name}(): argument 'size' failed to unpack the object at pos {position} with error \"type must "
                    f"be "
                    f'tuple of ints,but got {type(n).__name__}"'
                )
            n = index(n)
        if n < 0:
            raise ShapeError(f"{name}: Trying to create tensor with negative dimension {n}: {list(map(int, size))}")
        shape.append(n)
    return tuple(shape)


def size_and_target(
    name: str, size: tuple, named: dict | None, dtype, device, layout, pin_memory
) -> tuple[Shape, DispatchKey]:
    """What `size_argument` and `target` find, in the frame of one call."""
    if named or not size:
        size = size_argument(name, size, named)
    for n in size:
        if n.__class__ is not int or n < 0:
            size = size_argument(name, size)
            break
    if device is layout is None and not pin_memory and (dtype is None or dtype.__class__ is dtypes.dtype):
        found = default.device._keys.get(dtype or Default.dtype)
        if found is not None:
            return size, found
    return size, target(name, dtype, device, layout, pin_memory)


def given_size(size: Shape, *attributes) -> Shape:
    """The shape rule of a kernel that makes a tensor: the argument `size`."""
    return size


def filled(dispatch_key: DispatchKey, shape, value) -> Tensor:
    """A tensor whose elements are all the number `value`."""
    return ops.full_at(dispatch_key, shape, fitting_number(value, dispatch_key.dtype), dispatch_key.dtype.numpy)


def checked_strides(shape, strides):
    """The strides themselves; refused unless they fit `shape`."""
    if len(shape) != len(strides):
        raise ShapeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    if any(stride < 0 for stride in strides):
        raise ShapeError(
            f"empty_strided: strides must not be negative, got sizes={list(shape)} and strides={list(strides)}"
        )
    return strides


def new_memory(dispatch_key: DispatchKey, shape: Shape):
    """An array with arbitrary content."""
    return new_tensor(dispatch_key, shape).array


def new_tensor(dispatch_key: DispatchKey, shape: Shape) -> Tensor:
    """A tensor with arbitrary content; its device's error for too large a shape is explained."""
    result = new(dispatch_key.kind.tensor_class if dispatch_key.__class__ is LayoutKey else Tensor)
    try:
        result.array = dispatch_key.runtime.empty(shape, dispatch_key.dtype, dispatch_key.device.index)
    except (ValueError, OverflowError, MemoryError) as error:
        check_storage(shape, dispatch_key.dtype.itemsize)
        if isinstance(error, MemoryError):
            raise OutOfMemoryError(str(error)) from error
        raise
    result.dispatch_key = dispatch_key
    result.node = result.view_info = None
    result.version = fresh_version() if inferring else [0]
    return result


def new_strided(dispatch_key: DispatchKey, shape: Shape, strides: Shape) -> Tensor:
    """A tensor with arbitrary content whose elements lie at `strides`."""
    if strides == contiguous_strides(shape) or prod(shape) == 0:
        array = new_memory(dispatch_key, shape)
        return wrap(
            array
            if strides == contiguous_strides(shape)
            else dispatch_key.runtime.as_strided(array, shape, strides, 0),
            dispatch_key,
        )
    length = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
    memory = new_memory(dispatch_key, (length,))
    return wrap(dispatch_key.runtime.as_strided(memory, shape, strides, 0), dispatch_key)


def strides_like(like: Tensor, memory_format) -> Shape:
    """The strides of a new tensor in the shape of `like`."""
    shape = tuple(like.array.shape)
    if memory_format is None or memory_format is preserve_format:
        if like.dispatch_key.__class__ is LayoutKey:  # it has none
            return contiguous_strides(shape)
        itemsize = like.dispatch_key.dtype.itemsize
        return preserved_strides(shape, tuple(s // itemsize for s in like.array.strides))
    return permuted_strides(shape, memory_format.order(len(shape)))


def order_like(like: Tensor, memory_format) -> Shape | None:
    """The strides of a new tensor in the shape of `like`; None for row-major order."""
    array = like.array
    if memory_format is None and like.dispatch_key.runtime.is_contiguous(array):
        return None
    strides = strides_like(like, memory_format)
    return None if strides == contiguous_strides(tuple(array.shape)) else strides


# -- the result -------------------------------------------------------------------------------------------------------
def require_grad(tensor: Tensor) -> Tensor:
    """Make a fresh tensor a leaf that requires a gradient."""
    if tensor.dispatch_key.dtype.category < FLOATING:
        raise GradientError("Only Tensors of floating point and complex dtype can require gradients")
    tensor.node = leaf_node(tensor)
    return tensor


def out_key(name: str, out, dtype, device) -> DispatchKey:
    """Where a function with ``out=`` computes: at `out`, with which dtype and device must agree."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    dispatch_key = out.dispatch_key
    if dtype is not None and dtype_argument(name, dtype) is not dispatch_key.dtype:
        wanted = dtype_argument(name, dtype)
        raise DtypeError(f"dtype {wanted.title} does not match dtype of out parameter ({dispatch_key.dtype.title})")
    if device is not None and dispatch_key_of(devices.device(device), dispatch_key.dtype) is not dispatch_key:
        raise ArgumentError(f"device {device} does not match device of out parameter ({dispatch_key.device})")
    return dispatch_key


def into_out(name: str, out: Tensor, value: Tensor) -> Tensor:
    """Write a fresh tensor to `out`, which is resized if its shape differs."""
    if out.array.shape != value.array.shape:
        dispatch_key = out.dispatch_key
        out.array = dispatch_key.runtime.empty(tuple(value.array.shape), dispatch_key.dtype, dispatch_key.device.index)
    store(name, out, value)
    return out


# -- numbers ----------------------------------------------------------------------------------------------------------
def number_argument(name: str, argument: str, value, position: int):
    """A Python number given to `name`: a number, a NumPy scalar or a 0-d tensor."""
    kind = value.__class__
    if kind is int or kind is float or kind is bool or kind is complex:
        return value
    if isinstance(value, (int, float, complex)):
        return value if not isinstance(value, np.generic) else value.item()
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.array.ndim == 0):
        return value.item()
    if hasattr(value, "__index__") and not isinstance(value, Tensor):
        return index(value)
    raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}")
