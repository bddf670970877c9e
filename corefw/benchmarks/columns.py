"""Columns of a comparison: corefw computing with one backend, or PyTorch, each a module with the same API."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import corefw
from corefw.dispatch.preferences import usable_backend
from corefw.dispatch.registry import registry
from corefw.dispatch.runtime import Runtime
from corefw.dtypes import dtype, float32, of_name
from corefw.errors import SettingError

PEER = "torch"  # the column of PyTorch


class Column:
    """A with-block in which `module` computes as the column's name says, on a device and in a dtype by default.

    Attributes: ``name`` a backend's, or "torch"; ``module`` corefw, or PyTorch; ``device`` the device type.
    """

    name: str
    module: ModuleType
    device: str

    def __str__(self) -> str:
        return self.name

    @property
    def version(self) -> str:
        """What is measured, in words."""
        raise NotImplementedError

    @property
    def queues(self) -> bool:
        """Whether calls may return before the device has done its work."""
        return self.device != "cpu"

    def synchronize(self) -> None:
        """Wait until the device has done all work."""
        raise NotImplementedError

    def set_num_threads(self, number: int) -> None:
        """Set how many threads the column may use."""
        self.module.set_num_threads(number)

    def __enter__(self) -> Column:
        self._scopes = ExitStack()
        self._enter(self._scopes)
        return self

    def __exit__(self, *exception) -> None:
        self._scopes.close()

    def _enter(self, scopes: ExitStack) -> None:
        raise NotImplementedError


class BackendColumn(Column):
    """corefw, asking one backend first."""

    module = corefw

    def __init__(self, name: str, device: str, default_dtype: dtype = float32):
        backend = usable_backend(name)
        if device not in backend.devices:
            raise SettingError(f"backend '{name}' serves {', '.join(backend.devices)}, not {device}")
        self.name, self.device, self.dtype, self._detail = name, device, default_dtype, backend.detail
        self._version = backend.version

    @property
    def version(self):
        return f"{self._version} ({self._detail})" if self._detail else self._version

    @property
    def queues(self):
        return type(registry.runtime(self.device)).synchronize is not Runtime.synchronize

    def synchronize(self):
        registry.runtime(self.device).synchronize()

    def _enter(self, scopes):
        scopes.enter_context(corefw.backend(self.name))
        scopes.callback(corefw.set_default_device, corefw.get_default_device())
        corefw.set_default_device(self.device)
        scopes.callback(corefw.set_default_dtype, corefw.get_default_dtype())
        corefw.set_default_dtype(self.dtype)


class PeerColumn(Column):
    """PyTorch, to compare with."""

    name = PEER

    def __init__(self, device: str, default_dtype: dtype = float32):
        self.module = importlib.import_module(PEER)
        self.device = device
        self.dtype = getattr(self.module, default_dtype.name)
        try:
            self.module.empty(0, device=device)
        except (AssertionError, RuntimeError) as error:  # built without it, unknown, or without such a device
            reason = str(error).partition("\n")[0]
            raise SettingError(f"PyTorch cannot use the device '{device}': {reason}") from error

    @property
    def version(self):
        return self.module.__version__

    def synchronize(self):
        if self.queues:
            getattr(self.module, self.device).synchronize()

    def _enter(self, scopes):
        scopes.callback(self.module.set_default_dtype, self.module.get_default_dtype())
        self.module.set_default_dtype(self.dtype)
        if self.device != "cpu":  # there a default device would cost every call
            scopes.callback(self.module.set_default_device, None)
            self.module.set_default_device(self.device)


def peer_available() -> bool:
    """Whether PyTorch can be imported."""
    return importlib.util.find_spec(PEER) is not None


def column(name: str, device: str = "cpu", default_dtype: str = "float32") -> Column:
    """The column of a name; SettingError where it cannot be used, with the reason."""
    if name != PEER:
        return BackendColumn(name, device, of_name(default_dtype))
    if not peer_available():
        raise SettingError("PyTorch is not installed: pip install torch")
    return PeerColumn(device, of_name(default_dtype))


def names(device: str = "cpu") -> list[str]:
    """The columns there are for a device: usable backends, the first choice first, and PyTorch where it is."""
    usable = sorted((b for b in corefw.backends() if b.usable and device in b.devices), key=lambda b: -b.priority)
    return [*(b.name for b in usable), *([PEER] if peer_available() else [])]


def waiting(function: Callable[..., Any], column: Column) -> Callable[..., Any]:
    """`function`, which then waits for the device, where there is something to wait for."""
    if not column.queues:
        return function

    def waited(*arguments, **options):
        result = function(*arguments, **options)
        column.synchronize()
        return result

    return waited
