"""Which transform leads from all real numbers to the values of a constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make a transform for one.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.transform_to(D.constraints.interval(2.0, 4.0))(torch.zeros(1))
    tensor([3.])
    >>> mine = D.constraint_registry.ConstraintRegistry()
    >>> mine.register(D.constraints.positive, lambda constraint: D.SoftplusTransform())(D.constraints.positive)
    SoftplusTransform()
    """

    def __init__(self):
        self._factories: dict[type, Callable] = {}

    def register(self, constraint, factory: Callable | None = None) -> Callable:
        """Enter the function for a class of constraints, or for that of an instance; without one, decorate it.

        Raises TypeError if `constraint` is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        cls = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(cls, type) and issubclass(cls, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._factories[cls] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """The transform to the values of `constraint`; NotImplementedError if none is known for its class."""
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


#: bijections, whose Jacobians are known: for Hamiltonian Monte Carlo
biject_to = ConstraintRegistry()
#: any differentiable function onto the values: for optimisation
transform_to = ConstraintRegistry()


def _affine(transform, loc, scale):
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


def _to_interval(constraint):
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if (_is_number(lower) and lower == 0) and (_is_number(upper) and upper == 1):
        return transforms.SigmoidTransform()
    return _affine(transforms.SigmoidTransform(), lower, upper - lower)


def _is_number(bound) -> bool:
    return isinstance(bound, int | float)


def _to_positive(constraint):
    # the bounds of `positive` and `nonnegative` are plain zeros
    if _is_number(constraint.lower_bound) and constraint.lower_bound == 0:
        return transforms.ExpTransform()
    return _affine(transforms.ExpTransform(), constraint.lower_bound, 1)


_SHARED: list[tuple[Any, Callable]] = [
    (constraints.real, lambda _: transforms.identity_transform),
    (constraints.greater_than, _to_positive),
    (constraints.greater_than_eq, _to_positive),
    (constraints.less_than, lambda c: _affine(transforms.ExpTransform(), c.upper_bound, -1)),
    (constraints.interval, _to_interval),
    (constraints.half_open_interval, _to_interval),
    (constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform()),
]
for _registry in (biject_to, transform_to):
    for _constraint, _factory in _SHARED:
        _registry.register(_constraint, _factory)

    @_registry.register(constraints.independent)
    def _(constraint, to=_registry):
        return transforms.IndependentTransform(to(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    @_registry.register(constraints.cat)
    def _(constraint, to=_registry):
        parts = [to(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @_registry.register(constraints.stack)
    def _(constraint, to=_registry):
        return transforms.StackTransform([to(part) for part in constraint.cseq], constraint.dim)


biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: transforms.PositiveDefiniteTransform())
