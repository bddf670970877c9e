"""The categorical distribution in one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.categories import Categories
from corefw.tensor import Tensor


class OneHotCategorical(Categories):
    """Distributions of vectors of zeros and a single one, at a place with given probabilities.

    Args:
        probs: the probabilities up to a common factor, shape (..., K), or
        logits: their logarithms up to a common constant.

    >>> import corefw as torch
    >>> torch.distributions.OneHotCategorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor([1.0, 0.0]))
    tensor(-1.3863)
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    def _one_hot(self, indices):
        return ops.one_hot(indices, self.event_shape[0]).to(self._categorical._parameter.dtype)

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._one_hot(self._categorical.enumerate_support(expand))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As `OneHotCategorical`; the gradients of samples are taken as those of the probabilities.

    Source: Bengio, Léonard, Courville, "Estimating or propagating gradients through stochastic neurons for conditional
    computation", 2013.

    >>> import corefw as torch
    >>> probs = torch.ones(3, requires_grad=True)
    >>> torch.distributions.OneHotCategoricalStraightThrough(probs).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
