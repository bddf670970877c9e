"""PyTorch's functions for sizes that a tracer may not know: here sizes are numbers, and these compute with numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]

_T = TypeVar("_T")


def sym_int(a: float) -> int:
    """The integer part of a number.

    >>> import corefw as torch
    >>> torch.sym_int(-2.5)
    -2
    """
    return int(a)


def sym_float(a: float) -> float:
    """A number as a float."""
    return float(a)


def sym_not(a: bool) -> bool:
    """Whether a truth value is false."""
    return not a


def sym_ite(b: bool, t: _T, f: _T) -> _T:
    """`t` if `b` is true, else `f`."""
    return t if b else f


def sym_max(a: float, b: float) -> float:
    """The larger number, a float if one of them is.

    >>> import corefw as torch
    >>> torch.sym_max(3, 2.0)
    3.0
    """
    return _alike(max(a, b), a, b)


def sym_min(a: float, b: float) -> float:
    """The smaller number, a float if one of them is."""
    return _alike(min(a, b), a, b)


def sym_sum(args: Sequence[float]) -> float:
    """The sum of some numbers."""
    return sum(args)


def sym_sqrt(a: float) -> float:
    """The square root of a number."""
    return math.sqrt(a)


def _alike(chosen: float, a: float, b: float) -> float:
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen
