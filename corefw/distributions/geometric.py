"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import ProbsOrLogits
from corefw.dtypes import finfo
from corefw.tensor import Tensor


class Geometric(ProbsOrLogits, Distribution):
    """Distributions of the number k of failures before the first success, which is ``(1 - probs) ** k * probs`` likely.

    Args:
        probs: the probability of success, in (0, 1], shape (...), or
        logits: its log-odds.

    >>> import corefw as torch
    >>> torch.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameter(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs of distribution {self!r} to be positive but found invalid values:\n"
                f"{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return self.probs.reciprocal() - 1

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (self.probs.reciprocal() - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape, tiny = self._extended_shape(sample_shape), finfo(self.probs.dtype).tiny
            u = self.probs.new_empty(shape).uniform_().clamp(min=tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ops.special_xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        return ops.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
