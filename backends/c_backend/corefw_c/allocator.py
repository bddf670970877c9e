"""The caching allocator: freed memory of arrays is kept and used again, for fresh pages cost more than most kernels.

NumPy takes it as its allocator of array data (NEP 49), in the context in which the backend is loaded and those that
come from it; so the arrays of every kernel and of NumPy itself come from it. COREFW_C_CACHE limits what is kept, in
bytes (default: a quarter of the machine's memory); 0 leaves NumPy its own allocator. COREFW_POISON=1 fills every
block that is given out, scratch memory of kernels too, with bytes 0xFF (NaN, or -1 for integers), so that what is read
before it was written shows; the tests run so.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from corefw.errors import SettingError
from corefw_c import library
from corefw_c.interface import numpy_function

_NAME = b"mem_handler"  # of the capsules that hold a handler, which keep it by address
_SET_HANDLER = 304  # of NumPy's table of functions (numpy/_core/code_generators/numpy_api.py): PyDataMem_SetHandler


class Statistics(NamedTuple):
    """Bytes of the blocks in use, the most that were in use, and those kept for later; how often memory was asked for,
    and how often a kept block served."""

    in_use: int
    peak: int
    cached: int
    allocations: int
    hits: int


def statistics() -> Statistics:
    """What the allocator holds now, and its counts since the start."""
    now = _library().memory_statistics()
    return Statistics(*(getattr(now, field) for field in Statistics._fields))


def empty_cache() -> None:
    """Give the kept blocks back to the system."""
    _library().empty_cache()


def reset_peak() -> None:
    """Let the peak begin at what is in use now."""
    _library().reset_peak_memory()


def _library():
    return library.load(library.best_level())


def install(lib) -> None:
    """Make the library's allocator NumPy's, unless COREFW_C_CACHE is 0."""
    limit = cache_limit(os.environ)
    if not limit:
        return
    lib.set_cache_limit(limit)
    _set_handler()(handler_at(lib.memory_handler()))


@contextmanager
def use(handler) -> Iterator[None]:
    """Have NumPy allocate by another handler, in this thread, inside the block."""
    before = _set_handler()(handler)
    try:
        yield
    finally:
        _set_handler()(before)


def cache_limit(environment) -> int:
    """The bytes that may be kept: COREFW_C_CACHE, or a quarter of the machine's memory.

    >>> cache_limit({"COREFW_C_CACHE": "1000000"})
    1000000
    """
    wanted = environment.get("COREFW_C_CACHE")
    if wanted is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    if not wanted.isdecimal():
        raise SettingError(f"COREFW_C_CACHE={wanted!r}: expected a number of bytes, 0 for NumPy's own allocator")
    return int(wanted)


@cache
def _set_handler():
    """NumPy's function that takes a handler and returns the one before."""
    return numpy_function("_ARRAY_API", _SET_HANDLER, ctypes.py_object, ctypes.py_object)


def handler_at(address: int):
    """A handler of NumPy's memory, as NumPy takes it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, _NAME, None)
