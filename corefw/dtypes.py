"""Element types, their promotion lattice and their numeric limits."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from corefw.errors import DtypeError

MODULE = "torch"  # the name under which users import corefw; shown in reprs, so that output equals PyTorch's

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # categories, ordered as promotion orders them


class dtype:
    """An element type; one interned object per type, so that identity is equality.

    Attributes: ``name``, ``numpy`` (the NumPy dtype, None for the unstorable complex32), ``category``, ``itemsize`` in
    bytes, ``is_floating_point``, ``is_complex``, ``is_signed``.

    >>> from corefw.dtypes import dtype, float32
    >>> isinstance(float32, dtype), float32, float32.itemsize, float32.is_floating_point
    (True, torch.float32, 4, True)
    """

    __slots__ = ("category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy", "title")

    def __init__(self, name: str, title: str, numpy, category: int, itemsize: int, signed: bool = True):
        self.name = name
        self.title = title  # PyTorch's name of the scalar type in messages and legacy tensor types: Float, Long, ...
        self.numpy: Any = None if numpy is None else np.dtype(numpy)
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = signed

    def __repr__(self) -> str:
        return f"{MODULE}.{self.name}"

    def __reduce__(self):
        return of_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def to_real(self) -> dtype:
        """The dtype of the real part: complex64 -> float32; a real dtype is its own."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype with this dtype's precision: float32 -> complex64."""
        return _COMPLEX.get(self, self)


bool_ = dtype("bool", "Bool", np.bool_, BOOL, 1, signed=False)
uint8 = dtype("uint8", "Byte", np.uint8, INTEGER, 1, signed=False)
int8 = dtype("int8", "Char", np.int8, INTEGER, 1)
int16 = dtype("int16", "Short", np.int16, INTEGER, 2)
int32 = dtype("int32", "Int", np.int32, INTEGER, 4)
int64 = dtype("int64", "Long", np.int64, INTEGER, 8)
uint16 = dtype("uint16", "UInt16", np.uint16, INTEGER, 2, signed=False)
uint32 = dtype("uint32", "UInt32", np.uint32, INTEGER, 4, signed=False)
uint64 = dtype("uint64", "UInt64", np.uint64, INTEGER, 8, signed=False)
float16 = dtype("float16", "Half", np.float16, FLOATING, 2)
bfloat16 = dtype("bfloat16", "BFloat16", ml_dtypes.bfloat16, FLOATING, 2)
float32 = dtype("float32", "Float", np.float32, FLOATING, 4)
float64 = dtype("float64", "Double", np.float64, FLOATING, 8)
complex32 = dtype("complex32", "ComplexHalf", None, COMPLEX, 4)
complex64 = dtype("complex64", "ComplexFloat", np.complex64, COMPLEX, 8)
complex128 = dtype("complex128", "ComplexDouble", np.complex128, COMPLEX, 16)
_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {float16: complex32, float32: complex64, float64: complex128, bfloat16: complex64}
#: floating types of a byte, which have names and limits, and which no backend stores yet
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOATING, 1)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOATING, 1)
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", ml_dtypes.float8_e5m2, FLOATING, 1)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOATING, 1)
float8_e8m0fnu = dtype("float8_e8m0fnu", "Float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, FLOATING, 1, signed=False)
_BYTES = (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu)
#: the name that `ao.quantization.quantize_dynamic` takes; the numbers themselves are int8 beside their scales
qint8 = dtype("qint8", "QInt8", None, INTEGER, 1)

#: every dtype a tensor can hold, in PyTorch's order
ALL = (
    *(bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64),
    *(float16, bfloat16, float32, float64, complex64, complex128),
)
_BY_NAME = {d.name: d for d in (*ALL, *_BYTES, complex32, qint8)}
BY_NUMPY = {d.numpy: d for d in ALL}
_BY_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}


def of_name(name: str) -> dtype:
    """The dtype called `name` ("float32"); KeyError for an unknown one."""
    return _BY_NAME[name]


def of_numpy(numpy_dtype) -> dtype:
    """The dtype that holds what a NumPy dtype holds; TypeError as PyTorch's for those without one.

    >>> of_numpy("int32")
    torch.int32
    """
    found = BY_NUMPY.get(numpy_dtype)
    if found is None:
        numpy_dtype = np.dtype(numpy_dtype)
        found = BY_NUMPY.get(numpy_dtype)
    if found is None:
        held = ", ".join(d.name for d in ALL)
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: {held}."
            + (
                " Byte-swapped arrays: call .astype(a.dtype.newbyteorder('=')) first."
                if numpy_dtype.kind in "iufc"
                else ""
            )
        )
    return found


def as_dtype(value) -> dtype:
    """The dtype meant by a dtype, a Python type (float means float64, as for `Tensor.to`) or a NumPy dtype."""
    if value.__class__ is dtype:
        return value
    found = _BY_PYTHON.get(value) if isinstance(value, type) else None
    return found if found is not None else of_numpy(value)


class Default:
    """The process-wide default floating dtype, the type of Python floats that become tensors."""

    dtype = float32


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats.

    >>> get_default_dtype()
    torch.float32
    """
    return Default.dtype


def assign_default_dtype(d: dtype) -> None:
    """Set the default floating dtype; TypeError unless `d` is floating (`corefw.set_default_dtype` also drops what was
    resolved under the old one)."""
    if d.__class__ is not dtype or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    Default.dtype = d


def of_number(value) -> dtype:
    """The dtype of a Python number that becomes a tensor: bool, int64, the default float or its complex."""
    kind = value.__class__
    if kind is float:
        return Default.dtype
    if kind is bool:
        return bool_
    if kind is int:
        return int64
    if kind is complex:
        return Default.dtype.to_complex() if Default.dtype is not float16 else complex64
    raise TypeError(f"expected a Python number, got {kind.__name__}")


# -- promotion -------------------------------------------------------------------------------------------------------
_SIGNED = (int8, int16, int32, int64)
_FLOAT_ORDER = (float16, bfloat16, float32, float64)


def _join(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category > b.category:
        a, b = b, a
    if a in _BYTES or b in _BYTES:
        raise DtypeError(f"Promotion for Float8 Types is not supported, attempted to promote {a.title} and {b.title}")
    if b.category == COMPLEX:
        real = _join(a.to_real(), b.to_real()) if a.category >= FLOATING else b.to_real()
        return real.to_complex()
    if a.category < b.category:
        return b
    if b.category == FLOATING:
        if {a, b} == {float16, bfloat16}:
            return float32
        return max(a, b, key=_FLOAT_ORDER.index)
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned is uint64:
        raise DtypeError(
            f"Promotion of {a.title} and {b.title} is not supported: no integer type holds the values of both"
        )
    size = max(signed.itemsize, 2 * unsigned.itemsize)
    return next(d for d in _SIGNED if d.itemsize == size)


_PROMOTED: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The narrowest dtype that holds the values of both, by PyTorch's table; where that has no rule (uint16, uint32 and
    uint64 with other integers, bools and complex types), by the Python array API's.

    Raises RuntimeError for uint64 with a signed type, and for the types of 8 bits that float.

    >>> promote_types(int64, float16), promote_types(uint8, int8)
    (torch.float16, torch.int16)
    """
    key = (type1, type2)
    joined = _PROMOTED.get(key)
    if joined is None:
        joined = _PROMOTED[key] = _join(type1, type2)
    return joined


def combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Join two priority classes of operands (tensors with dimensions, 0-d tensors, numbers): the lower one counts
    only where its category exceeds the higher one's."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if lower.category <= higher.category:
        return higher
    if lower.category == COMPLEX and higher.category == FLOATING:
        return higher.to_complex() if higher is not float16 else lower
    return promote_types(higher, lower)


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch writes a result of dtype `from_` into a tensor of dtype `to`: never to a lower category.

    >>> can_cast(float32, int64), can_cast(int64, float32)
    (False, True)
    """
    return from_.category <= to.category and not (to is bool_ and from_ is not bool_)


def check_castable(result: dtype, target: dtype) -> None:
    """Refuse to write a result into a tensor of a lower category."""
    if not can_cast(result, target):
        raise DtypeError(f"result type {result.title} can't be cast to the desired output type {target.title}")


def _checked(name: str, type: Any) -> dtype:
    """`type`, which is an element type."""
    if type.__class__ is not dtype:
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
    return type


@cache
def _limits(d: dtype) -> tuple[int, float, float, float, float, float]:
    """The numbers of a floating dtype's `finfo`."""
    info = ml_dtypes.finfo(d.to_real().numpy)
    resolution = 1.0 if d in _BYTES else float(f"{float(info.resolution):.0e}")  # a power of ten
    return int(info.bits), float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), resolution


class finfo:
    """Limits of a floating dtype: ``bits, eps, max, min, tiny, smallest_normal, resolution``.

    >>> finfo(float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None):
        type = get_default_dtype() if type is None else _checked("finfo", type)
        if type.category < FLOATING:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type!r}'")
        self.dtype = type.to_real().name
        self.bits, self.eps, self.max, self.min, self.smallest_normal, self.resolution = _limits(type)
        self.tiny = self.smallest_normal

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: ``bits, max, min``.

    >>> iinfo(int8).max
    127
    """

    def __init__(self, type: dtype):
        if _checked("iinfo", type).category != INTEGER:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type!r}'")
        info = np.iinfo(type.numpy)
        self.bits, self.dtype = info.bits, type.name
        self.max, self.min = int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
