"""Devices and dispatch keys: where elements lie, and the (device, dtype) pair that every dispatch is keyed by."""

from __future__ import annotations

import threading
from collections.abc import Callable

from corefw.dtypes import dtype
from corefw.errors import DeviceError, UnsupportedDtypeError, did_you_mean

#: device types known without a plugin, PyTorch's: of most of them there is only the name, until a plugin serves it;
#: plugins add theirs
_types: set[str] = {
    *("cpu", "cuda", "fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "meta", "mkldnn", "mps", "mtia", "opencl"),
    *("opengl", "privateuseone", "ve", "vulkan", "xla", "xpu"),
}
#: asked once for a device type that is not known yet (the plugin loader sets it), before it is refused
_discover: list[Callable[[str], None]] = []


def add_device_type(name: str) -> None:
    """Make `device(name)` valid; called when a plugin that serves it is registered."""
    _types.add(name)


def on_unknown_type(discover: Callable[[str], None]) -> None:
    """Have `discover(name)` called before an unknown device type is refused."""
    _discover.append(discover)


class device:
    """A memory space: a type ("cpu", "cuda", a plugin's) and an index; interned, so that identity is equality.

    Args:
        type: a type, a type with an index ("cuda:1"), a device, or an index of the cuda device.
        index: which one, if the type does not say; None means the current one.

    Raises RuntimeError for an unknown type or a malformed text.

    >>> device("cuda:1"), device("cpu").type, device("cuda", 0).index
    (device(type='cuda', index=1), 'cpu', 0)
    """

    __slots__ = ("_keys", "index", "type")
    _keys: dict[dtype, DispatchKey]  # the dispatch keys that there are of it
    type: str
    index: int | None
    _interned: dict[tuple[str, int | None], device] = {}

    def __new__(cls, type: str | device | int, index: int | None = None) -> device:
        if type.__class__ is device:
            return type
        if isinstance(type, int):
            index, type = type, "cuda"
        if not isinstance(type, str):
            if isinstance(type, device):
                return type
            raise TypeError(f"device(): argument 'type' must be str, int or device, not {type.__class__.__name__}")
        found = cls._interned.get((type, index))
        return found if found is not None else cls._intern(type, index)

    @classmethod
    def _intern(cls, text: str, index: int | None) -> device:
        type, separator, number = text.partition(":")
        if separator:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {text}"
                )
            if not number.isdecimal():
                raise RuntimeError(f"Invalid device string: '{text}'")
            index = int(number)
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative, got {index}")
        if type not in _types:
            for discover in _discover:
                discover(type)
        if type not in _types:
            raise DeviceError(
                f"Expected one of {', '.join(sorted(_types))} device type at start of device string: {text}"
                + did_you_mean(type, _types)
            )
        key = (type, index)
        if key not in cls._interned:
            self = object.__new__(cls)
            self.type, self.index = key
            self._keys = {}
            cls._interned[key] = self
        return cls._interned[key]

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return device, (self.type, self.index)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __enter__(self) -> device:
        default.stack = (*default.stack, default.device)
        default.device = self
        return self

    def __exit__(self, *exception) -> None:
        *stack, default.device = default.stack
        default.stack = tuple(stack)


class _Default(threading.local):
    """The thread's default device, and those that enclosing with-blocks will restore."""

    device = device("cpu")
    stack: tuple = ()


default = _Default()


def get_default_device() -> device:
    """The device on which tensors are made that name none.

    >>> get_default_device()
    device(type='cpu')
    """
    return default.device


def set_default_device(device: str | device | int | None) -> None:
    """Make tensors that name no device on `device`; None means the CPU.

    A device is also a context manager, which sets it for a block: ``with corefw.device("meta"):``.
    """
    default.device = _Default.device.__class__("cpu" if device is None else device)


class DispatchKey:
    """An interned (device, dtype) pair, by which kernels are looked up, hashed by identity."""

    __slots__ = ("device", "dtype", "runtime")

    def __init__(self, device: device, dtype: dtype, runtime):
        self.device = device
        self.dtype = dtype
        self.runtime = runtime

    def __repr__(self) -> str:
        return f"{self.device}/{self.dtype.name}"

    def with_dtype(self, dtype: dtype) -> DispatchKey:
        """The dispatch key of the same device with another dtype."""
        try:
            return self.device._keys[dtype]
        except KeyError:
            return DispatchKey.intern(self.device, dtype, self.runtime)

    @staticmethod
    def intern(device: device, dtype: dtype, runtime) -> DispatchKey:
        """The one dispatch key of (device, dtype), made on first use; or UnsupportedDtypeError."""
        found = device._keys.get(dtype)
        if found is None:
            if dtype not in runtime.dtypes:
                stored = ", ".join(sorted(known.name for known in runtime.dtypes))
                raise UnsupportedDtypeError(
                    f"device '{device.type}' does not store {dtype.name} but {stored}: convert to one of these first"
                )
            found = device._keys.setdefault(dtype, DispatchKey(device, dtype, runtime))
        return found
