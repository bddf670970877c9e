"""Constraints: which values a parameter may have, or a distribution can give."""

from corefw.distributions.constraints.arrays import (
    CorrCholesky,
    LowerCholesky,
    LowerTriangular,
    Multinomial,
    OneHot,
    PositiveDefinite,
    PositiveSemidefinite,
    Simplex,
    Square,
    Symmetric,
)
from corefw.distributions.constraints.combined import Cat, IndependentConstraint, MixtureSameFamilyConstraint, Stack
from corefw.distributions.constraints.constraint import Constraint, Dependent, DependentProperty, is_dependent
from corefw.distributions.constraints.scalars import (
    Boolean,
    GreaterThan,
    GreaterThanEq,
    HalfOpenInterval,
    IntegerGreaterThan,
    IntegerInterval,
    Interval,
    LessThan,
    Real,
)

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]

boolean = Boolean()
cat = Cat
corr_cholesky = CorrCholesky()
dependent = Dependent()
dependent_property = DependentProperty
greater_than = GreaterThan
greater_than_eq = GreaterThanEq
half_open_interval = HalfOpenInterval
independent = IndependentConstraint
integer_interval = IntegerInterval
interval = Interval
less_than = LessThan
lower_cholesky = LowerCholesky()
lower_triangular = LowerTriangular()
multinomial = Multinomial
nonnegative = GreaterThanEq(0.0)
nonnegative_integer = IntegerGreaterThan(0)
one_hot = OneHot()
positive = GreaterThan(0.0)
positive_definite = PositiveDefinite()
positive_integer = IntegerGreaterThan(1)
positive_semidefinite = PositiveSemidefinite()
real = Real()
real_vector = IndependentConstraint(real, 1)
simplex = Simplex()
square = Square()
stack = Stack
symmetric = Symmetric()
unit_interval = Interval(0.0, 1.0)
