"""The Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.utils import ProbsOrLogits, broadcast_all
from corefw.tensor import Tensor


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """Distributions of 1 with probability `probs`, else 0.

    Args:
        probs: the probability of 1, or
        logits: its log-odds.

    >>> import corefw as torch
    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(1.0))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameter(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return ops.where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, logits):
        return ops.softplus(logits)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -ops.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return ops.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = ops.arange(2, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
