"""The property of integers at the ends of their range: sums and products wrap around, nothing is rounded or lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.dtypes import dtype
from corefw.shapes import broadcast
from corefw.testing.case import Case
from corefw.testing.checks import about, call, case_dtypes, property_of
from corefw.testing.expectations import compare_results, expected_results
from corefw.testing.samples import Sample, generator, samples
from corefw.testing.targets import Target

#: of each sample of a row: as many as give so many elements, at most `_MOST`
_DRAWN, _MOST = 24, 4


def _integers(case: Case, op: Op) -> list[dtype]:
    """The integer dtypes that the op computes in integers."""
    if op.rule is None or (case.make is not None and op.shape is not broadcast):
        return []  # inputs with a property (sorted, distinct) would lose it
    known = (d for d in case_dtypes(case, op) if d.category == dtypes.INTEGER)
    return [d for d in known if op.rule.compute(d).category == dtypes.INTEGER]


def _extreme_samples(case: Case, d: dtype) -> Iterator[Sample]:
    """The calls of a row with the ends of a dtype's range among the elements; those of a row that makes its arguments
    have them in the first, since the others may be divisors or exponents."""
    rng, info, whole = generator(case), dtypes.iinfo(d), case.make is None
    ends = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, -1 if info.min else 1], d.numpy)

    def filled(position: int, array: np.ndarray) -> np.ndarray:
        if array.dtype != d.numpy or (position and not whole):
            return array
        return np.where(rng.random(array.shape) < 0.8, rng.choice(ends, array.shape), array).astype(array.dtype)

    for sample in samples(case, d):
        if (largest := sample.largest()) and (whole or isinstance(sample.arguments[0], np.ndarray)):
            yield from (sample.map_numbered(filled) for _ in range(min(_MOST, -(-_DRAWN // largest))))


@property_of(lambda case, op: bool(_integers(case, op)), dtypes=_integers)
def integer_extremes(case: Case, op: Op, target: Target) -> None:
    """The least and the greatest integers give what the reference says."""
    for d in _integers(case, op):
        for sample in _extreme_samples(case, d):
            with about(d.name, sample, *(array.tolist() for array in sample.arrays())):
                compare_results(case, call(op.function, sample, target), expected_results(case, op, sample, d), d)
