"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.gamma import Gamma
from corefw.distributions.utils import ProbsOrLogits
from corefw.tensor import Tensor


class NegativeBinomial(ProbsOrLogits, Distribution):
    """Distributions of the number of successes before a given number of failures.

    Args:
        total_count: r, the number of failures, not negative, a number or shape (...); it need not be whole.
        probs: the probability of success, in [0, 1), shape (...), or
        logits: its log-odds.

    >>> import corefw as torch
    >>> torch.distributions.NegativeBinomial(3.0, torch.tensor(0.5)).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | int,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (total_count,) = self._set_parameter(probs, logits, total_count)
        self.total_count = total_count.to(self._parameter.dtype)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return ops.poisson(rates)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        r = self.total_count
        powers = r * ops.logsigmoid(-self.logits) + value * ops.logsigmoid(self.logits)
        ways = (r + value).lgamma() - (value + 1).lgamma() - r.lgamma()
        return powers + ops.where(r + value == 0, 0.0, ways)
