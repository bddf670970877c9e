"""Shims in C (source/direct) for few elements, whose call costs more than their work, before those in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import _cffi_backend

_FFI = _cffi_backend.FFI()


def _address(pointer) -> int:
    return int(_FFI.cast("uintptr_t", pointer))


@cache
def python_function(lib, name: str) -> Callable:
    """A function of C that takes one Python object and gives one, called with Python's lock."""
    address = _address(_FFI.addressof(lib.functions, name))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)


def direct(lib, name: str, shim: Callable, *numbers: int) -> Callable:
    """The shim in C of this name, which is given `numbers`, before `shim`; of a library that notes its calls `shim`
    alone. Both call the same kernel."""
    if hasattr(lib, "noting_elementwise"):
        return shim
    function = lib.direct_function(name.encode())
    assert function, name
    return python_function(lib, "with_direct_call")((shim, _address(function), *numbers))
