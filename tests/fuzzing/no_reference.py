"""Where PyTorch's numbers are no reference: what infinities, NaN and narrow integers do to them, and its own faults."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tests.fuzzing.documented import short
from tests.fuzzing.programs import Leaf, Ref, Step, references, words
from tests.fuzzing.runs import Picture, Run

#: functions whose results are left open where one side's is infinite or NaN: (functions, why)
_OPEN_SPECIAL = (
    ("var_mean std_mean", "a mean by Welford's recurrence"),
    ("det linalg_det logdet slogdet linalg_slogdet", "a pivot of 0 is met before, or after, an infinity"),
    ("cross linalg_cross", "a product beyond the largest number, rounded or not before it is subtracted"),
    ("trapezoid trapz", "a sum less the half of its ends, or of panels"),
    ("cdist", "distances of many rows by matrix products, the largest of several without regard to NaN"),
    ("mode", "NaN where PyTorch's sort, which does not order it, leaves it"),
    ("fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2", "the order of terms in a sum"),
    ("fftn ifftn rfftn irfftn hfftn ihfftn", "the same"),
)
_SPECIAL = frozenset(name for names, _ in _OPEN_SPECIAL for name in words(names))
#: functions with steps, whose gradient at NaN is one from PyTorch's vector loops and another from what these leave over
_STEPS = frozenset(words("softshrink hardshrink elu selu celu relu6"))
#: functions that PyTorch computes in the dtype of an integer operand: what overflows wraps around, and the numbers
#: beside it lose their fractions
_WRAPPED = frozenset(words("trapezoid trapz cumulative_trapezoid threshold"))
#: functions whose gradient it computes so
_WRAPPED_GRADIENTS = frozenset(words("atan2 arctan2 pow soft_margin_loss"))


def special(entry: Step, sides: tuple[str, str]) -> bool:
    """Whether results of infinities and NaN are left open."""
    return sides[1] == "torch" and short(entry.function) in _SPECIAL


def steps_at_nan(function: str, sides: tuple[str, str]) -> bool:
    """Whether the gradient ("gradient of f") at NaN is left open."""
    return sides[1] == "torch" and short(function.rpartition(" ")[2]) in _STEPS


def form(entry: Leaf | Step, sides: tuple[str, str]) -> bool:
    """Whether PyTorch's dtype or shape is another: it takes both bounds for numbers if one is, and gives out= of
    another shape back to these functions' last step alone."""
    if sides[1] != "torch" or isinstance(entry, Leaf):
        return False
    if short(entry.function) in ("clamp", "clip"):
        bounds = [*entry.arguments[1:], *(v for k, v in entry.keywords.items() if k in ("min", "max"))]
        return len(bounds) == 2 and sum(isinstance(bound, Ref) for bound in bounds) == 1
    return "out" in entry.keywords and short(entry.function) in ("ihfftn", "ihfft2")


def values(steps: Iterable[Leaf | Step], run: Run, sides: tuple[str, str]) -> bool:
    """Whether the results of the last step, or the gradients through all of them, are wrong on PyTorch's side."""
    return sides[1] == "torch" and any(_wrong(step, run) for step in steps if isinstance(step, Step))


def _wrong(step: Step, run: Run) -> bool:
    name = short(step.function)
    if name in _WRAPPED:
        return any(array.dtype.kind in "iu" for array in _operands(step, run))
    if name in ("median", "nanmedian"):  # elements that share memory are sorted in place
        return any(0 in run.values[number].stride() for number in references(step))
    if name in ("any", "all") and "out" in step.keywords:  # elements are converted to bytes before they are asked
        return any(array.dtype == np.uint8 for array in _operands(step, run))
    return False


def _operands(step: Step, run: Run) -> list[np.ndarray]:
    pictures = (run.pictures[number] for number in references(step))
    return [picture.array for picture in pictures if type(picture) is Picture]


def gradient(steps: Iterable[Leaf | Step], run: Run, sides: tuple[str, str]) -> bool:
    """Whether a gradient through these steps is wrong on PyTorch's side."""
    return values(steps, run, sides) or (
        sides[1] == "torch" and any(_wrong_gradient(step, run) for step in steps if isinstance(step, Step))
    )


def _wrong_gradient(step: Step, run: Run) -> bool:
    name = short(step.function)
    if name in _WRAPPED_GRADIENTS:
        return any(array.dtype.kind in "iu" for array in _operands(step, run))
    if name == "interpolate":  # the backward of "nearest" forgets the factor where the size was rounded
        return step.keywords.get("scale_factor") is not None or len(step.arguments) > 2
    if name == "group_norm":  # the mean of no elements, times 0
        return any(not array.size for array in _operands(step, run))
    return False


def unsettled(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The elements of which one side's is infinite or NaN."""
    return ~(np.isfinite(a) & np.isfinite(b))
