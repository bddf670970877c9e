"""PyTorch's older constructors: `Tensor(...)`, `FloatTensor(...)` and the names of tensor types."""

from __future__ import annotations

import copyreg
from typing import Any, overload

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError, new_memory, size_argument
from corefw.devices import device
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import MODULE, dtype
from corefw.shapes import Size
from corefw.tensor import Tensor, new, wrap
from corefw.tensor_api.attach import method, method_called
from corefw.tensor_api.construction import new_tensor
from corefw.tensor_api.conversion import convert


def _construct(name: str, arguments: tuple, wanted: dtype, where: device, *, any_dtype: bool) -> Tensor:
    """What ``Tensor(...)`` makes: of sizes a tensor with arbitrary content, of data a copy, of a tensor its alias."""
    first = arguments[0] if arguments else ()
    dispatch_key = dispatch_key_of(where, wanted)
    if len(arguments) == 1 and isinstance(first, Tensor):
        if not any_dtype and first.dispatch_key is not dispatch_key:
            raise TypeError(
                f"{name}(): expected a tensor of {dispatch_key.dtype!r} on {dispatch_key.device}, got "
                f"{first.dispatch_key.dtype!r} on {first.dispatch_key.device}"
            )
        alias = first.detach()
        alias.version = first.version
        return alias
    is_count = hasattr(first, "__index__") and not hasattr(first, "__len__")
    if len(arguments) == 1 and not is_count and not isinstance(first, Size):
        if isinstance(first, str):
            raise TypeError("new(): invalid data type 'str'")
        if isinstance(first, float | complex):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        return new_tensor(name, first, wanted, where, False)
    shape = size_argument("new", arguments) if arguments else (0,)
    return wrap(new_memory(dispatch_key, shape), dispatch_key)


def _new(cls, *arguments, device: Any = None, **options):
    """``Tensor(2, 3)``, ``Tensor([1, 2])``, ``Tensor(tensor)``: of the default floating dtype."""
    where = _device("cpu" if device is None else device)
    made = _construct("torch.Tensor", arguments, dtypes.get_default_dtype(), where, any_dtype=True)
    return made if cls is Tensor else as_subclass(made, cls)


_device = device  # the constructor's argument has this name too
Tensor.__new__ = staticmethod(_new)  # type: ignore[method-assign]


@method
def as_subclass(self, cls: type[Tensor]) -> Tensor:
    """The same tensor, memory and history, as an instance of a subclass of Tensor."""
    made = new(cls)
    made.array, made.dispatch_key, made.node, made.view_info, made.version = (
        self.array,
        self.dispatch_key,
        self.node,
        self.view_info,
        self.version,
    )
    return made


# -- tensor types -----------------------------------------------------------------------------------------------------
class TensorType(type):
    """The class of `FloatTensor` and its like: no classes of tensors, but names of a dtype on a device type."""

    dtype: dtype
    device_type: str

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dispatch_key.dtype is cls.dtype
            and instance.dispatch_key.device.type == cls.device_type
        )

    def __call__(cls, *arguments, device: Any = None) -> Tensor:
        where = _device(cls.device_type if device is None else device)
        if where.type != cls.device_type:
            raise ArgumentError(
                f"legacy constructor expects device type: {cls.device_type} but device type: {where.type} was passed"
            )
        return _construct(cls.__name__, arguments, cls.dtype, where, any_dtype=False)


_TYPES: dict[str, TensorType] = {}


def _tensor_type(name: str) -> TensorType:
    return _TYPES[name]


# pickle would look for the name that PyTorch gives it in PyTorch
copyreg.pickle(TensorType, lambda kind: (_tensor_type, (f"{kind.__module__}.{kind.__name__}",)))


def _type_name(d: dtype, device_type: str) -> str:
    prefix = "" if device_type == "cpu" else f"{device_type}."
    return f"{MODULE}.{prefix}{d.title}Tensor"


def tensor_types(device_type: str) -> dict[str, TensorType]:
    """The tensor types of a device type by name: {"FloatTensor": ..., ...}."""
    found = {}
    for d in (*dtypes.ALL,):
        module, _, name = _type_name(d, device_type).rpartition(".")
        doc = f"Makes tensors of {d!r} on {device_type}; isinstance tells whether a tensor is one."
        found[name] = TensorType(
            name, (), {"dtype": d, "device_type": device_type, "__module__": module, "__doc__": doc}
        )
        _TYPES[_type_name(d, device_type)] = found[name]
    return found


_BY_NAME = {_type_name(d, kind): (d, kind) for d in dtypes.ALL for kind in ("cpu", "cuda", "meta")}


def type_named(kind: Any) -> tuple[dtype, str] | None:
    """The dtype and the device type of a tensor type or of its name; None if it is neither."""
    if isinstance(kind, TensorType):
        return kind.dtype, kind.device_type
    return _BY_NAME.get(kind) if isinstance(kind, str) else None


@method_called("new")
def _new_alike(self, *arguments: Any, device: Any = None) -> Tensor:
    """What the type of the tensor makes: of sizes a tensor with arbitrary content, of data a copy.

    Args:
        arguments: sizes, a sequence of numbers, or a tensor of the same dtype; nothing makes an empty tensor.
        device: another device of the same type.

    >>> import corefw as torch
    >>> torch.ones(2, dtype=torch.float64).new([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    own = self.dispatch_key.device
    where = own if device is None else _device(device)
    if where.type != own.type:
        raise ArgumentError(f"new(): expected a device of type {own.type}, that of the tensor, got {where}")
    return _construct("new", arguments, self.dispatch_key.dtype, where, any_dtype=False)


@overload
def _type(self, dtype: None = None, non_blocking: bool = False) -> str: ...
@overload
def _type(self, dtype: Any, non_blocking: bool = False) -> Tensor: ...
@method_called("type")
def _type(self, dtype=None, non_blocking: bool = False):
    """The name of the tensor's type, or the tensor as another type.

    Args:
        dtype: a dtype, a tensor type (`torch.FloatTensor`) or its name; None asks for the name.
        non_blocking: do not wait for a copy between devices.

    >>> import corefw as torch
    >>> torch.ones(2).type(), torch.ones(2).type("torch.LongTensor")
    ('torch.FloatTensor', tensor([1, 1]))
    """
    dispatch_key = self.dispatch_key
    if dtype is None:
        return _type_name(dispatch_key.dtype, dispatch_key.device.type)
    if isinstance(dtype, dtypes.dtype):
        return convert(self, dispatch_key.with_dtype(dtype))
    found = type_named(dtype)
    if found is None:
        raise ValueError(f"invalid type: '{dtype if isinstance(dtype, str) else getattr(dtype, '__name__', dtype)}'")
    wanted, kind = found
    where = dispatch_key.device if kind == dispatch_key.device.type else _device(kind)
    return convert(self, dispatch_key_of(where, wanted))


def typename(obj: Any) -> str:
    """The name of an object's type with its module; for a tensor that of its tensor type.

    >>> import corefw as torch
    >>> torch.typename(torch.ones(2)), torch.typename(1)
    ('torch.FloatTensor', 'builtins.int')
    """
    if isinstance(obj, Tensor):
        return _type_name(obj.dispatch_key.dtype, obj.dispatch_key.device.type)
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"
