"""The NumPy backend of corefw: the readable reference for every op on `cpu`.

One file per family of ops, named as in `corefw.declarations`. In each, ``kernels(xp)`` gives {op: function} for the
dtypes NumPy computes with, ``data_movement(xp)`` for ops that only move, create or compare elements and so take every
dtype; where a family has them, ``bool_kernels(xp)`` for bool and ``real_kernels(xp)`` for all but complex dtypes.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pluggy

from corefw import __version__, dtypes
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.families import families
from corefw.dispatch.flags import is_unheard
from corefw.dispatch.runtime import poisons
from corefw_numpy.lacking import Lenient, lacking
from corefw_numpy.poison import PoisonedNumPy
from corefw_numpy.runtime import NumpyRuntime

_HALF = {dtypes.float16, dtypes.bfloat16}
_ALL = frozenset(dtypes.ALL)
_COMPUTED = _ALL - _HALF
_COMPLEX = frozenset(d for d in dtypes.ALL if d.is_complex)
_TRUTH = frozenset({dtypes.bool_})


def table(xp, missing: dict[str, list[str]] | None = None) -> list[Kernel]:
    """All kernels over the array namespace `xp` (NumPy or one with its functions).

    With `missing`, the namespace may lack functions: kernels that need these are left out, and noted there as
    {op: the names that it needs}.

    >>> import types
    >>> some = {name: getattr(np, name) for name in dir(np) if name not in ("gcd", "sign")}
    >>> missing = {}
    >>> len(table(np)) - len(table(types.SimpleNamespace(**some), missing))
    2
    >>> missing
    {'gcd': ['gcd'], 'sgn': ['sign']}
    """
    xp = xp if missing is None else Lenient(xp)
    offered: list[Kernel] = []
    for family in families(__name__):
        real_kernels = family.real_kernels(xp) if hasattr(family, "real_kernels") else {}
        bool_kernels = family.bool_kernels(xp) if hasattr(family, "bool_kernels") else {}
        for functions, taken in (
            (family.kernels(xp), _COMPUTED),
            (real_kernels, _COMPUTED - _COMPLEX),
            (family.data_movement(xp), _ALL),
            (bool_kernels, _TRUTH),
        ):
            for op, function in functions.items():
                if missing is not None and (names := lacking(function, xp)):
                    missing[op] = names
                    continue
                out = isinstance(function, xp.ufunc) or getattr(function, "takes_out", False)
                others = op in bool_kernels and functions is not bool_kernels
                offered.append(Kernel(op, function, taken - _TRUTH if others else taken, out))
    return offered


def _unflagged(kernel: Kernel) -> Kernel:
    """A kernel of whose floating-point flags NumPy says nothing. A ufunc is called by a frame that drops its warnings
    (`corefw.dispatch.flags`), as are those of short kernels, which call none but ufuncs; functions that only move
    elements raise none."""
    function = kernel.function
    if isinstance(function, np.ufunc) or is_unheard(function) or kernel.dtypes == frozenset(dtypes.ALL):
        return kernel
    return replace(kernel, function=np.errstate(all="ignore")(function))


@pluggy.HookimplMarker("corefw")
def corefw_backend() -> Backend:
    """The plugin hook."""
    xp = PoisonedNumPy() if poisons(os.environ) else np
    return Backend(
        name="numpy",
        version=__version__,
        devices=("cpu",),
        kernels={"cpu": list(map(_unflagged, table(xp)))},
        runtimes={"cpu": NumpyRuntime(xp)},
        compute_dtype=dict.fromkeys(_HALF, dtypes.float32),
    )
