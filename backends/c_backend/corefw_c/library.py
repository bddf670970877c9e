"""The compiled kernels: which level to load, the test of NumPy's layout, and what a kernel's status means."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

import ml_dtypes
import numpy as np

from corefw.errors import SettingError, did_you_mean, read_only
from corefw_c.interface import numpy_address

#: the modules, best first; there is a level of each one's name
MODULES = ("v4", "v3", "v2", "portable")
#: what half types and int8 are multiplied with, numbered as `products` in kernels.h
BY_FLOATS, BY_PAIRS, BY_TILES = range(3)
#: levels above a module's own: the module, and what multiplies in it
FURTHER = {"amx": ("v4", BY_TILES), "v4-bf16": ("v4", BY_PAIRS)}

#: of NumPy's table of functions (numpy/_core/code_generators/numpy_api.py): PyArray_Empty, PyArray_Zeros,
#: PyArray_NewFromDescr, PyArray_SetBaseObject
_MAKERS = (184, 183, 94, 282)


def is_built(module: str) -> bool:
    """Whether a module lies beside this file; one of another installation would be of other sources."""
    return PathFinder.find_spec(f"corefw_c._{module}", [str(Path(__file__).parent)]) is not None


def _machine() -> tuple[int, int, int]:
    """The machine's level, its best products, and the number of the error with which the system refuses tiles."""
    # Asking is safe: a module's import and these functions are compiled for every processor (building/levels.py).
    lib = import_module(f"corefw_c._{next(filter(is_built, reversed(MODULES)))}").lib
    level = lib.machine_level()
    products = lib.machine_products() if level == 4 else BY_FLOATS
    return level, products, lib.permission_of_tiles() if products == BY_TILES else 0


def levels() -> list[str]:
    """The levels that are installed and that this machine has, best first."""
    built = [module for module in MODULES if is_built(module)]
    if not built:
        raise ImportError("corefw_c has no compiled kernels: install it with pip, or build it with scripts/build_c")
    machine, products, refusal = _machine()
    usable = [module for module in built if module == "portable" or int(module[1]) <= machine]
    if not usable:
        raise ImportError(
            f"corefw_c was compiled for {', '.join(built)}, and this machine has v{machine}: install it again here, or "
            "anywhere with COREFW_C_LEVELS=all"
        )
    best = BY_PAIRS if refusal else products
    return [level for level, (module, by) in FURTHER.items() if module in usable and by <= best] + usable


def refused_level() -> str:
    """The level that the processor has and the system refuses, with the reason; empty if there is none."""
    refusal = _machine()[2]
    return f"amx refused by the system: {os.strerror(refusal)}" if refusal else ""


def best_level() -> str:
    """The level to use: the machine's best, or a lower one that COREFW_C_LEVEL names."""
    usable, wanted = levels(), os.environ.get("COREFW_C_LEVEL")
    if wanted and wanted not in usable:
        guess = did_you_mean(wanted, usable)
        raise SettingError(f"COREFW_C_LEVEL={wanted}{guess}: this machine and installation have {', '.join(usable)}")
    return wanted or usable[0]


def module_of(level: str) -> str:
    """The module that a level is in."""
    return FURTHER.get(level, (level, BY_FLOATS))[0]


class Library:
    """The functions of a module, and `products`: what a level of it multiplies half types and int8 with."""

    def __init__(self, functions, products: int):
        self.functions, self.products = functions, products

    def __getattr__(self, name: str):
        found = self.__dict__[name] = getattr(self.functions, name)  # asked once
        return found


@cache
def load(level: str) -> Library:
    """The library of a level, tested and initialised."""
    module, products = FURTHER.get(level, (level, BY_FLOATS))
    lib = import_module(f"corefw_c._{module}").lib
    _check_layout(lib)
    lib.set_types(id(np.ndarray), id(np.dtype), np.dtype(ml_dtypes.bfloat16).num)
    lib.set_makers(*map(numpy_address, _MAKERS))
    return Library(lib, products)


def _check_layout(lib) -> None:
    """ImportError unless C reads from an array object what Python says of it."""
    array = np.zeros((5, 7, 6), np.float32)[1:, ::-2, ::3]
    for probe in (array, array.T, np.zeros(()), np.zeros(3, np.int8), np.frombuffer(bytes(8))):
        seen = (probe.ctypes.data, probe.ndim, probe.shape, probe.strides, probe.dtype.num)
        if not lib.layout_is(id(probe), *seen) or lib.is_read_only(id(probe)) == probe.flags.writeable:
            raise ImportError(
                f"NumPy {np.__version__} lays out its array objects as corefw_c does not expect (a debug or "
                "free-threaded build of Python, or a new binary interface of NumPy): use the NumPy backend"
            )


#: statuses that some shims look at, numbered as in array.h
WRONG_DTYPE, OUT_OF_RANGE, UNSUPPORTED, READ_ONLY = 2, 4, 5, 6

_MEANINGS = {
    1: (ValueError, "arrays whose shapes do not fit"),
    2: (TypeError, "arrays of other element types than it takes"),
    3: (MemoryError, "not enough memory"),
    4: (IndexError, "index out of range"),
    5: (NotImplementedError, "arguments that it does not take"),
}


def fail(op: str, status: int):
    """Raise what a kernel's status other than 0 means."""
    if status == READ_ONLY:
        raise read_only(op)
    kind, meaning = _MEANINGS[status]
    raise kind(f"{op}: the C kernel met {meaning}")
