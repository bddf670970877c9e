"""Python numbers as operands: shared 0-d tensors, each of the dtype that its number takes beside a tensor."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.dispatch.numbers import ConversionError, fitting_number
from corefw.dispatch.registry import registry
from corefw.dispatch.rules import DtypeRule, computed
from corefw.dtypes import dtype
from corefw.tensor import Constant, new


def _holds(integer: dtype, number: int) -> bool:
    bits = 8 * integer.itemsize - integer.is_signed
    return -(integer.is_signed << bits) <= number < 1 << bits


def _is_half(dispatch_key) -> bool:
    return computed(dispatch_key.dtype) is not dispatch_key.dtype


def _shared(number, value, dispatch_key) -> Constant:
    """The operand that stands for `number`, with `value` as its element."""
    tensor = new(Constant)
    tensor.array = dispatch_key.runtime.constant(value, dispatch_key.dtype, dispatch_key.device.index)
    tensor.dispatch_key = dispatch_key
    tensor.node = tensor.view_info = None
    tensor.version = [0]
    tensor.number = number
    return tensor


def _beside(number, dispatch_key):
    """The dispatch key of a number as an operand, and whether it is of the tensor's category."""
    kind = dtypes.of_number(number)
    if kind.category > dispatch_key.dtype.category:
        return dispatch_key.with_dtype(dtypes.combine(dispatch_key.dtype, kind)), False
    if _is_half(dispatch_key):
        return dispatch_key.with_dtype(dtypes.float32), False  # a number keeps its precision beside half types
    return dispatch_key, kind.category == dispatch_key.dtype.category


def _constant(number, dispatch_key) -> Constant:
    found, alike = _beside(number, dispatch_key)
    if found.dtype.category == dtypes.INTEGER and number.__class__ is int:
        fitting_number(number, dtypes.int64)
        if alike and not _holds(found.dtype, number):
            found = found.with_dtype(dtypes.int64)  # it keeps its value beside narrow integers
    return _shared(number, number, found)


def _bound(number, dispatch_key) -> Constant:
    found, _ = _beside(number, dispatch_key)
    value = number if _is_half(dispatch_key) else fitting_number(number, found.dtype)
    return _shared(value, value, found)


def _element(number, dispatch_key) -> Constant:
    value = fitting_number(number, dispatch_key.dtype)
    return _shared(value, value, dispatch_key)


class _OfKey(dict):
    """{number: its operand beside tensors of a dispatch key}, made when first asked for. Programs with very many
    numbers begin anew from time to time. Zeros of type float are (1.0,) and (-1.0,), since 0.0 and -0.0 are equal."""

    __slots__ = ("dispatch_key", "make")

    def __init__(self, make: Callable[..., Constant], dispatch_key):
        self.make, self.dispatch_key = make, dispatch_key

    def __missing__(self, number) -> Constant:
        if len(self) == 4096:
            self.clear()
        value = copysign(0.0, *number) if number.__class__ is tuple else number
        return self.setdefault(number, self.make(value, self.dispatch_key))


class _OfType(dict):
    """{dispatch key: {number: its operand}} of numbers of a type."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[..., Constant]):
        self.make = make

    def __missing__(self, dispatch_key) -> _OfKey:
        return self.setdefault(dispatch_key, _OfKey(self.make, dispatch_key))


_made: list[_OfType] = []


def forget() -> None:
    """Drop all operands, so that each is asked of its runtime again."""
    for operands in _made:
        operands.clear()


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors made from Python floats; TypeError unless `d` is a floating type.

    >>> import corefw as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(1.5).dtype
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    dtypes.assign_default_dtype(d)
    forget()
    registry.forget()


def _operands(make: Callable[..., Constant]) -> Callable:
    made = {kind: _OfType(make) for kind in (int, float, bool, complex)}  # 1, 1.0 and True are equal keys
    _made.extend(made.values())

    def operand(value, dispatch_key):
        """`value` as a tensor beside one of `dispatch_key`, if it is a number; else itself, for the caller to refuse.
        The tensor is shared between calls and never written to."""
        kind = value.__class__
        if kind in made:
            return made[kind][dispatch_key][value if value or kind is not float else (copysign(1.0, value),)]
        if isinstance(value, np.generic):
            return operand(value.item(), dispatch_key)
        plain: Any
        for plain in (int, float, complex):  # of which it may be a subclass, as members of an IntEnum are
            if isinstance(value, plain):
                return operand(plain(value), dispatch_key)
        return value

    operand.made = made  # type: ignore[attr-defined]  # for those who know the type
    return operand


def _assigned(number, dispatch_key) -> Constant:
    """As `_element`, but half types take every real number: beyond their range it is infinite."""
    if _is_half(dispatch_key) and number.__class__ is not complex:
        return _constant(number, dispatch_key)
    return _element(number, dispatch_key)


def _exponent(number, dispatch_key) -> Constant:
    if dispatch_key.dtype.category == dtypes.INTEGER and number.__class__ is int:
        if number < 0:
            raise ConversionError("Integers to negative integer powers are not allowed.")
        number = fitting_number(number, dispatch_key.dtype)
    return _constant(number, dispatch_key)


#: numbers in arithmetic; exponents; numbers that the common dtype must hold; numbers that become elements of a tensor
operand = _operands(_constant)
_exponent_operand = _operands(_exponent)
_bound_operand = _operands(_bound)
element_operand = _operands(_element)
assigned_operand = _operands(_assigned)


def operand_of(rule: DtypeRule | None) -> Callable:
    """The function that turns numbers into operands of an op with this dtype rule."""
    if rule is not None and rule.exponents:
        return _exponent_operand
    if rule is None or not rule.bounds:
        return operand
    return element_operand if rule.follows else _bound_operand
