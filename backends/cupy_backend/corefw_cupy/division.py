"""Numbers that kernels divide by, as division.cuh takes them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

MOST = (1 << 31) - 1  # what is divided with 32 bits


def divisor_type(wide: bool) -> np.dtype:
    """The struct Divisor for numbers of 64 or of 32 bits."""
    if wide:
        return np.dtype([("value", "i8")])
    return np.dtype([("value", "i4"), ("multiplier", "u4"), ("shift", "u4")])


def divisors(numbers: Iterable[int], wide: bool) -> list[tuple[int, ...]]:
    """Positive numbers as such structs: n / d is (n + (n * multiplier >> 32)) >> shift for n up to MOST."""
    if wide:
        return [(d,) for d in numbers]
    found: list[tuple[int, ...]] = []
    for d in numbers:
        shift = (d - 1).bit_length()
        found.append((d, ((1 << shift) - d << 32) // d + 1, shift))
    return found
