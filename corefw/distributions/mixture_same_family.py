"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from corefw.autograd.grad_mode import no_grad
from corefw.distributions import constraints
from corefw.distributions.categorical import Categorical
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.distribution import Distribution
from corefw.tensor import Tensor


class MixtureSameFamily(Distribution):
    """Distributions of a value of one of K components, which is drawn first.

    Args:
        mixture_distribution: a `Categorical` of the batch shape (...) over the K components.
        component_distribution: a distribution of the batch shape (..., K), its last dimension the components.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> weights, components = D.Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), torch.ones(2))
    >>> D.MixtureSameFamily(weights, components).variance
    tensor(2.)
    """

    arg_constraints = {}

    def __init__(
        self,
        mixture_distribution: Distribution,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an instance of Categorical, "
                f"but it is {type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of Distribution, "
                f"but it is {type(component_distribution).__name__}"
            )
        mixture, batch = mixture_distribution.batch_shape, component_distribution.batch_shape
        if not batch or any(a != b and a != 1 and b != 1 for a, b in zip(mixture, batch[:-1])):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture}) is not compatible with "
                f"`component_distribution.batch_shape`({batch}) but for its last dimension"
            )
        if mixture_distribution.param_shape[-1] != batch[-1]:
            raise ValueError(
                f"`mixture_distribution` has {mixture_distribution.param_shape[-1]} components, and "
                f"`component_distribution.batch_shape[-1]` is {batch[-1]}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        components = self._mixture_distribution.param_shape[-1]
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand((*batch_shape, components))
        return new

    @constraints.dependent_property
    def support(self) -> Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Distribution:
        """The distribution of the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The distributions of values, for each component."""
        return self._component_distribution

    def _mixed(self, value):
        """The mean over the components, which stand before the dimensions of a value."""
        events = (1,) * len(self.event_shape)
        probs = self._mixture_distribution.probs
        return (probs.reshape((*probs.shape, *events)) * value).sum(-1 - len(events))

    def _for_components(self, value):
        return value.unsqueeze(-1 - len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # the mean of the variances and the variance of the means
        means = self._component_distribution.mean
        apart = (means - self._for_components(self.mean)).square()
        return self._mixed(self._component_distribution.variance) + self._mixed(apart)

    def cdf(self, value: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._for_components(value)) * self._mixture_distribution.probs).sum(
            -1
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self._component_distribution.log_prob(self._for_components(value))
        return (log_prob + self._mixture_distribution.logits).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            dims = len(self.event_shape)
            values = self._component_distribution.sample(sample_shape)
            component = self._mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            index = component.reshape((*component.shape, *(1,) * (dims + 1)))
            index = index.expand((*component.shape, 1, *self.event_shape))
            return values.gather(-1 - dims, index).squeeze(-1 - dims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n  {self._mixture_distribution},\n  {self._component_distribution})"
