"""The multinomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.binomial import Binomial
from corefw.distributions.categories import Categories
from corefw.distributions.constraints.constraint import Constraint
from corefw.tensor import Tensor


class Multinomial(Categories):
    """Distributions of how often each of K categories is drawn in a number of independent draws.

    Args:
        total_count: n, the number of draws, an int.
        probs: the probabilities up to a common factor, shape (..., K), or
        logits: their logarithms up to a common constant.

    >>> import corefw as torch
    >>> torch.distributions.Multinomial(4, torch.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported: total_count must be an int")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            ones = self.probs.new_ones(()).expand(drawn.shape)
            return self.probs.new_zeros(self._extended_shape(sample_shape)).scatter_add(-1, drawn, ones)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        powers = ops.where((value == 0) & (self.logits == -float("inf")), 0.0, self.logits) * value
        return (value.sum(-1) + 1).lgamma() + (powers - (value + 1).lgamma()).sum(-1)

    def entropy(self) -> Tensor:
        # each count is binomial, which gives the expected value of the logarithm of its factorial
        n = self.total_count
        count = Binomial(n, self.probs, validate_args=False)
        counts = count.enumerate_support(expand=False)
        factorials = (count.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - self.probs.new_tensor(n + 1.0).lgamma() + factorials
