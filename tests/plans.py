"""Plans for tests: a function of tensors, recorded, made better by passes, and run again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import corefw
from corefw.compiling.passes import PASSES, improved
from corefw.compiling.tape import Tape
from corefw.dispatch.plan import Plan
from corefw.dispatch.straight import straight


def recorded(function: Callable, *inputs: corefw.Tensor) -> Plan:
    """The plan of a function of tensors that returns one tensor or several."""
    tape = Tape()
    with tape:
        for i, tensor in enumerate(inputs):
            tape.given(tensor.array, f"input {i}")
        returned = function(*inputs)
        for tensor in returned if isinstance(returned, tuple) else (returned,):
            tape.returned(tensor.array)
    assert not tape.refusal, tape.refusal
    return tape.finished()


def better(function: Callable, *inputs: corefw.Tensor, passes=tuple(PASSES)) -> Plan:
    """The same after some passes."""
    return improved(recorded(function, *inputs), passes)


def run(plan: Plan, *inputs: corefw.Tensor) -> list[np.ndarray]:
    """The arrays that a run returns."""
    return straight(plan)([tensor.array for tensor in inputs], [(0, 0)] * plan.generators, [])


def names(plan: Plan) -> list[str]:
    """The names of a plan's ops, in order."""
    return [call.op.name for call in plan.calls]


def same_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    """Refuse arrays that differ in dtype, shape or any bit, but for those of NaN."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, (actual.dtype, actual.shape)
    wide = [a.astype(np.float64) if a.dtype.kind == "V" or a.dtype.itemsize == 2 else a for a in (actual, expected)]
    np.testing.assert_array_equal(*wide)
    if wide[0].dtype.kind == "f":
        number = wide[0] == wide[0]
        np.testing.assert_array_equal(np.signbit(wide[0][number]), np.signbit(wide[1][number]))
