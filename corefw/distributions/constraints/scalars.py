"""Constraints of single numbers."""

from __future__ import annotations

from corefw.distributions.constraints.constraint import Constraint
from corefw.tensor import Tensor


class Real(Constraint):
    """Every number that is not NaN."""

    def check(self, value):
        return value == value


class Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers with a lower and an upper bound."""

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _BoundedBelow(Constraint):
    """Numbers with a lower bound."""

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound


class IntegerInterval(_Bounded):
    """Whole numbers from `lower_bound` to `upper_bound`, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class IntegerGreaterThan(_BoundedBelow):
    """Whole numbers from `lower_bound` on."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class Interval(_Bounded):
    """Numbers from `lower_bound` to `upper_bound`, both included."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class HalfOpenInterval(_Bounded):
    """Numbers from `lower_bound` up to, but not `upper_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class GreaterThan(_BoundedBelow):
    """Numbers above `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class GreaterThanEq(_BoundedBelow):
    """Numbers not below `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class LessThan(Constraint):
    """Numbers below `upper_bound`."""

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound
