"""Python numbers as operands: shared 0-d tensors, each of the dtype that its number takes beside a tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
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


@lru_cache(maxsize=4096, typed=True)
def _constant(number, dispatch_key, sign) -> Constant:
    found, alike = _beside(number, dispatch_key)
    if found.dtype.category == dtypes.INTEGER and number.__class__ is int:
        fitting_number(number, dtypes.int64)
        if alike and not _holds(found.dtype, number):
            found = found.with_dtype(dtypes.int64)  # it keeps its value beside narrow integers
    return _shared(number, number, found)


@lru_cache(maxsize=4096, typed=True)
def _bound(number, dispatch_key, sign) -> Constant:
    found, _ = _beside(number, dispatch_key)
    value = number if _is_half(dispatch_key) else fitting_number(number, found.dtype)
    return _shared(value, value, found)


@lru_cache(maxsize=4096, typed=True)
def _element(number, dispatch_key, sign) -> Constant:
    value = fitting_number(number, dispatch_key.dtype)
    return _shared(value, value, dispatch_key)


def constant(number, dispatch_key) -> Constant:
    """A Python number as an operand beside a tensor of `dispatch_key`: of its dtype unless the number's category is
    higher.

    The tensor is shared between calls and never written to.
    """
    sign = copysign(1.0, number) if number.__class__ is float else 1.0  # 0.0 and -0.0 are equal keys
    return _constant(number, dispatch_key, sign)


def forget() -> None:
    """Drop all operands, so that each is asked of its runtime again."""
    for made in (_constant, _bound, _element, _assigned, _exponent):
        made.cache_clear()


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
    def operand(value, dispatch_key):
        """`value` as a tensor beside one of `dispatch_key`, if it is a number; else itself, for the caller to
        refuse."""
        kind = value.__class__
        if kind is float:
            return make(value, dispatch_key, copysign(1.0, value))  # 0.0 and -0.0 are equal keys
        if kind is int or kind is bool or kind is complex:
            return make(value, dispatch_key, 1.0)
        if isinstance(value, np.generic):
            return operand(value.item(), dispatch_key)
        plain: Any
        for plain in (int, float, complex):  # of which it may be a subclass, as members of an IntEnum are
            if isinstance(value, plain):
                return operand(plain(value), dispatch_key)
        return value

    return operand


@lru_cache(maxsize=4096, typed=True)
def _assigned(number, dispatch_key, sign) -> Constant:
    """As `_element`, but half types take every real number: beyond their range it is infinite."""
    if _is_half(dispatch_key) and number.__class__ is not complex:
        return _constant(number, dispatch_key, sign)
    return _element(number, dispatch_key, sign)


@lru_cache(maxsize=4096, typed=True)
def _exponent(number, dispatch_key, sign) -> Constant:
    if dispatch_key.dtype.category == dtypes.INTEGER and number.__class__ is int:
        if number < 0:
            raise ConversionError("Integers to negative integer powers are not allowed.")
        number = fitting_number(number, dispatch_key.dtype)
    return _constant(number, dispatch_key, sign)


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
