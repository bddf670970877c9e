"""The categorical distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import CategoryProbabilities
from corefw.dtypes import finfo, int64
from corefw.tensor import Tensor


class Categorical(CategoryProbabilities, Distribution):
    """Distributions of the numbers 0 to K - 1 with given probabilities.

    Args:
        probs: the probabilities up to a common factor, shape (..., K), or
        logits: their logarithms up to a common constant.

    >>> import corefw as torch
    >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor(0))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameter(probs, logits)
        super().__init__(self.param_shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.param_shape[-1] - 1)

    @property
    def mean(self) -> Tensor:
        return self._parameter.new_full(self._extended_shape(), float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self._parameter.new_full(self._extended_shape(), float("nan"))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            rows = self.probs.reshape((-1, self.param_shape[-1]))
            return ops.multinomial(rows, prod(sample_shape), True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = ops.broadcast_tensors(value.to(int64).unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = ops.arange(self.param_shape[-1], dtype=int64, device=self._parameter.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
