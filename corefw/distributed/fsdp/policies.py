"""The dtypes in which sharded models compute and average, and where their parts lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corefw.dtypes import dtype


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a unit; the parts themselves, and the optimizer's states, keep theirs.

    Args:
        param_dtype: of gathered parameters, and so of computing; the parts' if missing.
        reduce_dtype: in which gradients are averaged; that of computing if missing.
        output_dtype: that floating-point results are brought to.
        cast_forward_inputs: whether floating-point inputs are brought to `param_dtype`.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """The parts lie where the parameters lay."""


class CPUOffloadPolicy(OffloadPolicy):
    """The parts lie on the CPU between uses; refused.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, pin_memory: Any = True):
        raise NotImplementedError("CPUOffloadPolicy: parts lie on the device of the parameters; leave the policy out")
