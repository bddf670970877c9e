"""NumPy's C interface, reached from Python."""

from __future__ import annotations

import ctypes

import numpy._core._multiarray_umath as numpy_core  # type: ignore[import-not-found]


def numpy_function(table: str, index: int, *signature):
    """A function of one of NumPy's tables, ``_ARRAY_API`` or ``_UFUNC_API``, by its index there (NumPy's headers
    __multiarray_api.h and __ufunc_api.h), with the ctypes of its result and arguments."""
    return ctypes.PYFUNCTYPE(*signature)(_address(table, index))


def numpy_address(index: int) -> int:
    """The address of a function in NumPy's table ``_ARRAY_API``."""
    return _address("_ARRAY_API", index)


def _address(table: str, index: int) -> int:
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get = pointer_of(("PyCapsule_GetPointer", ctypes.pythonapi))
    functions = ctypes.cast(get(getattr(numpy_core, table), None), ctypes.POINTER(ctypes.c_void_p))
    return functions[index]
