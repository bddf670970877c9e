"""One-hot categorical distributions relaxed to all vectors of probabilities, whose samples have gradients."""

from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.relaxed import Relaxed, uniform_numbers
from corefw.distributions.transforms import ExpTransform
from corefw.distributions.utils import CategoryProbabilities, broadcast_all


class ExpRelaxedCategorical(CategoryProbabilities, Distribution):
    """Distributions of the logarithms of `RelaxedOneHotCategorical`.

    Args:
        temperature: the lower, the closer to one-hot are the values, a number.
        probs: the probabilities up to a common factor, shape (..., K), or
        logits: their logarithms up to a common constant.

    >>> import corefw as torch
    >>> distribution = torch.distributions.relaxed_categorical.ExpRelaxedCategorical(torch.tensor(1.0), torch.ones(2))
    >>> distribution.sample().exp().sum().allclose(torch.tensor(1.0))
    True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._set_parameter(probs, logits)
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(self.param_shape[:-1], self.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=()):
        u = uniform_numbers(self._parameter, self._extended_shape(sample_shape))
        gumbel = -(-u.log()).log()
        return ((self.logits + gumbel) / self.temperature).log_softmax(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        count = self.event_shape[0]
        scale = self.temperature.new_tensor(float(count)).lgamma() + (count - 1) * self.temperature.log()
        return (logits - value * self.temperature).log_softmax(-1).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """One-hot categorical distributions relaxed to all vectors of probabilities, so that samples have gradients.

    Args:
        temperature: the lower, the closer to one-hot are the values, a number.
        probs: the probabilities up to a common factor, shape (..., K), or
        logits: their logarithms up to a common constant.

    Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization
    with Gumbel-softmax", 2017.

    >>> import corefw as torch
    >>> distribution = torch.distributions.RelaxedOneHotCategorical(torch.tensor(1.0), torch.ones(2))
    >>> distribution.log_prob(torch.tensor([0.25, 0.75])).abs() < 1e-5
    tensor(True)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base, transform = ExpRelaxedCategorical, ExpTransform
