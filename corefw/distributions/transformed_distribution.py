"""Distributions of transformed random values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from corefw.autograd.grad_mode import no_grad
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.distribution import Distribution
from corefw.distributions.independent import Independent
from corefw.distributions.transforms import ComposeTransform, Transform
from corefw.distributions.utils import sum_rightmost
from corefw.tensor import Tensor


class TransformedDistribution(Distribution):
    """Distributions of ``y = f(x)`` for random x, of the density ``p(x) / |dy / dx|``.

    Args:
        base_distribution: the distribution of x, expanded to the shape that the transforms give it.
        transforms: f, a transform or a list of those to apply one after another.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> transforms = [D.SigmoidTransform().inv, D.AffineTransform(1.0, 2.0)]
    >>> logistic = D.TransformedDistribution(D.Uniform(0.0, 1.0), transforms)
    >>> logistic.log_prob(torch.tensor(1.0))
    tensor(-2.0794)
    """

    base_dist: Any

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        needed = transform.domain.event_dim
        if len(shape) < needed:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {needed}, but got {tuple(shape)}."
            )
        result = transform.forward_shape(shape)
        expanded = transform.inverse_shape(result)
        if shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - event_dim])
        if needed > event_dim:
            base_distribution = Independent(base_distribution, needed - event_dim, validate_args=False)
        self.base_dist = base_distribution
        cut = len(result) - transform.codomain.event_dim - max(event_dim - needed, 0)
        super().__init__(result[:cut], result[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape(new.batch_shape + new.event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, y):
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def _reflected(self, probability):
        """The probability counted from the other end where the transforms are decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        change: Any = 0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            change = change - sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        return change + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._reflected(self.base_dist.cdf(self._backward(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._reflected(value)))
