"""The base of constraints, and constraints that only an instance of a distribution knows."""

from __future__ import annotations

from typing import Any

from corefw.tensor import Tensor


class Constraint:
    """A set of values; ``check`` says of each whether it belongs.

    >>> import corefw as torch
    >>> constraints = torch.distributions.constraints
    >>> isinstance(constraints.positive, constraints.Constraint)
    True
    >>> constraints.positive.check(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([False, False,  True])
    """

    @property
    def is_discrete(self) -> bool:
        """Whether the values are isolated."""
        return False

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions together are one value."""
        return 0

    def check(self, value: Tensor) -> Tensor:
        """A bool tensor: for every value whether it satisfies the constraint."""
        raise NotImplementedError(f"{type(self).__name__} does not implement check")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class Dependent(Constraint):
    """A constraint that depends on the values of other parameters, and is not checked.

    Args:
        is_discrete: whether the values are isolated.
        event_dim: how many dimensions a value has.

    Either may be left out where the class does not know it; to ask for it then raises NotImplementedError.
    """

    def __init__(self, *, is_discrete: bool = NotImplemented, event_dim: int = NotImplemented) -> None:
        self._known = {"is_discrete": is_discrete, "event_dim": event_dim}

    def _get(self, name):
        if self._known[name] is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return self._known[name]

    @property
    def is_discrete(self) -> bool:
        return self._get("is_discrete")

    @property
    def event_dim(self) -> int:
        return self._get("event_dim")

    def __call__(self, **known: Any) -> Any:
        """The same, with more known."""
        return Dependent(**(self._known | known))

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DependentProperty(property, Dependent):
    """A property that is a constraint: of an instance the one that it returns, of the class a dependent one.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> isinstance(D.Uniform.support, D.constraints.DependentProperty), D.Uniform(0.0, 1.0).support
    (True, Interval(lower_bound=0.0, upper_bound=1.0))
    """

    def __init__(self, function: Any = None, **known: Any) -> None:
        property.__init__(self, function)
        Dependent.__init__(self, **known)

    def __call__(self, function: Any) -> Any:  # type: ignore[override]
        """Decorate a method; what is known has been given before."""
        return DependentProperty(function, **self._known)


def is_dependent(constraint: Constraint) -> bool:
    """Whether the constraint cannot be checked alone."""
    return isinstance(constraint, Dependent)
