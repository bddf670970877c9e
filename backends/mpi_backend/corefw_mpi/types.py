"""How MPI calls the elements of NumPy arrays, and how it reduces those that it does not know."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from mpi4py import MPI

#: dtypes that MPI has no numbers of: their elements travel as bytes and are reduced by NumPy in a wider type
FOREIGN = {np.dtype(np.float16): np.float32, np.dtype(ml_dtypes.bfloat16): np.float32}
NATIVE = {
    np.dtype(kind): getattr(MPI, name)
    for kind, name in {
        np.bool_: "C_BOOL",
        np.int8: "INT8_T",
        np.int16: "INT16_T",
        np.int32: "INT32_T",
        np.int64: "INT64_T",
        np.uint8: "UINT8_T",
        np.uint16: "UINT16_T",
        np.uint32: "UINT32_T",
        np.uint64: "UINT64_T",
        np.float32: "FLOAT",
        np.float64: "DOUBLE",
        np.complex64: "C_FLOAT_COMPLEX",
        np.complex128: "C_DOUBLE_COMPLEX",
    }.items()
}
OPERATIONS = {
    "sum": MPI.SUM,
    "product": MPI.PROD,
    "min": MPI.MIN,
    "max": MPI.MAX,
    "band": MPI.BAND,
    "bor": MPI.BOR,
    "bxor": MPI.BXOR,
}
#: of truth values, where a sum is whether there is a true one
LOGICAL = {"sum": MPI.LOR, "product": MPI.LAND, "min": MPI.LAND, "max": MPI.LOR, "band": MPI.LAND, "bor": MPI.LOR,
           "bxor": MPI.LXOR}  # fmt: skip
_REDUCTIONS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}


@cache
def datatype(dtype: np.dtype) -> Any:
    """What MPI calls an element."""
    found = NATIVE.get(dtype)
    return MPI.BYTE.Create_contiguous(dtype.itemsize).Commit() if found is None else found


@cache
def operation(dtype: np.dtype, name: str) -> Any:
    """MPI's reduction of elements.

    Raises:
        ValueError: they cannot be reduced so, as bits of floating numbers.
    """
    if dtype in FOREIGN and name in _REDUCTIONS:
        return _by_numpy(dtype, _REDUCTIONS[name])
    if dtype.kind == "b":
        return LOGICAL[name]
    if dtype.kind not in "iu" and (name.startswith("b") or (dtype.kind == "c" and name in ("min", "max"))):
        raise ValueError(f"the reduction {name!r} of elements of type {dtype}")
    if dtype not in NATIVE:
        raise ValueError(f"reductions of elements of type {dtype}")
    return OPERATIONS[name]


def _by_numpy(dtype: np.dtype, function: np.ufunc) -> Any:
    """A reduction that NumPy computes in a wider type, rounding once for each pair."""
    wide = FOREIGN[dtype]

    def reduce(given: Any, kept: Any, kind: Any) -> None:
        a, b = np.frombuffer(given, dtype), np.frombuffer(kept, dtype)
        b[:] = function(a.astype(wide), b.astype(wide)).astype(dtype)

    return MPI.Op.Create(reduce, commute=True)
