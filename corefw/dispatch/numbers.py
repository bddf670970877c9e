"""Python numbers as elements of a dtype: what each dtype holds, and the refusal of what it does not."""

from __future__ import annotations

from math import isfinite

from corefw import dtypes
from corefw.dtypes import COMPLEX, FLOATING, INTEGER
from corefw.errors import CorefwError, DtypeError

Number = bool | int | float | complex
Real = int | float


class ConversionError(CorefwError, RuntimeError):
    """A number does not fit the element type it is to become."""


def fitting_number(value, d: dtypes.dtype):
    """`value` as a Python number of the category of `d`; RuntimeError if it cannot be held.

    Fractions are cut off, negative integers wrap in unsigned types, infinities stay; all else must be in range.

    >>> fitting_number(2.7, dtypes.int64), fitting_number(-1, dtypes.uint8)
    (2, 255)
    """
    kind = value.__class__
    if kind is float:
        if d.category == FLOATING and -LARGEST[d] <= value <= LARGEST[d]:
            return value
    elif kind is int and d.category == INTEGER and INTEGER_LIMITS[d][0] <= value <= INTEGER_LIMITS[d][1]:
        return value
    if d.category == COMPLEX:
        value = complex(value)
        if any(isfinite(part) and abs(part) > LARGEST[d.to_real()] for part in (value.real, value.imag)):
            raise _overflow(d)
        return value
    if d is dtypes.bool_:
        return bool(value)
    if kind is complex:
        if value.imag:
            raise _overflow(d)
        value = value.real
    if d.category == INTEGER:
        smallest, largest = INTEGER_LIMITS[d]
        if not d.is_signed and (kind is int or kind is bool):
            smallest = -largest
        if not smallest <= value <= largest:  # nor is NaN
            raise _overflow(d)
        value = int(value)
        return value & largest if value < 0 and not d.is_signed else value
    value = float(value)
    if isfinite(value) and abs(value) > LARGEST[d]:
        raise _overflow(d)
    return value


def checked_factor(name: str, label: str, factor, d: dtypes.dtype):
    """The factor called `label` of the op called `name`; refused unless the result's dtype holds numbers of its kind.

    >>> checked_factor("add", "alpha", 2, dtypes.int64)
    2
    """
    kind = factor.__class__
    if kind is bool and d.category != dtypes.BOOL:
        raise DtypeError(f"{name}: Boolean {label} only supported for Boolean results.")
    if kind is float and d.category < FLOATING:
        raise DtypeError(f"{name}: For integral input tensors, argument {label} must not be a floating point number.")
    if kind is complex and d.category < COMPLEX:
        raise DtypeError(f"{name}: For non-complex input tensors, argument {label} must not be a complex number.")
    return factor


#: the smallest and the largest number of each integer type
INTEGER_LIMITS = {d: (dtypes.iinfo(d).min, dtypes.iinfo(d).max) for d in dtypes.ALL if d.category == INTEGER}
#: the largest number of each floating type
LARGEST = {d: dtypes.finfo(d).max for d in dtypes.ALL if d.category == FLOATING}
_C_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "bool": "bool",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def _overflow(d: dtypes.dtype) -> ConversionError:
    name = _C_NAMES.get(d.name, f"{d.name}_t")
    return ConversionError(f"value cannot be converted to type {name} without overflow")
