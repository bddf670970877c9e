"""How close the elements of two results are, in units in the last place."""

from __future__ import annotations

import numpy as np

from corefw import dtypes
from tests.fuzzing.runs import Picture

#: the distance from 1 to the next number, of every dtype whose numbers are rounded
EPS = {
    name: float(dtypes.finfo(dtypes.of_name(name)).eps)
    for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
}
#: units in the last place that need no reason: two functions, each right to some units, and rounding on the way
ULPS = 8


def identical(a, b) -> bool:
    if type(a) is not Picture or type(b) is not Picture:
        return True
    return a.array.shape == b.array.shape and a.dtype == b.dtype and a.array.tobytes() == b.array.tobytes()


def errors_of(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of the elements in units in the last place (of the larger one); infinite where NaN meets none."""
    with np.errstate(all="ignore"):
        if dtype not in EPS:
            return np.where(a == b, 0.0, np.inf)
        wide = np.complex128 if dtype in ("complex64", "complex128") else np.float64
        x, y = a.astype(wide), b.astype(wide)
        smallest = float(dtypes.finfo(dtypes.of_name(dtype)).tiny)
        unit = np.maximum(np.maximum(np.abs(x), np.abs(y)), smallest) * EPS[dtype]
        errors = np.where(x == y, 0.0, np.abs(x - y) / unit)
        odd = ~np.isfinite(x) | ~np.isfinite(y)
        if wide is np.complex128:  # which parts of a complex infinity are NaN is nobody's promise
            return np.where(odd, np.where(np.isfinite(x) == np.isfinite(y), 0.0, np.inf), errors)
        alike = (x == y) | (np.isnan(x) & np.isnan(y))
        return np.where(odd, np.where(alike, 0.0, np.inf), errors)


def near(a: np.ndarray, b: np.ndarray, dtype: str, ulps: float = ULPS) -> bool:
    if a.tobytes() == b.tobytes() or not a.size:
        return True
    return bool((errors_of(a, b, dtype) <= ulps).all())


def near_beside_the_largest(a: np.ndarray, b: np.ndarray, dtype: str) -> bool:
    """Whether no two elements differ by more than some roundings of the largest one, or of 1."""
    with np.errstate(all="ignore"):
        largest = max(float(np.abs(a).max(initial=0)), float(np.abs(b).max(initial=0)), 1.0)
        return bool((np.abs(a - b) <= 8 * ULPS * EPS.get(dtype, 0.0) * largest).all())


def worst(a: np.ndarray, b: np.ndarray, dtype: str) -> str:
    """The element that differs most."""
    errors = errors_of(a, b, dtype)
    at = np.unravel_index(int(np.argmax(errors)), errors.shape)
    place = f" at {tuple(map(int, at))}" if errors.size > 1 else ""
    size = f" ({errors[at]:.3g} units)" if np.isfinite(errors[at]) else ""
    return f"{a[at]} and {b[at]}{place}{size}; {int((errors > ULPS).sum())} of {errors.size} elements differ"
