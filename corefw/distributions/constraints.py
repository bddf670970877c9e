"""Constraints: which values a parameter may have, or a distribution can give."""

from __future__ import annotations

from corefw.dtypes import finfo


class Constraint:
    """A set of values; ``check`` says of each whether it belongs.

    Attributes:
        is_discrete: whether the values are isolated.
        event_dim: how many of the last dimensions together are one value.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """A bool tensor: for every value whether it satisfies the constraint."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class Dependent(Constraint):
    """A constraint that depends on the values of other parameters, and is not checked."""

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


class Real(Constraint):
    """Every number that is not NaN."""

    def check(self, value):
        return value == value


class Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0).logical_or(value == 1)


class IntegerInterval(Constraint):
    """Whole numbers from `lower_bound` to `upper_bound`, both included."""

    is_discrete = True

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (value % 1 == 0).logical_and(value >= self.lower_bound).logical_and(value <= self.upper_bound)


class Interval(Constraint):
    """Numbers from `lower_bound` to `upper_bound`, both included."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (value >= self.lower_bound).logical_and(value <= self.upper_bound)


class GreaterThan(Constraint):
    """Numbers above `lower_bound`."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return value > self.lower_bound


class GreaterThanEq(Constraint):
    """Numbers not below `lower_bound`."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return value >= self.lower_bound


class Simplex(Constraint):
    """Vectors of numbers that are not negative and sum to 1."""

    event_dim = 1

    def check(self, value):
        tolerance = max(1e-6, 4 * finfo(value.dtype).eps)
        return (value >= 0).all(-1).logical_and((value.sum(-1) - 1).abs() < tolerance)


class IndependentConstraint(Constraint):
    """A constraint of single values, for all those in the last dimensions together."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        kept = result.shape[: result.ndim - self.reinterpreted_batch_ndims]
        return result.reshape((*kept, -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


def is_dependent(constraint: Constraint) -> bool:
    """Whether the constraint cannot be checked alone."""
    return isinstance(constraint, Dependent)


dependent = Dependent()
boolean = Boolean()
real = Real()
real_vector = IndependentConstraint(real, 1)
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
simplex = Simplex()
independent = IndependentConstraint
integer_interval = IntegerInterval
interval = Interval
greater_than = GreaterThan
greater_than_eq = GreaterThanEq
