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

LEVELS = ("v4", "v3", "v2", "portable")


def is_built(level: str) -> bool:
    """Whether a level lies beside this file; one of another installation would be of other sources."""
    return PathFinder.find_spec(f"corefw_c._{level}", [str(Path(__file__).parent)]) is not None


def levels() -> list[str]:
    """The levels that are installed and that this machine has, best first."""
    built = [level for level in LEVELS if is_built(level)]
    if not built:
        raise ImportError("corefw_c has no compiled kernels: install it with pip, or build it with scripts/build_c")
    # Asking is safe: the import and this function are compiled for every processor (building/levels.py).
    machine = import_module(f"corefw_c._{built[-1]}").lib.machine_level()
    usable = [level for level in built if level == "portable" or int(level[1]) <= machine]
    if not usable:
        raise ImportError(
            f"corefw_c was compiled for {', '.join(built)}, and this machine has v{machine}: install it again here, or "
            "anywhere with COREFW_C_LEVELS=all"
        )
    return usable


def best_level() -> str:
    """The level to use: the machine's best, or a lower one that COREFW_C_LEVEL names."""
    usable, wanted = levels(), os.environ.get("COREFW_C_LEVEL")
    if wanted and wanted not in usable:
        guess = did_you_mean(wanted, usable)
        raise SettingError(f"COREFW_C_LEVEL={wanted}{guess}: this machine and installation have {', '.join(usable)}")
    return wanted or usable[0]


@cache
def load(level: str):
    """The library of a level, tested and initialised."""
    lib = import_module(f"corefw_c._{level}").lib
    _check_layout(lib)
    lib.set_types(id(np.ndarray), np.dtype(ml_dtypes.bfloat16).num)
    return lib


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
