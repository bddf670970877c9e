"""The array API's functions on element types, and the promotion that the other functions share."""

from __future__ import annotations

from typing import Any

import corefw
from corefw import dtypes
from corefw.dtypes import dtype
from corefw.tensor import Tensor

#: the standard's kinds, with the element types of each by growing size
KINDS = {
    "bool": (dtypes.bool_,),
    "signed integer": (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    "unsigned integer": (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    "real floating": (dtypes.float32, dtypes.float64),
    "complex floating": (dtypes.complex64, dtypes.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

_HALVES = (dtypes.float16, dtypes.bfloat16)


def isdtype(dtype: dtype, kind: str | dtype | tuple) -> bool:
    """Whether an element type is of a kind.

    Args:
        dtype: the element type.
        kind: an element type, one of the standard's words ('bool', 'signed integer', 'unsigned integer', 'integral',
            'real floating', 'complex floating', 'numeric'), or a tuple of these, of which one must hold. The half
            types are real floating.

    Raises ValueError for another word.

    >>> import corefw as torch
    >>> xp = torch.ones(1).__array_namespace__()
    >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.float32, (xp.int8, "integral"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: there is no kind {kind!r}; there are {', '.join(KINDS)}")
        return dtype in KINDS[kind] or (dtype in _HALVES and kind in ("real floating", "numeric"))
    return dtype is kind


def is_complex(d: dtype) -> bool:
    return isdtype(d, "complex floating")


def is_floating(d: dtype) -> bool:
    """Whether an element type is floating, complex ones included."""
    return isdtype(d, ("real floating", "complex floating"))


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The element type that arrays, element types and Python numbers promote to; the number of dimensions is without
    effect, and a Python number raises the kind only.

    Raises ValueError without an array or element type.

    >>> import corefw as torch
    >>> xp = torch.ones(1).__array_namespace__()
    >>> xp.result_type(torch.ones(3), torch.tensor(1.0, dtype=xp.float64), 2)
    torch.float64
    """
    found = [x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes]
    strong = [x for x in found if isinstance(x, dtype)]
    if not strong:
        raise ValueError("result_type: at least one array or dtype is required")
    result = strong[0]
    for other in strong[1:]:
        result = dtypes.promote_types(result, other)
    for number in found:
        if isinstance(number, dtype):
            continue
        if isinstance(number, complex) and not is_complex(result):
            result = dtypes.promote_types(
                result if is_floating(result) else dtypes.get_default_dtype(), dtypes.complex64
            )
        elif isinstance(number, float) and not is_floating(result):
            result = dtypes.get_default_dtype()
        elif isinstance(number, int) and not isinstance(number, bool) and result is dtypes.bool_:
            result = dtypes.int64
        elif not isinstance(number, (bool, int, float, complex)):
            raise TypeError(f"result_type: an array, dtype or number is wanted, not {type(number).__name__}")
    return result


def promoted(*operands: Any) -> list[Tensor]:
    """Arrays and Python numbers as tensors of the type that they promote to, on the arrays' device."""
    arrays = [x for x in operands if isinstance(x, Tensor)]
    if not arrays:
        raise TypeError("at least one operand must be an array")
    common = result_type(*operands)
    device = arrays[0].device
    return [x.to(common) if isinstance(x, Tensor) else corefw.tensor(x, dtype=common, device=device) for x in operands]


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` with another element type; a copy even if it has that type, unless `copy` is False.

    Raises TypeError for a real type wanted of a complex array.

    >>> import corefw as torch
    >>> xp = torch.ones(1).__array_namespace__()
    >>> xp.astype(torch.tensor([1.5, -1.5]), xp.int64)
    tensor([ 1, -1])
    """
    if is_complex(x.dtype) and not is_complex(dtype):
        raise TypeError(f"astype: {x.dtype} to {dtype} would lose the imaginary part; take real(x) or imag(x) first")
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether promotion leads from one element type, or that of an array, to another: no value is lost.

    >>> import corefw as torch
    >>> xp = torch.ones(1).__array_namespace__()
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    try:
        return dtypes.promote_types(from_.dtype if isinstance(from_, Tensor) else from_, to) is to
    except TypeError:
        return False


def _real_part(d: dtype) -> dtype:
    return {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(d, d)


class _Finfo:
    """The limits of a floating type; plain numbers but for ``dtype``."""

    def __init__(self, d: dtype):
        limits = dtypes.finfo(d)
        self.bits, self.eps, self.max, self.min = limits.bits, limits.eps, limits.max, limits.min
        self.smallest_normal, self.dtype = limits.smallest_normal, d


class _Iinfo:
    """The limits of an integer type; plain numbers but for ``dtype``."""

    def __init__(self, d: dtype):
        limits = dtypes.iinfo(d)
        self.bits, self.max, self.min, self.dtype = limits.bits, limits.max, limits.min, d


def finfo(type: dtype | Tensor, /) -> _Finfo:
    """The limits of a floating type, or of an array's: bits, eps, max, min, smallest_normal and dtype; of a complex
    one, those of its parts.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().finfo(torch.complex64).bits
    32
    """
    return _Finfo(_real_part(type.dtype if isinstance(type, Tensor) else type))


def iinfo(type: dtype | Tensor, /) -> _Iinfo:
    """The limits of an integer type, or of an array's: bits, max, min and dtype.

    >>> import corefw as torch
    >>> torch.ones(1).__array_namespace__().iinfo(torch.int8).max
    127
    """
    return _Iinfo(type.dtype if isinstance(type, Tensor) else type)
