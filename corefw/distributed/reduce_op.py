"""How the elements of several ranks become one."""

from __future__ import annotations

from enum import Enum

from corefw.tensor import Tensor


class ReduceOp(Enum):
    """A reduction. AVG is the sum divided by the number of ranks.

    >>> from corefw.distributed import ReduceOp
    >>> ReduceOp.SUM
    <RedOpType.SUM: 0>
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    def __init__(self, value: int):
        self.word = self.name.lower()  # its name among engines

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


class PremulSum:
    """A sum of elements that are multiplied by a factor first."""

    def __init__(self, factor: float | Tensor):
        self.factor = factor


def _make_nccl_premul_sum(factor: float | Tensor) -> PremulSum:
    """The reduction that sums elements times `factor`."""
    return PremulSum(factor)
