"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import ProbsOrLogits
from corefw.tensor import Tensor


class Binomial(ProbsOrLogits, Distribution):
    """Distributions of the number of successes in independent trials.

    Args:
        total_count: n, the number of trials, a number or shape (...).
        probs: the probability of success, shape (...), or
        logits: its log-odds.

    >>> import corefw as torch
    >>> torch.distributions.Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor(1.0))
    tensor(-0.6931)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (total_count,) = self._set_parameter(probs, logits, total_count)
        self.total_count = total_count.to(self._parameter.dtype)
        super().__init__(self.param_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits + n * ops.logsigmoid(-self.logits)

    def _common_count(self, caller: str) -> int:
        """The number of trials, equal in the whole batch."""
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{caller}`.")
        return count

    def entropy(self) -> Tensor:
        self._common_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._common_count("enumerate_support")
        values = ops.arange(count + 1, dtype=self._parameter.dtype, device=self._parameter.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
