"""The property of gradients where a target has no double precision to differentiate in."""

from __future__ import annotations

from corefw import dtypes
from corefw.dispatch.op import Op
from corefw.dtypes import dtype
from corefw.testing.case import Case
from corefw.testing.checks import about, case_dtypes, property_of
from corefw.testing.halves import narrow_and_exact, places
from corefw.testing.samples import samples
from corefw.testing.targets import Target

_DOUBLES = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}
#: how far a gradient may be from the true one, in units of the last place of its greatest element; of 4,038 samples of
#: all rows, right kernels came to 6.1, and to 103 where a norm is taken of two numbers, all of whose terms cancel
PLACES = 16.0
_TIMES = 4  # how much farther than the CPU's reference in single precision, where that is far itself


def _single_dtypes(case: Case, op: Op) -> list[dtype]:
    """The dtypes of single precision of a row whose gradient is known, where there is none of double precision."""
    known = case_dtypes(case, op) if case.gradient else []
    return [d for d, double in _DOUBLES.items() if d in known and double not in known]


@property_of(lambda case, op: bool(_single_dtypes(case, op)), section="gradients", dtypes=_single_dtypes)
def single_gradient(case: Case, op: Op, target: Target) -> None:
    """The gradient in single precision is that in double precision, but for roundings."""
    for d in _single_dtypes(case, op):
        for sample in samples(case, d):
            with about(d.name, sample):
                error = places(d, *narrow_and_exact(case, op, sample, d, target.device))
                with Target("", "cpu").owner().preferred():
                    usual = places(d, *narrow_and_exact(case, op, sample, d, "cpu"))
                allowed = PLACES * max(1.0, case.rtol / 1e-7) + _TIMES * usual
                assert error <= allowed, (
                    f"the gradient is {error:.3g} units of the last place from that in double precision, "
                    f"{allowed:.3g} are allowed"
                )
