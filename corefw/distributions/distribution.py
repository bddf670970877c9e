"""The base of distributions: batches of parameters, samples, validation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from corefw.autograd.grad_mode import no_grad
from corefw.distributions import constraints
from corefw.distributions.utils import lazy_property
from corefw.shapes import Size
from corefw.tensor import Tensor
from corefw.tracebacks import warn


class Distribution:
    """A batch of probability distributions.

    Args:
        batch_shape: the shape of the parameters: independent, differently distributed values.
        event_shape: the shape of one value.
        validate_args: whether parameters, and the values of `log_prob` and `cdf`, are checked; None for the default.

    Attributes:
        arg_constraints: {parameter: its constraint}.
        support: the constraint that values satisfy.
        has_rsample: whether samples carry gradients to the parameters.
        has_enumerate_support: whether there are finitely many values.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    support: Any = constraints.dependent
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn validation on or off where a distribution is not told."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape, _instance=None) -> Self:
        """The distribution with its batch expanded to `batch_shape`, without a copy of the parameters."""
        new: Any = type(self).__new__(type(self)) if _instance is None else _instance
        batch_shape, dims = Size(batch_shape), len(self._batch_shape)
        parameters = {name for cls in type(self).__mro__ for name in vars(cls).get("arg_constraints", ())}
        for name, value in self.__dict__.items():
            if name in parameters:
                new.__dict__[name] = value.expand((*batch_shape, *value.shape[dims:]))
            elif not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    def _get_checked_instance(self, cls: Any, _instance=None):
        """A new instance for the `expand` of a subclass written for PyTorch, whose own `__init__` it may not skip."""
        own: Any = type(self)
        if _instance is None and own.__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {own.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return own.__new__(own) if _instance is None else _instance

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()) -> Tensor:
        """Random values of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Deprecated: ``sample((n,))``."""
        warn("sample_n(n) will be deprecated. Use .sample((n,)) instead.")
        return self.sample((n,))

    def rsample(self, sample_shape=()) -> Tensor:
        """As `sample`, as a function of the parameters that carries gradients to them."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The expected value of ``-log_prob``."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if value.shape[value.ndim - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        support = self.support
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = ((name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__)
        text = ", ".join(f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in given)
        return f"{type(self).__name__}({text})"
