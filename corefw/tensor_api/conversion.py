"""Tensors of another dtype, on another device or in another memory order: `to` and its short forms."""

from __future__ import annotations

from typing import Any

from corefw import devices, dtypes
from corefw.declarations._shared.factories import new_strided, strides_like
from corefw.devices import DispatchKey
from corefw.dispatch.batching.arrays import BatchingError, LevelDevice, base_of, joined
from corefw.dispatch.batching.tensors import into
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import dtype
from corefw.graph.views import node_of
from corefw.layouts import memory_format as memory_format_type
from corefw.layouts import preserve_format
from corefw.tensor import Tensor, wrap
from corefw.tensor_api.attach import method
from corefw.tracebacks import warn

_CPU = devices.device("cpu")
_PYTHON_TYPES = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_, complex: dtypes.complex128}
_FORMS = (
    "to() received an invalid combination of arguments - got ({given}), but expected one of:\n"
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = "
    "None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
)


def convert(
    input: Tensor, dispatch_key: DispatchKey, copy: bool = False, memory_format=None, non_blocking: bool = False
) -> Tensor:
    """`input` at another dispatch key: itself if it is there already and no copy is asked for.

    With `non_blocking` a copy to a device may still go on when this returns. The gradient goes back to where the tensor
    came from.
    """
    source = input.dispatch_key
    if LevelDevice.made and source.device is not dispatch_key.device:
        if base_of(source.device) is base_of(dispatch_key.device):  # a tensor leaves a batch at the end of vmap alone
            input = into(input, joined([source, dispatch_key]))
            source = input.dispatch_key
            dispatch_key = source.with_dtype(dispatch_key.dtype)
        elif isinstance(source.device, LevelDevice):
            raise BatchingError(
                f"to(): a tensor inside of vmap or jvp stays on {source.device}: move it before the transform"
            )
    if memory_format is None or memory_format is preserve_format:
        if source is dispatch_key and not copy:
            return input
    elif not copy and source is dispatch_key and input.is_contiguous(memory_format=memory_format):
        return input
    if source.dtype.is_complex and not dispatch_key.dtype.is_complex and dispatch_key.dtype is not dtypes.bool_:
        warn("Casting complex values to real discards the imaginary part")
    if source.device is not dispatch_key.device:
        input = _moved(input, dispatch_key, non_blocking)
        copy = False  # it is one already
    result = ops.cast(dispatch_key, input, dispatch_key.dtype.numpy, copy or source.dtype is not dispatch_key.dtype)
    if dispatch_key.dtype.category < dtypes.FLOATING:
        result.node = None
    if memory_format is not None and memory_format is not preserve_format:
        ordered = new_strided(dispatch_key, result.array.shape, strides_like(result, memory_format))
        dispatch_key.runtime.copy(ordered.array, result.array)
        result.array = ordered.array
    return result


def _moved(input: Tensor, dispatch_key: DispatchKey, non_blocking: bool) -> Tensor:
    """The elements of `input` on the device of `dispatch_key`, still as the result of what computed `input`."""
    source = input.dispatch_key
    target = dispatch_key.with_dtype(source.dtype)
    if source.device.type == dispatch_key.device.type == "meta" or dispatch_key.device.type == "meta":
        array = dispatch_key.runtime.empty(tuple(input.array.shape), source.dtype, None)
    elif source.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    elif source.runtime is target.runtime:
        array = source.runtime.transfer(input.array, target.device.index)
    else:
        upload = target.runtime.upload_soon if non_blocking else target.runtime.upload
        array = upload(source.runtime.download(input.array), target.device.index)
    return wrap(array, target, node_of(input))


def _describe(arguments: tuple, named: dict[str, Any]) -> str:
    return ", ".join([type(a).__name__ for a in arguments] + [f"{n}={type(v).__name__}" for n, v in named.items()])


@method
def to(self, *arguments, **named) -> Tensor:
    """The tensor with another dtype, on another device, or both; itself if nothing changes.

    Call it as ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(other)``, each followed by
    ``non_blocking=False, copy=False, memory_format=torch.preserve_format``.

    Args:
        dtype: the element type.
        device: where the result lies.
        other: a tensor whose dtype and device are wanted.
        non_blocking: do not wait for a copy between devices.
        copy: make a new tensor even if nothing changes.
        memory_format: the order of the dimensions in memory.

    >>> import corefw as torch
    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])
    """
    dispatch_key = self.dispatch_key
    if len(arguments) == 1 and not named:
        (wanted,) = arguments
        if wanted.__class__ is dtype:
            return convert(self, dispatch_key.with_dtype(wanted))
        if wanted.__class__ is Tensor and wanted.dispatch_key.__class__ is DispatchKey:
            return convert(self, wanted.dispatch_key)
        if wanted.__class__ is str or wanted.__class__ is devices.device:
            where = devices.device(wanted)
            return self if where is dispatch_key.device else convert(self, dispatch_key_of(where, dispatch_key.dtype))
    usual = None
    if not named:
        usual = _usual_key(dispatch_key, *arguments) if len(arguments) == 2 else None
    elif not arguments and named.keys() <= {"device", "dtype"}:
        usual = _usual_key(dispatch_key, **named)
    if usual is not None:
        return self if usual is dispatch_key else convert(self, usual)
    try:
        first, rest = _first_form(arguments, named)
        where, wanted = _target(first, rest, named, dispatch_key)
        non_blocking, copy = [*rest, False, False][:2]
        non_blocking, copy = named.pop("non_blocking", non_blocking), named.pop("copy", copy)
        memory_format = named.pop("memory_format", None)
        if named or not (memory_format is None or isinstance(memory_format, memory_format_type)):
            raise _WrongForm
    except _WrongForm:
        raise TypeError(_FORMS.format(given=_describe(arguments, named))) from None
    return convert(self, dispatch_key_of(where, wanted), bool(copy), memory_format, bool(non_blocking))


def _usual_key(dispatch_key: DispatchKey, device=None, dtype=None) -> DispatchKey | None:
    """The dispatch key of a device, or of the one with a name, and a dtype; missing ones are those of `dispatch_key`.
    None for what is no such thing."""
    if device is None:
        device = dispatch_key.device
    elif device.__class__ is str:
        device = devices.device(device)
    elif device.__class__ is not devices.device:
        return None
    if dtype is None:
        dtype = dispatch_key.dtype
    elif dtype.__class__ is not dtypes.dtype:
        return None
    return dispatch_key_of(device, dtype)


class _WrongForm(Exception):
    """The arguments of `to` have none of its forms."""


def _first_form(arguments: tuple, named: dict[str, Any]) -> tuple[Any, list]:
    """The leading argument - a Tensor, a dtype or a device - and those after it."""
    rest = list(arguments)
    first = rest.pop(0) if rest else None
    if first is None and "other" in named:
        first = named.pop("other")
    if first is None and "tensor" in named:
        first = named.pop("tensor")
    return first, rest


def _target(first, rest: list, named: dict[str, Any], dispatch_key: DispatchKey):
    """The device and dtype that a call of `to` asks for; takes what it uses from `rest` and `named`."""
    if isinstance(first, Tensor):
        where, wanted = first.dispatch_key.device, first.dispatch_key.dtype
    elif _as_dtype(first) is not None:
        where, wanted = named.pop("device", None), _as_dtype(first)
    else:
        where = named.pop("device", None) if first is None else first
        wanted = named.pop("dtype", None)
        if rest and (rest[0] is None or _as_dtype(rest[0]) is not None):
            wanted = rest.pop(0)
        if wanted is not None and (wanted := _as_dtype(wanted)) is None:
            raise _WrongForm
    if len(rest) > 2:
        raise _WrongForm
    if where is None:
        where = dispatch_key.device
    elif not isinstance(where, devices.device):
        if not isinstance(where, (str, int)) or isinstance(where, bool):
            raise _WrongForm
        where = devices.device(where)
    return where, wanted or dispatch_key.dtype


def _as_dtype(value) -> dtype | None:
    if value.__class__ is dtype:
        return value
    return _PYTHON_TYPES.get(value) if isinstance(value, type) else None


# -- short forms ------------------------------------------------------------------------------------------------------
def _short_form(name: str, wanted: dtype):
    numpy_dtype, differentiable = wanted.numpy, wanted.category >= dtypes.FLOATING

    def short(self, memory_format=None) -> Tensor:
        dispatch_key = self.dispatch_key
        if memory_format is not None or dispatch_key.dtype.is_complex:
            return convert(self, dispatch_key.with_dtype(wanted), False, memory_format)
        if dispatch_key.dtype is wanted:
            return self
        result = ops.cast(dispatch_key.with_dtype(wanted), self, numpy_dtype, True)
        if not differentiable:
            result.node = None
        return result

    short.__name__ = name
    short.__doc__ = f"The tensor as {wanted!r}: ``to({wanted!r})``."
    method(short)


for _name, _dtype in {
    "bfloat16": dtypes.bfloat16,
    "bool": dtypes.bool_,
    "byte": dtypes.uint8,
    "cdouble": dtypes.complex128,
    "cfloat": dtypes.complex64,
    "chalf": dtypes.complex32,
    "char": dtypes.int8,
    "double": dtypes.float64,
    "float": dtypes.float32,
    "half": dtypes.float16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "short": dtypes.int16,
}.items():
    _short_form(_name, _dtype)


@method
def cpu(self, memory_format=None) -> Tensor:
    """The tensor in the CPU's memory; itself if it is there."""
    if memory_format is None and self.dispatch_key.device is _CPU:
        return self
    return convert(self, dispatch_key_of(_CPU, self.dispatch_key.dtype), False, memory_format)


@method
def cuda(self, device=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    """The tensor on a GPU; itself if it is there.

    Args:
        device: which one; the current one if missing.
        non_blocking: do not wait for the copy.
        memory_format: the order of the dimensions in memory.
    """
    return convert(
        self,
        dispatch_key_of(devices.device("cuda" if device is None else device), self.dispatch_key.dtype),
        False,
        memory_format,
    )


@method
def type_as(self, other: Tensor) -> Tensor:
    """The tensor with the dtype and device of `other`."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    return convert(self, other.dispatch_key)
