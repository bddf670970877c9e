"""Differences of two results of one op: the worst element, what rounding may explain, and the report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corefw import dtypes
from corefw.dispatch.expressions import ULPS
from corefw.dtypes import dtype

#: what results may differ by, in relation to the largest of them
TOLERANCES: dict[dtype, float] = {
    dtypes.float16: 1e-3,
    dtypes.bfloat16: 1.6e-2,
    dtypes.float32: 1.3e-6,
    dtypes.float64: 1e-9,
    dtypes.complex64: 1.3e-6,
    dtypes.complex128: 1e-9,
}


@dataclass(frozen=True)
class Worst:
    """The worst element of a result that differs: its index, what it is, what it should be, and how far that is off:
    in units in the last place of floating numbers, in ones of integers."""

    index: tuple[int, ...]
    actual: object
    expected: object
    ulps: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # where not even these agree
    elements: int = 0  # how many differ


def in_double(array: np.ndarray) -> np.ndarray:
    """Floating and complex numbers in double precision, others as they are."""
    category = dtypes.of_numpy(array.dtype).category
    if category == dtypes.COMPLEX:
        return array.astype(np.complex128)
    return array.astype(np.float64) if category == dtypes.FLOATING else array


def largest(array: np.ndarray) -> float:
    """The largest finite magnitude; 0 if there is none."""
    magnitudes = np.abs(in_double(array))
    return float(np.max(magnitudes, initial=0.0, where=np.isfinite(magnitudes)))


def ulp(values: np.ndarray, d: dtype) -> np.ndarray:
    """The distance of neighbours of `d` at these values.

    >>> ulp(np.array([1.0, 3.0]), dtypes.float32).tolist()
    [1.1920928955078125e-07, 2.384185791015625e-07]
    """
    limits = dtypes.finfo(d)
    magnitudes = np.nan_to_num(np.abs(values), nan=0.0, posinf=limits.max)
    exponents = np.frexp(np.maximum(magnitudes, limits.tiny))[1] - 1
    return np.ldexp(float(limits.eps), exponents)


def allowed(op: str, expected: np.ndarray, d: dtype, scale: float = 0.0, declared: float | None = None) -> np.ndarray:
    """What each element may differ by: as many units in the last place as the kernel has declared, or the op, or the
    tolerance of the dtype, in relation to the largest element or to `scale`."""
    if declared is not None:
        return (declared + 1) * ulp(in_double(expected), d)
    if op in ULPS and d in (dtypes.float32, dtypes.float64):
        return (ULPS[op][d is dtypes.float64] + 1) * ulp(in_double(expected), d)
    return np.asarray(TOLERANCES[d] * max(largest(expected), scale))


def worst(actual: np.ndarray, expected: np.ndarray, limit: np.ndarray | float = 0.0) -> Worst | None:
    """The element that is farthest from what it should be, if one is farther than `limit`.

    >>> worst(np.array([1.0, 2.5]), np.array([1.0, 2.0]), 0.25).index
    (1,)
    """
    if actual.shape != expected.shape:
        return Worst((), None, None, np.inf, (actual.shape, expected.shape))
    d = dtypes.of_numpy(actual.dtype)
    a, e = in_double(actual), in_double(expected)
    if d.category < dtypes.FLOATING:
        wrong = a != e
        distance = np.abs(a.astype(np.float64) - e.astype(np.float64))
        units = distance
    else:
        with np.errstate(all="ignore"):
            distance = np.abs(a - e)
            same = (a == e) | (np.isnan(a) & np.isnan(e))
            wrong = ~(same | (np.isfinite(e) & (distance <= limit)))
            units = np.where(same, 0.0, np.nan_to_num(distance, nan=np.inf, posinf=np.inf) / ulp(e, d))
    if not wrong.any():
        return None
    position = np.unravel_index(np.argmax(np.where(wrong, units, -1.0)), a.shape)
    index = tuple(map(int, position))
    return Worst(index, actual[position], expected[position], float(units[position]), elements=int(wrong.sum()))


@dataclass(frozen=True)
class Difference:
    """An op that computed something else than the reference.

    Attributes: ``op``; ``backend`` that computed it; ``reference`` that does not agree; ``call`` the op with the dtypes
    and shapes of its tensors, and its attributes; ``where`` its device; ``output`` which result, or which argument that
    it changes; ``worst`` the worst element, or what happened instead; ``line`` of the program; ``forward`` the line
    whose gradient this is, None if it is none.
    """

    op: str
    backend: str
    reference: str
    call: str
    where: str
    output: str
    worst: Worst | str
    line: str
    forward: str | None

    def __str__(self) -> str:
        found = self.worst
        if isinstance(found, str):
            what = found
        elif found.shapes is not None:
            what = f"shape {list(found.shapes[0])} where {self.reference} gives {list(found.shapes[1])}"
        else:
            what = (
                f"{found.actual} at {list(found.index)} where {self.reference} gives {found.expected}: off by "
                f"{found.ulps:.4g} ulp; {found.elements} elements differ"
            )
        gradient = f" in the gradient of {self.forward}" if self.forward else ""
        return f"{self.op}: '{self.output}' by {self.backend} is {what}. Called as {self.call} on {self.where}, at " + (
            f"{self.line}{gradient}"
        )
