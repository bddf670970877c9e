"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.dispatch.random_generator import differing
from corefw.distributions import constraints
from corefw.distributions.exp_family import ExponentialFamily
from corefw.tensor import Tensor


class Dirichlet(ExponentialFamily):
    """Dirichlet distributions of vectors of K probabilities, of a density in proportion to the product of the
    ``x[k] ** (concentration[k] - 1)``.

    Args:
        concentration: positive, shape (..., K).

    >>> import corefw as torch
    >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def _total(self):
        return self.concentration.sum(-1, keepdim=True)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._total

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, keepdim=True)
        peak = ops.one_hot(mode.argmax(-1), self.event_shape[0]).to(mode.dtype)  # where no concentration exceeds 1
        return ops.where((self.concentration < 1).all(-1, keepdim=True), peak, mode)

    @property
    def variance(self) -> Tensor:
        total = self._total
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return ops.sample_dirichlet(differing(self.concentration.expand(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ops.xlogy(self.concentration - 1, value).sum(-1) - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        a, total = self.concentration, self._total.squeeze(-1)
        terms = ((a - 1) * a.digamma()).sum(-1)
        return self._log_normalizer(a) + (total - a.shape[-1]) * total.digamma() - terms

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
